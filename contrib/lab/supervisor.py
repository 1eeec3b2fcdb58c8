# SPDX-License-Identifier: BSD-3-Clause
"""The process that owns a lab: its namespace, its machines, its state.

It is forked by `up` and stays until `down`. The machines die with it, the
namespace dies with them. Until `up` has said that the lab is good, the end
of `up` is the end of the lab.
"""

import os
import select
import shutil
import signal
import traceback

from lab import net, store

SIGNALS = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD}
STOP_S = 10.0


class Boot:
    """The caller's end of a supervisor that is starting a lab."""

    def __init__(self, pid, control, report):
        self.pid = pid
        self._control = control
        self._report = report

    def started(self):
        """Waits for the machines to run; the error as text, or ""."""
        with open(self._report, encoding="utf-8") as stream:
            return stream.read()

    def keep(self):
        """The lab is good: it stays when this process ends."""
        os.write(self._control, b"k")
        os.close(self._control)

    def drop(self, directory):
        """The lab is not wanted; waits until it is gone."""
        os.close(self._control)
        store.wait_gone(directory, STOP_S)


def fork(fabric, fabric_name, directory, lock):
    """Starts a supervisor, which takes over the lock."""
    control_r, control_w = os.pipe()
    report_r, report_w = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(control_w)
        os.close(report_r)
        try:
            _close_others(control_r, report_w, lock)
            _Supervisor(fabric, fabric_name, directory).run(control_r,
                                                            report_w)
        except BaseException:  # pylint: disable=broad-except
            traceback.print_exc()
        finally:
            os._exit(1)
    for fd in (control_r, report_w, lock):
        os.close(fd)
    return Boot(pid, control_w, report_r)


def _close_others(*kept):
    """Closes what the caller's own parents left open: pipes, locks."""
    for name in os.listdir("/proc/self/fd"):
        if int(name) > 2 and int(name) not in kept:
            try:
                os.close(int(name))
            except OSError:
                pass


class _Supervisor:
    def __init__(self, fabric, fabric_name, directory):
        self.fabric = fabric
        self.fabric_name = fabric_name
        self.directory = directory
        self.machines = {}

    def run(self, control, report):
        """Starts the lab, keeps it, ends it; does not return."""
        signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        os.setsid()
        os.chdir("/")
        self._redirect()
        error = self._start()
        os.write(report, error.encode())
        os.close(report)
        if not error and self._wait_for_caller(control):
            self._wait_for_end(None)
        self._stop()
        shutil.rmtree(self.directory, ignore_errors=True)
        os._exit(0)

    def _redirect(self):
        log = os.open(self.directory / "log",
                      os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        null = os.open("/dev/null", os.O_RDONLY)
        for source, target in ((null, 0), (log, 1), (log, 2)):
            os.dup2(source, target)
        os.close(log)
        os.close(null)

    def _start(self):
        """Starts the machines and publishes the lab; an error, or ""."""
        try:
            net.leave()
            self.machines = self.fabric.start()
            store.write_state(self.directory, {
                "supervisor": os.getpid(),
                "fabric": self.fabric_name,
                "options": self.fabric.options(),
                "topology": self.fabric.topology.spec,
                "machines": {name: [process.pid,
                                    store.start_time(process.pid)]
                             for name, process in self.machines.items()}})
        except OSError as error:
            traceback.print_exc()
            return str(error)
        return ""

    def _wait_for_caller(self, control):
        """Whether the caller said to keep the lab."""
        while True:
            if select.select([control], [], [], 0)[0]:
                kept = os.read(control, 1) == b"k"
                os.close(control)
                return kept
            if self._wait_for_end(0.2):
                return False

    def _wait_for_end(self, timeout):
        """Collects machines that end; True when told to stop."""
        while True:
            if timeout is None:
                number = signal.sigwait(SIGNALS)
            else:
                info = signal.sigtimedwait(SIGNALS, timeout)
                if info is None:
                    return False
                number = info.si_signo
            if number != signal.SIGCHLD:
                return True
            for process in self.machines.values():
                process.poll()

    def _stop(self):
        for process in self.machines.values():
            process.kill()
        for process in self.machines.values():
            process.wait()

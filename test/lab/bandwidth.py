#!/usr/bin/python3 -B
# SPDX-License-Identifier: BSD-3-Clause
"""meshctl doctor --bandwidth: figures of links, and probes that fail."""

import json
import os
import sys
import time

import lab
import meshd

MESHCTL = os.fspath(lab.BUILD / "src" / "meshctl" / "meshctl")
EXIT_RED, EXIT_WARNINGS = 1, 6
FOLLOW_S = 30
CONFIG = "/etc/swverbs.conf"
# GT/s and width of PCIe, and what that is in Mb/s.
EASY, HARD = ("0.05x1", 40), ("64x16", 1_008_240)
# Set up 20 s, 3 s to measure, 10 s until queue pairs give up; twice.
# Emulated ones were seen to take 120 s with a lane that went down.
PROBE_S = 200 if lab.MACHINES else 80


def _probe(net, node="n1", env=None, options="--bandwidth"):
    """(seconds, status, the answer, what was told meanwhile)"""
    started = time.monotonic()
    result = net.exec(node, "sh", "-c", f"exec {MESHCTL} doctor --json "
                      f"{options}", env=env)
    return (time.monotonic() - started, result.status, json.loads(result.out),
            result.err)


def _found(answer):
    """{code: finding} of the layer; it is green where there is none."""
    found = {finding["code"]: finding for finding in answer["findings"]
             if finding["layer"] == "bandwidth"}
    verdict = {layer["layer"]: layer["verdict"]
               for layer in answer["layers"]}.get("bandwidth")
    lab.check((verdict == "green") == (not found), f"the layer is {verdict}",
              json.dumps(answer, indent=1))
    return found


def _claim_pcie(net, *nodes, pcie=None):
    """What nodes' devices say of their place on PCIe (None: nothing), to a
    meshd that starts."""
    for node in nodes or net.nodes():
        net.shell(node, f"sed -i -E 's/ pcie=[^ ]+//' {CONFIG}")
        if pcie:
            net.shell(node, f"sed -i -E 's/^device .*/& pcie={pcie[0]}/' "
                      f"{CONFIG}")
        meshd.restart(net, node)
    _whole_map(net)


def _whole_map(net):
    with meshd.Watch(net) as watch:
        watch.wait_links(meshd.cabling(net), "the map", limit=FOLLOW_S)


def _restart(net, env=None):
    """A meshd on every node, all with the whole map."""
    for node in net.nodes():
        meshd.restart(net, node, env)
    _whole_map(net)


def _once_probed(net, node, command):
    """Runs a command on a node as soon as its meshd answers a probe: at a
    distance it would come too late where the processors are busy."""
    net.shell(node, f"before=$(grep -c 'bandwidth probe of' {meshd.LOG} || "
              "true); "
              f"(while [ $(grep -c 'bandwidth probe of' {meshd.LOG}) = "
              "$before ]; do sleep 0.05; done; sleep 0.5; "
              f"{command}) >/dev/null 2>&1 </dev/null &")


def figures(net):
    """Figures of both lanes, where PCIe is slow and where nothing is as fast
    as it claims to be; nothing is probed unless asked for."""
    _claim_pcie(net, pcie=EASY)
    _, _, plain, _ = _probe(net, options="")
    lab.check("bandwidth" not in plain
              and "bandwidth" not in str(plain["layers"]),
              "probed without asking", str(plain))
    seconds, _, answer, told = _probe(net)
    lab.check(not _found(answer), "a slow PCIe link",
              json.dumps(answer, indent=1))
    lab.check({(link["lane"], link["node"], link["remote_lane"])
               for link in answer["bandwidth"]}
              == {(near, other, far) for other in ("n2", "n4")
                  for near, far in net.cabled("n1", other)},
              "other links", str(answer["bandwidth"]))
    for link in answer["bandwidth"]:
        lab.note("{lane} to {node}: {out_mbps} Mb/s out, {in_mbps} in"
                 .format(**link))
        lab.check(min(link["out_mbps"], link["in_mbps"]) > EASY[1]
                  and link["pcie_mbps"] == EASY[1] and link["mtu"] == 4096
                  and link["link_mbps"] > 0, "figures", str(link))
    lab.check("link 2 of 2" in told and seconds < PROBE_S,
              f"no progress, or {seconds:.0f} s", told)
    text = net.exec("n1", MESHCTL, "doctor", "--bandwidth").out
    lab.check("bandwidth  green" in text and "at the same time" in text,
              "the text says otherwise", text)
    # The far end's place counts, too.
    _claim_pcie(net, "n1", pcie=HARD)
    _, _, answer, _ = _probe(net)
    lab.check(not _found(answer) and all(
        link["pcie_mbps"] == EASY[1] for link in answer["bandwidth"]),
              "the far end", json.dumps(answer, indent=1))
    _claim_pcie(net, pcie=HARD)
    _, status, answer, _ = _probe(net)
    found = _found(answer)
    lab.check(status == EXIT_WARNINGS and set(found) == {"BANDWIDTH_LOW"}
              and "the link" in found["BANDWIDTH_LOW"]["text"]
              and answer["bandwidth"][0]["pcie_mbps"] == HARD[1],
              "a link that is not so fast", json.dumps(answer, indent=1))
    _claim_pcie(net)


def without_peer(net):
    """A meshd that does not know the probe; one that is gone."""
    _restart(net)
    for node in ("n2", "n4"):
        meshd.restart(net, node, {"MESH_MESHD_BANDWIDTH": "n"})
    _whole_map(net)
    _, status, answer, _ = _probe(net)
    lab.check(status == EXIT_WARNINGS and set(_found(answer))
              == {"BANDWIDTH_UNSUPPORTED"}
              and all(link["out_mbps"] is None for link
                      in answer["bandwidth"]), "a meshd without it",
              json.dumps(answer, indent=1))
    for node in ("n2", "n4"):
        meshd.restart(net, node)
    _whole_map(net)
    _once_probed(net, "n4", f"{lab.BUSYBOX} killall -9 meshd")
    job = net.start("n1", MESHCTL, "doctor", "--bandwidth", "--json")
    result = job.wait(PROBE_S)
    found = _found(json.loads(result.out))
    lab.check(result.status == EXIT_RED and "BANDWIDTH_FAILED" in found
              and "in the middle" in found["BANDWIDTH_FAILED"]["text"],
              "the peer's end", result.text)


def without_lane(net):
    """A lane goes down in the middle; both ends are free again then."""
    _restart(net)
    near, far = net.cabled("n1", "n2")[0]
    _once_probed(net, "n2", f"ip link set {far} down")
    job = net.start("n1", MESHCTL, "doctor", "--bandwidth", "--json")
    result = job.wait(PROBE_S)
    answer = json.loads(result.out)
    failed = [finding for finding in answer["findings"]
              if finding["code"] == "BANDWIDTH_FAILED"]
    lab.check(result.status == EXIT_RED and len(failed) == 1
              and f"{near} to n2" in failed[0]["subject"],
              "a lane that goes down", result.text)
    net.shell("n2", f"ip link set {far} up")
    _whole_map(net)
    _, _, answer, _ = _probe(net)
    lab.check("BANDWIDTH_FAILED" not in _found(answer), "not free again",
              json.dumps(answer, indent=1))


def at_once(net):
    """All nodes probe at once: each link is measured, one after another."""
    _restart(net)
    jobs = [net.start(node, "sh", "-c", f"exec {MESHCTL} doctor --bandwidth "
                      "--json") for node in net.nodes()]
    results = [job.wait(2 * PROBE_S) for job in jobs]
    for result in results:
        answer = json.loads(result.out)
        lab.check(set(_found(answer)) <= {"BANDWIDTH_LOW", "BANDWIDTH_BUSY"},
                  "two at once", result.text)
    # One that holds the place is waited for, and not for ever.
    holder = net.start("n1", "/usr/bin/python3", "-c",
                       "import socket, time; "
                       "s = socket.socket(socket.AF_UNIX); "
                       "s.bind(chr(0) + 'mesh/meshd-bandwidth'); "
                       "print('held', flush=True); time.sleep(600)")
    holder.wait_for("held")
    seconds, status, answer, _ = _probe(net)
    holder.stop()
    lab.check(status == EXIT_WARNINGS and set(_found(answer))
              == {"BANDWIDTH_BUSY"} and seconds < PROBE_S,
              f"a place that is held, {seconds:.0f} s",
              json.dumps(answer, indent=1))


def shared_key(net):
    """With a key that all share; without it on the caller's side alone."""
    net.shell("all", "echo a secret of the mesh >/etc/mesh.key; "
              "chmod 600 /etc/mesh.key")
    _restart(net, {"MESH_MESHD_KEY_FILE": "/etc/mesh.key"})
    _, _, answer, _ = _probe(net, env={"MESH_MESHD_KEY_FILE": "/etc/mesh.key"})
    lab.check(set(_found(answer)) <= {"BANDWIDTH_LOW"}, "with the key",
              json.dumps(answer, indent=1))
    _, _, answer, _ = _probe(net)
    found = _found(answer)
    lab.check("BANDWIDTH_FAILED" in found and "KEY_FILE"
              in found["BANDWIDTH_FAILED"]["fix"]
              and found["BANDWIDTH_FAILED"]["severity"] == "warning",
              "without the key", json.dumps(answer, indent=1))


def main():
    """All on one ring, whose devices can say what they like of PCIe."""
    tests = [without_peer, without_lane, lab.long(at_once), shared_key]
    if not lab.MACHINES:
        tests.insert(0, lab.long(figures))
    elif not lab.THOROUGH:
        print("SKIP: probes take long on emulated processors")
        sys.exit(77)
    lab.main([("ring4", tests)])


if __name__ == "__main__":
    main()

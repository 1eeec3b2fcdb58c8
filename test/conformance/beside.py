#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""beside.py RESULTS OTHER RECORDED [--record]

Names the tests that run for another transport and not for this one: those that
pass in OTHER and neither pass nor fail in RESULTS, files of suites.py. RECORDED
has those that are known, with what this transport's tests said. Exit status: 0
none that is new, 1 some.
"""

import sys

import suites

HEAD = ("# What runs for rc_verbs and not for mesh_rc: the test, and what UCX "
        "says of it.\n")


def bare(results):
    """The same without the transport's name: {test: (result, reason)}."""
    return {name.partition("/")[2]: result for name, result in results.items()}


def not_run(results, others):
    """{test: why}."""
    results = bare(results)
    missing = {}
    for name, (result, _) in bare(others).items():
        mine, reason = results.get(name, ("skipped", "no such test"))
        if result == "passed" and mine == "skipped":
            missing[name] = reason or "no reason"
    return missing


def main():
    path, other, recorded = sys.argv[1:4]
    missing = not_run(suites.State(path).results, suites.State(other).results)
    if "--record" in sys.argv[4:]:
        with open(recorded, "w") as file:
            file.write(HEAD)
            for name, reason in sorted(missing.items()):
                print("%s: %s" % (name, reason), file=file)
    with open(recorded) as file:
        known = {line.partition(": ")[0] for line in file}
    new = sorted(set(missing) - known)
    print("%d tests run for rc_verbs and not for mesh_rc, %d are known" %
          (len(missing), len(missing) - len(new)))
    for name in new:
        print("worse: %s: %s" % (name, missing[name]))
    return 1 if new else 0


if __name__ == "__main__":
    sys.exit(main())

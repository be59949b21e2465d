#!/usr/bin/env python3
"""Run ctest, then list what was skipped and why: nothing is silent. test.py BUILD CTEST_ARGUMENTS..."""
import collections
import pathlib
import re
import subprocess
import sys


def reasons(log):
    """For each ctest entry, how often each reason for skipping occurs in its output."""
    found = collections.defaultdict(collections.Counter)
    for entry in re.split(r"^\d+/\d+ Testing: ", log, flags=re.M)[1:]:
        name = entry.splitlines()[0]
        for reason in re.findall(r": Skipped\n(.+)", entry) + re.findall(r"^skipped: (.+)", entry, re.M):
            found[name][reason] += 1
    return found


build = sys.argv[1]
status = subprocess.call(["ctest", "--test-dir", build, "--output-on-failure", *sys.argv[2:]])
log = pathlib.Path(build, "Testing/Temporary/LastTest.log").read_text(errors="replace")
for name, counts in sorted(reasons(log).items()):
    for reason, count in counts.items():
        print(f"skipped: {name}: {reason}" + (f" ({count} cases)" if count > 1 else ""))
sys.exit(status)

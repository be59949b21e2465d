#!/usr/bin/env python3
"""Fail if a module includes one it may not see. This table is the architecture."""
import pathlib
import re
import sys

MAY_SEE = {
    "base": "",
    "data": "base",
    "model": "base",
    "smoothing": "base",
    "attack": "base",
    "federated": "base data model attack",
    "engine": "base model smoothing federated",
    "distributed": "base model federated",
    "config": "base data model smoothing attack federated",
    "report": "base smoothing",
}

bad = []
for path in sorted(pathlib.Path("fedsmooth").glob("*/*")):
    module = path.parent.name
    if module not in MAY_SEE:
        sys.exit(f"{path}: module {module} is not in the table of {sys.argv[0]}")
    for number, line in enumerate(path.read_text().splitlines(), 1):
        seen = re.match(r'\s*#include ["<](fedsmooth/(\w+)/|cli/|tests/)', line)
        if not seen or seen[2] == module:
            continue
        if seen[2] is None or seen[2] not in MAY_SEE[module].split():
            bad.append(f"{path}:{number}: {module} may not include {seen[2] or seen[1]}")
print("\n".join(bad) or "layers: ok")
sys.exit(bool(bad))

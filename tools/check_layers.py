#!/usr/bin/env python3
"""Fail if a room includes one it may not see. This table is the architecture: rooms are folders of
fedsmooth/, and a room may see itself and those named here, not what they see in turn."""
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
    "engine/cpu": "base model smoothing federated engine/torch",
    "engine/cuda/kernels": "base",
    "engine/cuda": "base model smoothing federated engine/cuda/kernels",
    "engine/torch": "base model smoothing engine/cuda engine/cuda/kernels",
    "engine": "base model smoothing federated engine/cpu engine/cuda engine/cuda/kernels engine/torch",
    "distributed": "base model federated",
    "config": "base data model smoothing attack federated",
    "records": "base model smoothing config",
    "report": "base smoothing records",
    "report/figures": "base records report",
    "report/page": "base records report report/figures",
}

bad = []
for path in sorted(pathlib.Path("fedsmooth").glob("**/*")):
    if path.is_dir():
        continue
    room = path.parent.relative_to("fedsmooth").as_posix()
    if room not in MAY_SEE:
        sys.exit(f"{path}: room {room} is not in the table of {sys.argv[0]}")
    for number, line in enumerate(path.read_text().splitlines(), 1):
        seen = re.match(r'\s*#include ["<](?:fedsmooth/([\w/]+)/\w+\.\w+|((?:cli|tests)/.*))[">]', line)
        if not seen or seen[1] == room:
            continue
        if seen[1] is None or seen[1] not in MAY_SEE[room].split():
            bad.append(f"{path}:{number}: {room} may not include {seen[1] or seen[2]}")
print("\n".join(bad) or "layers: ok")
sys.exit(bool(bad))

#!/usr/bin/env python3
"""Fail if a room includes one it may not see, or if docs/rooms.svg is not the picture of this table.
The table is the architecture: rooms are folders of fedsmooth/, and cli; a folder that is not in it belongs
to the room that it is in. A room may see itself and those named here, not what they see in turn. `check_layers.py --draw` draws the picture anew."""
import pathlib
import re
import sys

MAY_SEE = {
    "base": "",
    "data": "base",
    "model": "base",
    "smoothing": "base",
    "attack": "base",
    "federated/objectives/scores": "base",
    "federated": "base data model attack federated/objectives/scores",
    "engine/reference": "base model federated",
    "engine/cpu": "base model smoothing federated engine/reference",
    "engine/cuda/kernels": "base federated/objectives/scores",
    "engine/cuda": "base model smoothing federated engine/reference engine/cuda/kernels",
    "engine/torch": "base model smoothing engine/cuda engine/cuda/kernels",
    "engine": "base model smoothing federated engine/reference engine/cpu engine/cuda engine/cuda/kernels engine/torch",
    "distributed": "base federated",
    "config": "base data model smoothing federated",
    "records": "base model smoothing config",
    "report": "base smoothing records",
    "report/figures": "base records report",
    "report/page": "base report report/figures",
    "jobs": "base data model smoothing attack federated config records report report/figures report/page engine engine/cpu distributed",
    "fedsmooth.h": "base data model smoothing config engine jobs",
    "cli": "base config jobs report report/figures report/page",
}
PICTURE = pathlib.Path("docs/rooms.svg")
COLUMN = {  # in the picture, in percent of its width
    "base": 50, "federated/objectives/scores": 62, "attack": 10, "data": 26, "model": 42, "engine/cuda/kernels": 62, "smoothing": 84, "federated": 24,
    "distributed": 7, "engine/reference": 24, "config": 84, "engine/cpu": 36, "engine/cuda": 58, "records": 84,
    "engine/torch": 58, "report": 84, "engine": 46, "report/figures": 84, "report/page": 84, "jobs": 50,
    "fedsmooth.h": 40, "cli": 60,
}


def room_of(path):
    if path.parts[0] == "cli":
        return "cli"
    folder = path.parent.relative_to("fedsmooth")
    if folder.as_posix() == ".":
        return path.name
    return next((room.as_posix() for room in (folder, *folder.parents) if room.as_posix() in MAY_SEE), folder.as_posix())


def forbidden_includes():
    for path in sorted([*pathlib.Path("fedsmooth").glob("**/*"), *pathlib.Path("cli").glob("*")]):
        if path.is_dir():
            continue
        room = room_of(path)
        if room not in MAY_SEE:
            yield f"{path}: room {room} is not in the table of {sys.argv[0]}"
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            seen = re.match(r'\s*#include ["<]((?:fedsmooth|cli|tests)/[\w/]+\.\w+)[">]', line)
            if not seen:
                continue
            other = pathlib.Path(seen[1])
            other = "tests" if other.parts[0] == "tests" else room_of(other)
            if other != room and other not in MAY_SEE[room].split():
                yield f"{path}:{number}: {room} may not include {other}"


def levels():
    """Rooms by the longest way down to base."""
    depth = {}
    for room, seen in MAY_SEE.items():  # what a room sees stands above it in the table
        depth[room] = 1 + max((depth[other] for other in seen.split()), default=-1)
    rows = [[] for _ in range(max(depth.values()) + 1)]
    for room in MAY_SEE:
        rows[depth[room]].append(room)
    return rows


def direct(room):
    """What it sees, without what it would reach through another one anyway."""
    seen = MAY_SEE[room].split()

    def reaches(start, goal):
        return any(other == goal or reaches(other, goal) for other in MAY_SEE[start].split())

    return [one for one in seen if not any(reaches(other, one) for other in seen if other != one)]


def draw():
    width, row_height, box_height = 1000, 74, 30
    rows = levels()
    height = row_height * len(rows) + 20
    center, half = {}, {}
    for level, rooms in enumerate(rows):
        for room in rooms:
            center[room] = (width * COLUMN[room] / 100, height - 45 - level * row_height)
            half[room] = 8 + 4.2 * len(room)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="14">',
           '<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
           '<path d="M0,0 L8,4 L0,8 z" fill="#789"/></marker></defs>',
           f'<rect width="{width}" height="{height}" fill="white"/>']
    for room in MAY_SEE:
        x, y = center[room]
        for other in direct(room):
            to_x, to_y = center[other]
            out.append(f'<path d="M{x:.0f},{y + box_height / 2:.0f} C{x:.0f},{y + 45:.0f} {to_x:.0f},{to_y - 45:.0f} '
                       f'{to_x:.0f},{to_y - box_height / 2:.0f}" fill="none" stroke="#789" marker-end="url(#tip)"/>')
    for room in MAY_SEE:
        x, y = center[room]
        out.append(f'<rect x="{x - half[room]:.0f}" y="{y - box_height / 2:.0f}" width="{2 * half[room]:.0f}" '
                   f'height="{box_height}" rx="5" fill="#eef3f8" stroke="#456"/>'
                   f'<text x="{x:.0f}" y="{y + 5:.0f}" text-anchor="middle">{room}</text>')
    return "\n".join([*out, "</svg>"]) + "\n"


if sys.argv[1:] == ["--draw"]:
    PICTURE.write_text(draw())
    sys.exit()
bad = list(forbidden_includes())
if not PICTURE.exists() or PICTURE.read_text() != draw():
    bad.append(f"{PICTURE}: is not the picture of this table; `make format` draws it")
print("\n".join(bad) or "layers: ok")
sys.exit(bool(bad))

#!/usr/bin/env python3
"""check_published.py PROGRAM TABLES.tar.xz LIST.tsv: read published tables of certificates as their authors do.

The archive holds tables of six columns, published/NAME.tsv; the list has a line for each with its name, its
number of images, certified accuracy in per cent at radii (columns r0, r0.25, ...) and ACR. `compare` and
`report` must print these numbers to the digit, and so must a plain reading of the file. Not part of the
tests: the tables are other people's."""
import csv
import json
import math
import pathlib
import subprocess
import sys
import tarfile
import tempfile

program, archive, index = sys.argv[1:]


def run(*arguments):
    return subprocess.run([program, *map(str, arguments)], capture_output=True, text=True, check=True).stdout


def readings(table, radii):
    """Of each number: as `compare` and `report` print it, and as a plain reading of the file has it."""
    rows = [line.split("\t") for line in table.read_text().splitlines()[1:]]
    compared = json.loads(run("compare", table, table, "--json"))
    page = table.with_suffix(".md")
    run("report", table, "--out", page)
    cells = [cell.strip() for cell in page.read_text().splitlines()[2].split("|")]
    radius = math.fsum(float(row[3]) for row in rows if row[4] == "1") / len(rows)
    yield "images", {str(compared["images"]), cells[2], str(len(rows))}
    yield "ACR", {f'{compared["average_certified_radius"]["a"]:.3f}', cells[-3], f"{radius:.3f}"}
    accuracy = {at["radius"]: at["a"] for at in compared["certified_accuracy"]}
    for key in radii:
        r = float(key[1:])
        plain = sum(row[4] == "1" and float(row[3]) >= r for row in rows) / len(rows)
        # Beyond the largest radius of a table there is no line; the share there is 0.
        yield key, {f"{100 * accuracy.get(r, 0.0):.1f}", f"{100 * plain:.1f}"}


bad = checked = 0
listed = list(csv.DictReader(open(index), delimiter="\t"))
with tempfile.TemporaryDirectory() as folder:
    tarfile.open(archive).extractall(folder)
    for entry in listed:
        table = pathlib.Path(folder) / "published" / (entry["name"] + ".tsv")
        for key, found in readings(table, [key for key in entry if key.startswith("r")]):
            checked += 1
            if found != {entry[key]}:
                bad += 1
                print(f"{entry['name']}: {key} is {entry[key]}; read as {', '.join(sorted(found))}")
print(f"{len(listed)} tables, {checked} numbers, {bad} differ")
sys.exit(bool(bad))

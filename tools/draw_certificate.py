#!/usr/bin/env python3
"""draw_certificate.py RUNS OUT.svg: the picture of README, from the two runs that `make run` leaves.

Two test images with copies of them under noise, the votes and the radius of their rows in smoothadv's table, and
certified accuracy of both runs. Needs the Python package fedsmooth, for the pixels. The picture in the tree:

    build/fedsmooth sweep experiments/quickstart --out runs/quickstart
    tools/draw_certificate.py runs/quickstart docs/figures/certificate.svg
"""
import base64
import csv
import json
import pathlib
import struct
import sys
import zlib

import fedsmooth
import numpy as np

INK, GREY, BLUE, ORANGE, PALE = "#222", "#777", "#1f6fb4", "#d1701d", "#c9d6e2"
ROWS = (("stripes", 1.0), ("frame", 0.73))  # class and, about, the share of the votes that it has


def png(image):
    """A PNG file of bytes [H, W, 3]."""
    height, width, _ = image.shape
    lines = b"".join(b"\0" + line.tobytes() for line in image)

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)) +
            chunk(b"IDAT", zlib.compress(lines, 9)) + chunk(b"IEND", b""))


def picture(pixels, x, y, size):
    """`pixels`: floats [3, H, W] in [0, 1] and, under noise, beyond."""
    image = (255 * pixels.clip(0, 1)).round().astype(np.uint8).transpose(1, 2, 0)
    data = base64.b64encode(png(np.ascontiguousarray(image))).decode()
    return (f'<image x="{x}" y="{y}" width="{size}" height="{size}" image-rendering="pixelated" '
            f'style="image-rendering:pixelated" href="data:image/png;base64,{data}"/>')


def text(x, y, words, anchor="start", size=13, fill=INK, weight="normal"):
    return (f'<text x="{x}" y="{y}" text-anchor="{anchor}" font-size="{size}" fill="{fill}" '
            f'font-weight="{weight}">{words}</text>')


def read_rows(run):
    with open(run / "certificates.tsv") as table:
        return list(csv.DictReader(table, delimiter="\t"))


def choose(rows, label, share):
    """The correct row of a class whose share of votes is nearest to `share`."""
    of_class = [row for row in rows if row["label"] == str(label) and row["correct"] == "1"]
    return min(of_class, key=lambda row: abs(int(row["count_top"]) / int(row["n"]) - share))


def draw_row(row, classes, image, y, noise):
    name, n, sigma = classes[int(row["predict"])], int(row["n"]), float(row["sigma"])
    counts = [int(row["count_top"]), int(row["count_runner_up"])]
    counts.append(n - sum(counts))
    yield picture(image, 20, y, 104)
    for i in range(6):
        noisy = image + sigma * noise.standard_normal(image.shape)
        yield picture(noisy, 150 + 54 * (i % 3), y + 54 * (i // 3), 50)
    for i, (count, kind) in enumerate(zip(counts, (name, "next class", "all others"))):
        top = y + 4 + 25 * i
        yield text(402, top + 14, kind, "end", 12, INK if i == 0 else GREY)
        yield f'<rect x="410" y="{top}" width="{max(1, 130 * count / n):.1f}" height="19" fill="{BLUE if i == 0 else PALE}"/>'
        inside = count > 0.6 * n
        yield text(410 + 130 * count / n + (-6 if inside else 5), top + 14, f"{count:,}", "end" if inside else "start", 12,
                   "white" if inside else GREY)
    yield text(410, y + 98, f"{name}, proved within {row['radius'][:4]}", size=14, weight="bold")


def draw_curves(runs):
    left, right, top, bottom, limit = 640, 930, 50, 262, 0.8

    def at(radius, share):
        return f"{left + (right - left) * radius / limit:.1f},{bottom - (bottom - top) * share / 0.8:.1f}"

    for percent in (0, 20, 40, 60, 80):
        _, y = at(0, percent / 100).split(",")
        yield f'<line x1="{left}" y1="{y}" x2="{right}" y2="{y}" stroke="#ddd"/>' + text(left - 6, float(y) + 4, percent, "end", 12, GREY)
    for radius in (0, 0.25, 0.5, 0.75):
        x, _ = at(radius, 0).split(",")
        yield text(x, bottom + 18, f"{radius:g}", "middle", 12, GREY)
    yield text((left + right) / 2, bottom + 37, "l2 radius", "middle", 12, GREY)
    yield text(left - 24, top - 14, "test images certified (%)", size=12, fill=GREY)
    for name, words, colour, where in (("smoothadv", "Fed-SmoothAdv", BLUE, 0.17), ("standard", "ordinary training", ORANGE, 0.06)):
        radii = [float(row["radius"]) for row in runs[name] if row["correct"] == "1"]
        share = [sum(radius >= r for radius in radii) / len(runs[name]) for r in np.arange(0, limit, 0.002)]
        points = " ".join(at(r, s) for r, s in zip(np.arange(0, limit, 0.002), share))
        yield f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2.5"/>'
        x, y = at(where, share[int(where / 0.002)]).split(",")
        yield text(float(x) + 10, float(y) - 8, words, size=13, fill=colour, weight="bold")


def main(folder, out):
    runs = {name: read_rows(folder / name) for name in ("smoothadv", "standard")}
    classes = json.loads((folder / "smoothadv" / "certificates.json").read_text())["classes"]
    images, _ = fedsmooth.load_data("shapes")
    noise = np.random.default_rng(0)
    out_lines = ['<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 960 310" font-family="Helvetica, Arial, sans-serif">',
                 '<rect width="960" height="310" fill="white"/>',
                 text(72, 32, "an image", "middle", 13, GREY), text(229, 32, "noisy copies", "middle", 13, GREY),
                 text(410, 32, f"{int(runs['smoothadv'][0]['n']):,} votes", size=13, fill=GREY)]
    for (name, share), y in zip(ROWS, (48, 186)):
        row = choose(runs["smoothadv"], classes.index(name), share)
        pixels = images[int(row["idx"])].astype(np.float32) / 255
        out_lines += draw_row(row, classes, pixels, y, noise)
    out_lines += [*draw_curves(runs), "</svg>"]
    out.write_text("\n".join(out_lines) + "\n")


main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))

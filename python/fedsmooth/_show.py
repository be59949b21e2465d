"""Draws what notebooks show of tables: curves of certified accuracy as SVG, without gnuplot."""

import html
import math
import os
import pathlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from . import _core
    from ._table import Table

Curve = tuple[str, list[tuple[float, float]]]  # a name, and corners (radius, share) in ascending order

WIDTH, HEIGHT = 480, 280
LEFT, RIGHT, TOP, BOTTOM = 48, 468, 16, 232
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
MOST_POINTS = 400


@dataclass(frozen=True)
class Plot:
    """A picture, which notebooks show."""

    svg: str

    def save(self, path: str | os.PathLike[str]) -> None:
        pathlib.Path(path).write_text(self.svg)

    def _repr_html_(self) -> str:
        return self.svg

    def __repr__(self) -> str:
        return "Plot(shown by notebooks; .save(path) writes the SVG)"


def corners_of(table: "Table") -> list[tuple[float, float]]:
    """Returns the corners of a table's curve, which falls after each radius at which a correct image was certified."""
    radii = np.sort(table["radius"][table["correct"]])
    if len(radii) > MOST_POINTS:  # each point stands for those up to it, so that the curve is never too high
        radii = radii[np.linspace(0, len(radii) - 1, MOST_POINTS).astype(int)]
    return [(0.0, table.certified_accuracy(0.0))] + [(r, table.certified_accuracy(r)) for r in radii.tolist()]


def draw(curves: Sequence[Curve]) -> Plot:
    """Draws staircases of certified accuracy over l2 radius."""
    largest = max((points[-1][0] for _, points in curves), default=0.0)
    step = _tic(largest or 1.0)
    end = max(step, math.ceil(largest / step - 1e-9) * step)

    def x(radius: float) -> float:
        return LEFT + (RIGHT - LEFT) * radius / end

    def y(share: float) -> float:
        return BOTTOM - (BOTTOM - TOP) * share

    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT + 18 * len(curves)}" width="{WIDTH}" '
        'font-family="sans-serif" font-size="12" fill="currentColor" role="img" '
        'aria-label="certified accuracy over radius">'
    ]
    for share in (0, 0.25, 0.5, 0.75, 1):
        lines.append(
            f'<path d="M{LEFT},{y(share):.1f}H{RIGHT}" stroke="currentColor" stroke-opacity="0.15"/>'
            f'<text x="{LEFT - 6}" y="{y(share) + 4:.1f}" text-anchor="end">{share:.0%}</text>'
        )
    for i in range(round(end / step) + 1):
        lines.append(f'<text x="{x(i * step):.1f}" y="{BOTTOM + 18}" text-anchor="middle">{i * step:g}</text>')
    middle = (LEFT + RIGHT) / 2
    lines.append(
        f'<path d="M{LEFT},{TOP}V{BOTTOM}H{RIGHT}" fill="none" stroke="currentColor"/>'
        f'<text x="{middle}" y="{BOTTOM + 38}" text-anchor="middle">certified accuracy within this l2 radius</text>'
    )
    for i, (name, points) in enumerate(curves):
        colour = COLOURS[i % len(COLOURS)]
        height = points[0][1]
        path = f"M{x(0):.1f},{y(height):.1f}"
        for radius, share in points[1:]:  # a share holds between the previous radius and its own
            if share != height:
                path += f"V{y(share):.1f}"
            path += f"H{x(radius):.1f}"
            height = share
        lines.append(f'<path d="{path}V{y(0):.1f}" fill="none" stroke="{colour}" stroke-width="2"/>')
        below = HEIGHT + 18 * i
        lines.append(
            f'<path d="M{LEFT},{below - 4}h24" stroke="{colour}" stroke-width="3"/>'
            f'<text x="{LEFT + 32}" y="{below}">{html.escape(name)}</text>'
        )
    return Plot("\n".join(lines) + "\n</svg>")


def _tic(largest: float) -> float:
    """Returns a round distance between tics, at most seven of which reach `largest`."""
    power = 10.0 ** math.floor(math.log10(largest / 5))
    return next(m * power for m in (1, 2, 2.5, 5, 10) if m * power * 7 >= largest)


def table_html(table: "Table", name: str) -> str:
    radii = [0.0, 0.25, 0.5, 0.75, 1.0]
    cells = "".join(f"<td>{share:.1%}</td>" for share in table.certified_accuracy(radii).tolist())
    head = "".join(f"<th>{radius:g}</th>" for radius in radii)
    return (
        f"<p><b>{html.escape(name)}</b>: {len(table)} images, {table.abstained:.1%} abstained, "
        f"average certified radius {table.acr:.3f}</p>{draw([(name, corners_of(table))]).svg}"
        f"<table><tr><th>l2 radius</th>{head}</tr><tr><th>certified accuracy</th>{cells}</tr></table>"
    )


def comparison_html(found: "_core.Comparison") -> str:
    curves: list[Curve] = [
        (found.name_a, [(at.radius, at.a) for at in found.curve]),
        (found.name_b, [(at.radius, at.b) for at in found.curve]),
    ]
    rows = "".join(
        f"<tr><td>{at.radius:g}</td><td>{at.a:.1%}</td><td>{at.b:.1%}</td><td>{at.difference.value:+.1%} "
        f"[{at.difference.low:+.1%}, {at.difference.high:+.1%}]</td></tr>"
        for at in found.radii
    )
    warning = f"<p>{html.escape(found.warning)}</p>" if found.warning else ""
    return (
        f"<p>{found.images} images that both have</p>{warning}{draw(curves).svg}<table><tr><th>radius</th>"
        f"<th>{html.escape(found.name_a)}</th><th>{html.escape(found.name_b)}</th>"
        f"<th>difference, 95% interval</th></tr>{rows}</table>"
    )

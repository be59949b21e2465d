#!/usr/bin/env python3
"""compare_runs.py RESULTS CONTRASTS: differences in certified accuracy between runs of a sweep.

CONTRASTS is a TSV of three columns: what is compared, A and B. Prints a Markdown table of A - B in
points at radii 0, 0.25, ..., with 95% intervals over the choice of test images. The same images were
certified for both, so the interval is that of the mean of paired differences. A and B are names of
runs; several, with spaces between them, are runs with different seeds, of which the mean is taken, and
the interval is over the seeds too.
"""
import csv
import functools
import math
import pathlib
import statistics
import sys

RADII = (0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5)


@functools.cache
def read_radii(table):
    """Of each image, the radius at which it is right and certified; -1 if at none."""
    with open(table, newline="") as file:
        return {int(row["idx"]): float(row["radius_exact"]) if row["correct"] == "1" else -1.0
                for row in csv.DictReader(file, delimiter="\t")}


def certified(table, radius):
    return {image: found >= radius for image, found in read_radii(table).items()}


def find_tables(results, names):
    return [results / name / "certificates.tsv" for name in names.split()]


def certified_runs(tables, radius):
    runs = [certified(table, radius) for table in tables]
    if any(run.keys() != runs[0].keys() for run in runs):
        sys.exit(f"{tables[0]}: the tables that it is compared with have other images")
    return runs


def over_seeds(runs):
    """Variance of the mean accuracy of runs with different seeds; one run tells nothing about it."""
    if len(runs) == 1:
        return 0.0
    return statistics.variance(statistics.fmean(run.values()) for run in runs) / len(runs)


def contrast(a, b, radius):
    """Mean paired difference and half of its 95% interval, in points."""
    runs = certified_runs(a + b, radius)
    left, right = runs[: len(a)], runs[len(a):]
    differences = [statistics.fmean(run[i] for run in left) - statistics.fmean(run[i] for run in right)
                   for i in runs[0]]
    over_images = statistics.variance(differences) / len(differences)
    return (100 * statistics.fmean(differences),
            196 * math.sqrt(over_images + over_seeds(left) + over_seeds(right)))


def largest_radius(tables):
    return max(radius for table in tables for radius in read_radii(table).values())


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    results = pathlib.Path(sys.argv[1])
    print("| A - B, in points | " + " | ".join(f"{r:.2f}" for r in RADII) + " |")
    print("|---" * (len(RADII) + 1) + "|")
    with open(sys.argv[2], newline="") as file:
        for what, a, b in csv.reader(file, delimiter="\t"):
            left, right = find_tables(results, a), find_tables(results, b)
            largest = largest_radius(left + right)
            cells = []
            for radius in RADII:
                if radius > max(largest, 0):
                    cells.append("")
                    continue
                difference, half = contrast(left, right, radius)
                cells.append(f"{difference:+.1f} ± {half:.1f}")
            print(f"| {what} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()

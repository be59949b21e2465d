#!/usr/bin/env python3
"""compare_runs.py RESULTS CONTRASTS: differences in certified accuracy between runs of a sweep.

CONTRASTS is a TSV of three columns: what is compared, A and B. Prints a Markdown table of A - B in
points at radii 0, 0.25, ..., with 95% intervals over the choice of test images. The same images were
certified for both, so the differences are paired. A and B are names of runs; several, with spaces
between them, are runs with different seeds, of which the mean is taken, and the interval is over the
seeds too.
"""
import csv
import functools
import math
import pathlib
import statistics
import sys
import tarfile

RADII = (0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5)
# Discordant images. With fewer, intervals by t may miss almost always; used from here on only, they cover at
# least 92.5%, summed over all outcomes for 500 images.
FEW = 10
NOTE = f"""
95% intervals over the choice of test images. With several seeds they are over the seeds too, with one they are not.
±: by Student's t. In brackets: exact, as the runs differ on fewer than {FEW} images; these always contain 0."""


@functools.cache
def open_archive(path):
    return tarfile.open(path)


def read_text(table):
    """The file, or that of the runs.tar.gz of the nearest folder above it that exists."""
    if table.exists():
        return table.read_text()
    folder = next(parent for parent in table.parents if parent.exists())
    try:
        member = open_archive(folder / "runs.tar.gz").extractfile(table.relative_to(folder).as_posix())
    except (FileNotFoundError, KeyError):
        sys.exit(f"{table}: no such file, and {folder / 'runs.tar.gz'} does not have it")
    return member.read().decode()


@functools.cache
def read_radii(table):
    """The radius at which each image is right and certified; -1 if there is none."""
    lines = read_text(pathlib.Path(table)).splitlines()
    for line in lines:
        if line.startswith("void"):
            sys.exit(f"{table}: the table is void ({line[4:].strip()})")
    return {int(row["idx"]): float(row["radius_exact"]) if row["correct"] == "1" else -1.0
            for row in csv.DictReader(lines, delimiter="\t")}


def certified(table, radius):
    return {image: found >= radius for image, found in read_radii(table).items()}


def find_tables(results, names):
    return [results / name / "certificates.tsv" for name in names.split()]


def certified_runs(tables, radius):
    runs = [certified(table, radius) for table in tables]
    if any(run.keys() != runs[0].keys() for run in runs):
        sys.exit(f"{tables[0]}: the tables that it is compared with have other images")
    return runs


def last_true(holds, low, high):
    """Where `holds`, true at low, becomes false."""
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return high


def t_within(t, freedom):
    """Probability that Student's t lies within ± t: with t = sqrt(freedom) tan a, Simpson's rule over a."""
    step = math.atan(t / math.sqrt(freedom)) / 200
    f = [math.cos(i * step) ** (freedom - 1) for i in range(201)]
    part = step / 3 * (f[0] + 4 * sum(f[1::2]) + 2 * sum(f[2:-1:2]) + f[-1])
    whole = math.sqrt(math.pi) * math.exp(math.lgamma(freedom / 2) - math.lgamma((freedom + 1) / 2)) / 2
    return part / whole


@functools.cache
def t_quantile(freedom):
    """95% of Student's t lie within ± this."""
    return last_true(lambda t: t_within(t, freedom) < 0.95, 0.0, 100.0)


def at_most(k, n, p):
    """Probability of at most k successes in n trials."""
    return sum(math.comb(n, i) * p**i * (1 - p) ** (n - i) for i in range(k + 1))


@functools.cache
def share_at_most(k, n):
    """Clopper and Pearson's upper bound on a share of which k in n were seen, at 97.5%."""
    return last_true(lambda p: at_most(k, n, p) > 0.025, k / n, 1.0)


def exact_interval(differences):
    """Ends of a conservative 95% interval that holds for any number of images and discordant ones."""
    # The mean difference is at most the share of images on which A is better, and at least minus the share on
    # which B is. Each share has a Clopper-Pearson bound that holds at 97.5%, so that both hold at 95%.
    # Such an interval contains 0: it bounds a difference, and does not test for one.
    n = len(differences)
    better, worse = sum(d > 0 for d in differences), sum(d < 0 for d in differences)
    return -share_at_most(worse, n), share_at_most(better, n)


def over_seeds(runs):
    """Variance of the mean accuracy of runs with different seeds, and its degrees of freedom."""
    # Images that flip between seeds count here and in the variance over images: the sum is rather too large.
    if len(runs) == 1:
        return 0.0, 1  # one run says nothing about it
    return statistics.variance(statistics.fmean(run.values()) for run in runs) / len(runs), len(runs) - 1


def half_width(differences, left, right):
    """Of the 95% interval by Student's t, with Welch and Satterthwaite's degrees of freedom."""
    n = len(differences)
    parts = [(statistics.variance(differences) / n, n - 1), over_seeds(left), over_seeds(right)]
    variance = sum(part for part, _ in parts)
    freedom = variance**2 / sum(part**2 / own for part, own in parts)
    return t_quantile(freedom) * math.sqrt(variance)


def contrast(a, b, radius):
    """Mean paired difference with its 95% interval, in points, as a cell of the table."""
    runs = certified_runs(a + b, radius)
    left, right = runs[: len(a)], runs[len(a):]
    differences = [statistics.fmean(run[i] for run in left) - statistics.fmean(run[i] for run in right)
                   for i in runs[0]]
    mean = 100 * statistics.fmean(differences)
    disputed = sum(len({run[i] for run in runs}) > 1 for i in runs[0])
    if disputed < FEW or len(set(differences)) == 1:
        low, high = exact_interval(differences)
        return f"{mean:+.1f} ({100 * low:+.1f} to {100 * high:+.1f})"
    return f"{mean:+.1f} ± {100 * half_width(differences, left, right):.1f}"


def largest_radius(tables):
    return max(radius for table in tables for radius in read_radii(table).values())


def table_row(what, a, b):
    largest = max(largest_radius(a + b), 0)
    seeds = f"{len(a)}" if len(a) == len(b) else f"{len(a)} and {len(b)}"
    cells = [contrast(a, b, radius) if radius <= largest else "" for radius in RADII]
    return [what, str(len(read_radii(a[0]))), seeds, *cells]


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    results = pathlib.Path(sys.argv[1])
    with open(sys.argv[2], newline="") as file:
        rows = [table_row(what, find_tables(results, a), find_tables(results, b))
                for what, a, b in csv.reader(file, delimiter="\t")]
    print("| A - B, in points | images | seeds | " + " | ".join(f"{r:.2f}" for r in RADII) + " |")
    print("|---" * (len(RADII) + 3) + "|")
    for row in rows:
        print("| " + " | ".join(row) + " |")
    print(NOTE)


if __name__ == "__main__":
    main()

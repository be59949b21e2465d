#!/usr/bin/env python3
"""Do the numbers on the pages of results/, and those that other pages take from there, follow from the tables?

Rows of a page's tables are found by their first cell: the name of a run, or a name that a comment above the
table gives to one:

    <!-- runs
    PyTorch, seed 0 = pytorch/gaussian-seed0.tsv
    -->

RUN@M is a run of several groups against M malicious clients. `A - B` in place of a run is a row of paired differences
on the images that both have.

Cells below a radius, with their intervals, `ACR` and `images` are computed anew. Of a grid, whose cells are certified %
at radius 0 and at 0.5, the comment names the run of each row, with * for the column:

    <!-- grid
    average = rules-gamma0.1-*-average
    -->

Sentences of any page that state such numbers are listed in STATED.
"""

import collections
import csv
import functools
import math
import pathlib
import re
import statistics
import sys
import tarfile
import unittest

SOURCE = pathlib.Path(__file__).parents[2]
sys.path.insert(0, str(SOURCE / "tools"))
import compare_runs  # noqa: E402

RESULTS = SOURCE / "results"
PAPER, RECIPE = "paper:homogeneous-every1-only_correct-stochastic", "recipe:best-gamma0.1-every1-only_correct"
CENTRALIZED = "paper:centralized-every1-only_correct-stochastic"
NONE, FIVE = (f"groups:groups-count20-gamma0.1@{malicious}" for malicious in (0, 5))
# Page, words, and for each number with a decimal among them the run and the radius that it is about, or the difference
# of two runs; a third value is an end of the 95% interval, 0 or 1, or ±,
# half of a paired difference's. None: no kept table has it.
STATED = [
    ("README.md", "federated training certifies 47.2% of the images at radius 0 and 29.2% at 0.75 (centralized: 58.0% and "
     "23.3%). A better recipe certifies 60.6% and 33.9%.",
     [(PAPER, 0), (PAPER, 0.75), None, (CENTRALIZED, 0), (CENTRALIZED, 0.75), (RECIPE, 0), (RECIPE, 0.75)]),
    ("results/README.md", "It certifies 60.6% instead of 47.2% at radius 0 and 33.9% instead of 29.2% at 0.75",
     [(RECIPE, 0), (PAPER, 0), (RECIPE, 0.75), (PAPER, 0.75), None]),
    ("results/README.md", "centralized training in the paper's setting has 58.0% and 23.3%.",
     [(CENTRALIZED, 0), (CENTRALIZED, 0.75)]),
    ("results/README.md", "A federated ResNet-20 certifies 66.0% at radius 0 and 39.4% at 0.75.",
     [("resnet:federated", 0), ("resnet:federated", 0.75), None]),
    ("README.md", "certifies 48.4% (42.1 to 54.8) at radius 0.25 against any 5 of 1,000 clients",
     [(FIVE, 0.25), (FIVE, 0.25, 0), (FIVE, 0.25, 1), None]),
    ("results/README.md", "it certifies 58.4% (52.0 to 64.6) at radius 0.25 against none, and 48.4% (42.1 to 54.8) against 5 of the 1,000",
     [(NONE, 0.25), (NONE, 0.25, 0), (NONE, 0.25, 1), None, (FIVE, 0.25), (FIVE, 0.25, 0), (FIVE, 0.25, 1)]),
    ("docs/method.md", "certifies 58.4% of 250 images at radius 0.25 against m = 0 and 48.4% against m = 5",
     [(NONE, 0.25), None, (FIVE, 0.25)]),
    ("results/groups/README.md", "The run has 48.4%, with an interval from 42.1 to 54.8",
     [(FIVE, 0.25), (FIVE, 0.25, 0), (FIVE, 0.25, 1)]),
    ("results/groups/README.md", "cost 10.0 ± 3.7 points** at radius 0.25, and 7.2 ± 3.2 at radius 0.",
     [(f"{NONE} - {FIVE}", 0.25), (f"{NONE} - {FIVE}", 0.25, "±"), None, (f"{NONE} - {FIVE}", 0), (f"{NONE} - {FIVE}", 0, "±")]),
    ("docs/faq.md", "a model's certified accuracy is 60.6%, 52.4%, 43.1% and 34.0% with 100,000 votes, and 60.6%, 52.5%, 43.2% and 34.4% with a "
     "million", [None] * 4 + [("million:.", radius) for radius in (0, 0.25, 0.5, 0.75)]),
    ("docs/faq.md", "certifies 5.8 ± 2.6 points less than 0.25 at radius 0, and 19.0 ± 3.5 more at radius 1",
     [("paper:homogeneous-sigma0.25-epsilon0.5-stochastic - paper:homogeneous-sigma0.5-epsilon0.5-stochastic", 0), None, None,
      ("paper:homogeneous-sigma0.5-epsilon0.5-stochastic - paper:homogeneous-sigma0.25-epsilon0.5-stochastic", 1), None]),
]


@functools.cache
def tables(study):
    """Every table of a study, by run or file."""
    found = {}
    archive = RESULTS / study / "runs.tar.gz"
    if archive.exists():
        with tarfile.open(archive) as runs:
            for name in runs.getnames():
                if name.endswith(".tsv") and not name.endswith(("/clients.tsv", "/rounds.tsv")):
                    found[name.removesuffix("/certificates.tsv")] = runs.extractfile(name).read().decode()
    elif (RESULTS / study / "certificates.tsv").exists():
        found["."] = (RESULTS / study / "certificates.tsv").read_text()
    return found


@functools.cache
def rows_of(study, run):
    return list(csv.DictReader(tables(study)[run].splitlines(), delimiter="\t"))


def binomial(k, n, p):
    """Probability of k successes in n trials."""
    ways = math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
    return math.exp(ways + k * math.log(p) + (n - k) * math.log1p(-p))


def summed(terms):
    """Sum of terms that fall from the first on."""
    total = 0.0
    for term in terms:
        total += term
        if term < 1e-12 * total:
            break
    return total


@functools.cache
def votes_needed(n, p, alpha):
    """The least number of n votes from which Clopper and Pearson's lower bound at alpha is p or more."""
    tail = 0.0
    for k in range(n, -1, -1):
        tail += binomial(k, n, p)
        if tail > alpha:
            return k + 1
    return 0


def radius_of(row):
    """Within which a row is right; -1 if it is not."""
    return float(row["radius_exact"]) if row["correct"] == "1" else -1.0


def withstands(row, malicious, radius):
    """Is the row's class right, and the majority's within this radius against so many malicious clients?"""
    if malicious is None:
        return radius_of(row) >= radius
    votes = sum(int(count) for count in row["gaps"].split(",")[2 * malicious:-1])
    p = statistics.NormalDist().cdf(radius / float(row["sigma"]))
    return row["selected"] == row["label"] and votes >= votes_needed(int(row["n"]), p, float(row["alpha"]))


@functools.cache
def certified_images(study, run, radius):
    """For each image, whether it is certified. The run may end in @ and a number of malicious clients."""
    name, _, malicious = run.partition("@")
    return {row["idx"]: withstands(row, int(malicious) if malicious else None, radius) for row in rows_of(study, name)}


def certified(study, run, radius):
    found = certified_images(study, run, radius).values()
    return f"{100 * (sum(found) / len(found)):.1f}"


@functools.cache
def most_likely_share(k, n):
    """Clopper and Pearson's upper bound at 97.5% on a share of which k in n were seen."""
    return 1.0 if k == n else compare_runs.last_true(
        lambda p: summed(binomial(i, n, p) for i in range(k, -1, -1)) > 0.025, max(k, 0.5) / n, 1.0)


def interval(study, run, radius):
    """Ends of the 95% interval of a certified accuracy."""
    found = certified_images(study, run, radius).values()
    ends = 1 - most_likely_share(len(found) - sum(found), len(found)), most_likely_share(sum(found), len(found))
    return [f"{100 * end:.1f}" for end in ends]


def paired(a, b, radius):
    """The difference of two runs, each a study and a run, on the images that both have."""
    a, b = (certified_images(*run, radius) for run in (a, b))
    found = [a[image] - b[image] for image in a.keys() & b.keys()]
    assert sum(map(abs, found)) >= compare_runs.FEW, "an interval by t needs more images on which the runs differ"
    half = compare_runs.t_quantile(len(found) - 1) * statistics.stdev(found) / math.sqrt(len(found))
    return f"{100 * statistics.fmean(found):+.1f} ± {100 * half:.1f}"


def stated(runs, radius, end=None):
    """A run's accuracy, an end of its interval, the accuracy of `A - B`, or half of that interval."""
    if end == "±":
        return paired(*(name.split(":") for name in runs.split(" - ")), radius).split()[-1]
    if end is not None:
        return interval(*runs.split(":"), radius)[end]
    shares = [float(certified(*name.split(":"), radius)) for name in runs.split(" - ")]
    return f"{shares[0] - sum(shares[1:]):.1f}"


def words_of(page):
    return " ".join((SOURCE / page).read_text().split())


def expected(study, run, column):
    """What a cell below this heading must begin with; None if the column is not about the table."""
    if re.fullmatch(r"\d\.\d\d", column):
        return certified(study, run, float(column))
    rows = rows_of(study, run.partition("@")[0])
    if column == "ACR":
        return f"{statistics.fmean(max(radius_of(row), 0.0) for row in rows):.3f}"
    return str(len(rows)) if column == "images" else None


def full_name(study, run):
    """A run's study and name; without a study the run is of the page's own."""
    other, _, name = run.rpartition(":")
    return other or study, name


def exists(study, run):
    return run.partition("@")[0] in tables(study)


def cells_of(line):
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip())[1:-1]]


def tables_of(page):
    """Each Markdown table of a page: the comment above it, its headings, its rows."""
    lines = page.read_text().splitlines()
    comment = ("", [])
    i = 0
    while i < len(lines):
        if begin := re.fullmatch(r"<!-- (runs|grid)", lines[i]):
            names = []
            for i in range(i + 1, len(lines)):
                if lines[i] == "-->":
                    break
                name, _, run = lines[i].rpartition(" = ")
                names.append((name, run))
            comment = (begin[1], names)
        elif lines[i].startswith("|") and i + 1 < len(lines) and lines[i + 1].startswith("|--"):
            end = next((j for j in range(i, len(lines)) if not lines[j].startswith("|")), len(lines))
            yield *comment, cells_of(lines[i]), [cells_of(line) for line in lines[i + 2:end]]
            comment, i = ("", []), end
        i += 1


def plain(cell):
    return cell.replace("\\_", "_").replace("`", "").replace("**", "")


class ResultsPagesTest(unittest.TestCase):
    def check_row(self, study, run, headings, cells, where):
        checked = 0
        for heading, cell in zip(headings[1:], cells[1:]):
            value = expected(study, run, heading)
            if value is None or not cell:
                continue
            self.assertEqual(cell.replace(",", "").split()[0], value, f"{where}: {cells[0]}, below {heading}")
            checked += 1
            if ends := re.search(r"\((\d+\.\d)–(\d+\.\d)\)", cell):
                self.assertEqual(list(ends.groups()), interval(study, run, float(heading)),
                                 f"{where}: {cells[0]}, interval below {heading}")
                checked += 2
        return checked

    def check_differences(self, a, b, headings, cells, where):
        for heading, cell in zip(headings[1:], cells[1:]):
            self.assertEqual(cell, paired(a, b, float(heading)), f"{where}: {cells[0]}, below {heading}")
        return 2 * len(cells[1:])

    def check_grid(self, study, pattern, headings, cells, where):
        checked = 0
        for heading, cell in zip(headings[1:], cells[1:]):
            run = pattern.replace("*", heading.split("`")[1] if "`" in heading else heading)
            if " / " not in cell or run not in tables(study):
                continue
            value = f"{certified(study, run, 0.0)} / {certified(study, run, 0.5)}"
            self.assertEqual(cell, value, f"{where}: {cells[0]}, below {heading}")
            checked += 2
        return checked

    def test_numbers_follow_from_the_tables(self):
        checked = {}
        for page in [RESULTS / "README.md", *sorted(RESULTS.glob("*/*.md"))]:
            study = page.parent.name
            for kind, names, headings, rows in tables_of(page):
                where = page.relative_to(RESULTS)
                names = collections.deque(names)
                for cells in rows:
                    run = plain(cells[0])
                    named = names and names[0][0] == run  # in the order of the rows, as two may have one name
                    if named:
                        run = names.popleft()[1]
                    runs = [full_name(study, one) for one in run.split(" - ")]
                    if kind == "grid":
                        found = self.check_grid(study, run, headings, cells, where)
                    elif all(exists(*one) for one in runs):
                        check = self.check_differences if len(runs) == 2 else self.check_row
                        found = check(*(runs if len(runs) == 2 else runs[0]), headings, cells, where)
                    else:
                        self.assertFalse(named, f"{where}: there is no run {run}")
                        found = 0
                    checked[study] = checked.get(study, 0) + found
                self.assertFalse(names, f"{where}: names without a row")
        for study, least in {"federations": 700, "frontier": 20, "groups": 140, "million": 5, "paper": 500, "readings": 50,
                             "recipe": 200, "resnet": 40, "results": 9, "zoo": 100}.items():
            self.assertGreaterEqual(checked.get(study, 0), least, study)

    def test_sentences_state_the_numbers_of_the_tables(self):
        for page, words, sources in STATED:
            self.assertIn(words, words_of(page), f"{page}: the sentence was changed; change STATED with it")
            numbers = re.findall(r"\d+\.\d+", words)
            self.assertEqual(len(numbers), len(sources), words)
            for number, source in zip(numbers, sources):
                if source is not None:
                    self.assertEqual(number, stated(*source), f"{page}: {words}")

    def test_both_pages_state_the_same_quick_start(self):
        printed = re.findall(r"^ +0\.\d\d +(\d+\.\d) +\d+\.\d to", (SOURCE / "README.md").read_text(), re.M)
        page = SOURCE / "experiments/quickstart/README.md"
        rows = {cells[0]: cells[1:] for *_, rows in tables_of(page) for cells in rows}
        self.assertEqual(rows["smoothadv"], printed)


if __name__ == "__main__":
    unittest.main()

#!/usr/bin/env python3
"""Do the numbers on the pages of results/, and those that other pages take from there, follow from the tables?

Rows of a page's tables are found by their first cell: the name of a run, or a name that a comment above the
table gives to one:

    <!-- runs
    PyTorch, seed 0 = pytorch/gaussian-seed0.tsv
    -->

Cells below a radius, `ACR` and `images` are computed anew. Of a grid, whose cells are certified % at radius 0 and at
0.5, the comment names the run of each row, with * for the column:

    <!-- grid
    average = rules-gamma0.1-*-average
    -->

Sentences of any page that state such numbers are listed in STATED.
"""

import collections
import csv
import functools
import pathlib
import re
import tarfile
import unittest

SOURCE = pathlib.Path(__file__).parents[2]
RESULTS = SOURCE / "results"
PAPER, RECIPE = "paper:homogeneous-every1-only_correct-stochastic", "recipe:best-gamma0.1-every1-only_correct"
CENTRALIZED = "paper:centralized-every1-only_correct-stochastic"
# Page, words, and for each number with a decimal among them the run and the radius that it is about, or the difference
# of two runs. None: no kept table has it.
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
def radii(study, run):
    """Of each image the radius within which it is right; -1 if it is not."""
    rows = csv.DictReader(tables(study)[run].splitlines(), delimiter="\t")
    return [float(row["radius_exact"]) if row["correct"] == "1" else -1.0 for row in rows]


def certified(study, run, radius):
    found = radii(study, run)
    return f"{100 * (sum(r >= radius for r in found) / len(found)):.1f}"


def stated(runs, radius):
    """A run's accuracy, or that of `A - B`."""
    shares = [float(certified(*name.split(":"), radius)) for name in runs.split(" - ")]
    return f"{shares[0] - sum(shares[1:]):.1f}"


def words_of(page):
    return " ".join((SOURCE / page).read_text().split())


def expected(study, run, column):
    """What a cell below this heading must begin with; None if the column is not about the table."""
    if re.fullmatch(r"\d\.\d\d", column):
        return certified(study, run, float(column))
    if column == "ACR":
        found = radii(study, run)
        return f"{sum(max(r, 0.0) for r in found) / len(found):.3f}"
    return str(len(radii(study, run))) if column == "images" else None


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
        return checked

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
                    other, run = "", plain(cells[0])
                    named = names and names[0][0] == run  # in the order of the rows, as two may have one name
                    if named:
                        other, _, run = names.popleft()[1].rpartition(":")
                    if kind == "grid":
                        found = self.check_grid(study, run, headings, cells, where)
                    elif run in tables(other or study):
                        found = self.check_row(other or study, run, headings, cells, where)
                    else:
                        self.assertFalse(named, f"{where}: there is no run {run}")
                        found = 0
                    checked[study] = checked.get(study, 0) + found
                self.assertFalse(names, f"{where}: names without a row")
        for study, least in {"federations": 700, "frontier": 20, "million": 5, "paper": 500, "readings": 50,
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

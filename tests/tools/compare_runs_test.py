#!/usr/bin/env python3
"""Does tools/compare_runs.py give the differences and intervals that follow from the tables?"""

import importlib.util
import math
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest

TOOL = pathlib.Path(__file__).parents[2] / "tools" / "compare_runs.py"


def load_tool():
    sys.dont_write_bytecode = True
    spec = importlib.util.spec_from_file_location("compare_runs", TOOL)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def write_run(folder, name, radii, last=""):
    """A radius for each image; None: wrong."""
    (folder / name).mkdir()
    rows = ["idx\tcorrect\tradius_exact"]
    for i, radius in enumerate(radii):
        rows.append(f"{i}\t{int(radius is not None)}\t{radius or 0}")
    (folder / name / "certificates.tsv").write_text("\n".join(rows) + "\n" + last)


class IntervalTest(unittest.TestCase):
    tool = load_tool()

    def test_t_quantiles_are_those_of_the_tables(self):
        for freedom, quantile in ((1, 12.706205), (2, 4.302653), (3, 3.182446), (4, 2.776445),
                                  (10, 2.228139), (30, 2.042272), (120, 1.979930), (9999, 1.960201)):
            self.assertAlmostEqual(self.tool.t_quantile(freedom), quantile, delta=1e-6)

    def test_two_degrees_of_freedom_have_a_closed_form(self):
        for t in (0.5, 2.0, 10.0):
            self.assertAlmostEqual(self.tool.t_within(t, 2), t / math.sqrt(2 + t * t), delta=1e-9)

    def test_broken_degrees_of_freedom_lie_between_whole_ones(self):
        self.assertAlmostEqual(self.tool.t_quantile(2.5), 3.574655, delta=1e-6)

    def test_upper_bounds_solve_their_equation(self):
        self.assertAlmostEqual(self.tool.share_at_most(0, 500), 1 - 0.025 ** (1 / 500), delta=1e-12)
        p = self.tool.share_at_most(1, 500)
        self.assertAlmostEqual((1 - p) ** 499 * (1 + 499 * p), 0.025, delta=1e-9)
        self.assertEqual(self.tool.share_at_most(4, 4), 1.0)

    def test_no_discordant_image_leaves_0_7_points(self):
        low, high = self.tool.exact_interval([0] * 500)
        self.assertAlmostEqual(low, -0.00735, delta=5e-6)
        self.assertAlmostEqual(high, 0.00735, delta=5e-6)

    def test_one_discordant_image_leaves_1_1_points_on_its_side(self):
        low, high = self.tool.exact_interval([1] + [0] * 499)
        self.assertAlmostEqual(low, -0.00735, delta=5e-6)
        self.assertAlmostEqual(high, 0.01109, delta=5e-6)

    def test_exact_intervals_miss_at_most_five_percent(self):
        # Of 50 images A is better on a share p, B on a share q: all outcomes, with their probabilities.
        n = 50
        for p, q in ((0.02, 0.02), (0.06, 0.01), (0.1, 0.0), (0.15, 0.1)):
            missed = 0.0
            for b in range(n + 1):
                for c in range(n + 1 - b):
                    low, high = -self.tool.share_at_most(c, n), self.tool.share_at_most(b, n)
                    if not low <= p - q <= high:
                        ways = math.comb(n, b) * math.comb(n - b, c)
                        missed += ways * p**b * q**c * (1 - p - q) ** (n - b - c)
            self.assertLess(missed, 0.05)


class CompareRunsTest(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.addCleanup(self.temporary.cleanup)
        self.folder = pathlib.Path(self.temporary.name)
        write_run(self.folder, "a", [0.3, 0.3, None, 0.3])
        write_run(self.folder, "b", [0.2, None, None, 0.25])
        write_run(self.folder, "nothing", [None] * 4)
        write_run(self.folder, "fewer", [0.3])
        write_run(self.folder, "first60", [0.3] * 60 + [None] * 40)
        write_run(self.folder, "first40", [0.3] * 40 + [None] * 60)
        write_run(self.folder, "first20", [0.3] * 20 + [None] * 80)

    def compare(self, a, b):
        contrasts = self.folder / "contrasts.tsv"
        contrasts.write_text(f"what\t{a}\t{b}\n")
        return subprocess.run([sys.executable, TOOL, self.folder, contrasts], text=True,
                              capture_output=True, check=False)

    def cells(self, a, b):
        return [cell.strip() for cell in self.compare(a, b).stdout.splitlines()[2].split("|")[2:-1]]

    def test_few_discordant_images_have_exact_intervals(self):
        # At 0 the differences are 0, 1, 0, 0; at 0.25 they are 1, 1, 0, 0. Bounds of 0, 1 and 2 of 4 at 97.5%:
        # 0.602, 0.806, 0.932.
        self.assertEqual(self.cells("a", "b"),
                         ["4", "1", "+25.0 (-60.2 to +80.6)", "+50.0 (-60.2 to +93.2)"] + [""] * 5)
        self.assertEqual(self.cells("b", "a")[2], "-25.0 (-80.6 to +60.2)")

    def test_many_have_the_interval_of_a_mean(self):
        # 1 for 40 of 100 images: a variance of 0.24 / 99, and t of 99 degrees of freedom is 1.984.
        self.assertEqual(self.cells("first60", "first20")[2], "+40.0 ± 9.8")
        self.assertEqual(self.cells("first20", "first60")[2], "-40.0 ± 9.8")

    def test_several_runs_are_taken_by_their_mean(self):
        # 20 images with 0.5 and 20 with 1: a variance of 0.16 / 99. The accuracies 0.4 and 0.2 add 0.01, with one
        # degree of freedom. Together 0.0116 with 1.35, of which t is 7.06.
        self.assertEqual(self.cells("first60", "first40 first20")[:3], ["100", "1 and 2", "+30.0 ± 76.1"])

    def test_nothing_certified_is_no_difference(self):
        self.assertEqual(self.cells("nothing", "nothing")[2], "+0.0 (-60.2 to +60.2)")

    def test_runs_that_differ_on_every_image_have_an_interval(self):
        write_run(self.folder, "all", [0.3] * 12)
        write_run(self.folder, "none", [None] * 12)
        self.assertEqual(self.cells("all", "none")[2], "+100.0 (-26.5 to +100.0)")

    def test_columns_may_be_added(self):
        table = self.folder / "a" / "certificates.tsv"
        before = self.cells("a", "b")
        lines = table.read_text().splitlines()
        more = [lines[0] + "\tnoise\tlate"] + [line + "\texact\t1" for line in lines[1:]]
        table.write_text("\n".join(more) + "\n")
        self.assertEqual(self.cells("a", "b"), before)

    def test_runs_may_be_kept_in_an_archive(self):
        apart = self.cells("a", "b")
        with tarfile.open(self.folder / "runs.tar.gz", "w:gz") as archive:
            for name in ("a", "b"):
                archive.add(self.folder / name, arcname=name)
                shutil.rmtree(self.folder / name)
        self.assertEqual(self.cells("a", "b"), apart)
        self.assertIn("does not have it", self.compare("a", "c").stderr)

    def test_other_images_are_refused(self):
        refused = self.compare("a", "fewer")
        self.assertEqual(refused.returncode, 1)
        self.assertIn("other images", refused.stderr)

    def test_a_void_table_is_refused(self):
        write_run(self.folder, "void", [0.3] * 4, "void\tthe classifier changed its answers\n")
        refused = self.compare("a", "void")
        self.assertEqual(refused.returncode, 1)
        self.assertIn("void (the classifier changed its answers)", refused.stderr)
        self.assertEqual(refused.stdout, "")


if __name__ == "__main__":
    unittest.main()

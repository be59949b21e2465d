#!/usr/bin/env python3
"""Does tools/compare_runs.py give the differences and intervals that follow from the tables?"""

import pathlib
import subprocess
import sys
import tempfile
import unittest

TOOL = pathlib.Path(__file__).parents[2] / "tools" / "compare_runs.py"


def write_run(folder, name, radii):
    """A radius for each image; None: wrong."""
    (folder / name).mkdir()
    rows = ["idx\tcorrect\tradius_exact"]
    for i, radius in enumerate(radii):
        rows.append(f"{i}\t{int(radius is not None)}\t{radius or 0}")
    (folder / name / "certificates.tsv").write_text("\n".join(rows) + "\n")


class CompareRunsTest(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.addCleanup(self.temporary.cleanup)
        self.folder = pathlib.Path(self.temporary.name)
        write_run(self.folder, "a", [0.3, 0.3, None, 0.3])
        write_run(self.folder, "b", [0.2, None, None, 0.25])
        write_run(self.folder, "b2", [None, None, None, 0.25])
        write_run(self.folder, "nothing", [None, None, None, None])
        write_run(self.folder, "fewer", [0.3])

    def compare(self, a, b):
        contrasts = self.folder / "contrasts.tsv"
        contrasts.write_text(f"what\t{a}\t{b}\n")
        return subprocess.run([sys.executable, TOOL, self.folder, contrasts], text=True,
                              capture_output=True, check=False)

    def cells(self, a, b):
        return [cell.strip() for cell in self.compare(a, b).stdout.splitlines()[2].split("|")[2:-1]]

    def test_differences_are_paired(self):
        # At 0 the differences are 0, 1, 0, 0; at 0.25 they are 1, 1, 0, 0.
        self.assertEqual(self.cells("a", "b"), ["+25.0 ± 49.0", "+50.0 ± 56.6"] + [""] * 5)
        self.assertEqual(self.cells("b", "a")[0], "-25.0 ± 49.0")

    def test_several_runs_are_taken_by_their_mean(self):
        # 0.5, 1, 0, 0; the accuracies 0.5 and 0.25 of the seeds add a variance of 1/64.
        self.assertEqual(self.cells("a", "b b2")[0], "+37.5 ± 52.9")

    def test_nothing_certified_is_no_difference(self):
        self.assertEqual(self.cells("nothing", "nothing")[0], "+0.0 ± 0.0")

    def test_other_images_are_refused(self):
        refused = self.compare("a", "fewer")
        self.assertEqual(refused.returncode, 1)
        self.assertIn("other images", refused.stderr)


if __name__ == "__main__":
    unittest.main()

#!/usr/bin/env python3
"""page_test.py PROGRAM: pages that the program writes, opened by tools/check_page.py. Skipped (77) without Chromium."""
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).parents[2]
PROGRAM = pathlib.Path(sys.argv.pop(1)).absolute()
EXPERIMENT = """
[data]
name = "shapes"
[partition]
clients = 8
samples_per_client = 20
[model]
name = "small"
[train]
rounds = 3
clients_per_round = 2
[train.local]
steps = 2
batch = 4
[attack]
steps = 1
[certify]
n0 = 10
n = 200
every = 100
"""


class PageTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)

    def run_program(self, *words):
        done = subprocess.run([PROGRAM, *words, "--device", "cpu", "--quiet"], cwd=self.folder, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)

    def check(self, page, *parts):
        text = page.read_text()
        for part in parts:
            self.assertIn(part, text)
        done = subprocess.run([sys.executable, SOURCE / "tools/check_page.py", page], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def train(self, name, *more):
        (self.folder / "e.toml").write_text(EXPERIMENT)
        self.run_program("train", "e.toml", "--out", name, *more)
        self.run_program("certify", name)

    def test_a_run_and_its_attack(self):
        self.train("run")
        self.run_program("attack", "run", "--epsilon", "0.25", "--limit", "3", "--n", "100")
        self.run_program("report", "run")
        self.check(self.folder / "run/report.html", "The attack in training", "By client", "attacked %")

    def test_a_run_of_groups(self):
        self.train("run", "--groups.count=3")
        self.run_program("report", "run")
        self.check(self.folder / "run/report.html", "Malicious clients and perturbations at once", "means over the groups")

    def test_runs_that_are_compared(self):
        results = SOURCE / "results"
        self.run_program("compare", str(results / "resnet/federated"), str(results / "resnet/resnet20-gaussian-seed0"),
                         "--out", "c.html")
        self.check(self.folder / "c.html", "<table")


if __name__ == "__main__":
    if shutil.which("chromium") is None:
        print("skipped: there is no chromium")
        sys.exit(77)
    unittest.main()

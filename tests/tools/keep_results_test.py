#!/usr/bin/env python3
"""keep_results_test.py PROGRAM: does tools/keep_results.sh keep what a report needs, and nothing else?"""
import json
import pathlib
import subprocess
import sys
import tarfile
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
method = "gaussian"
rounds = 2
clients_per_round = 2
[train.local]
steps = 1
batch = 4
[certify]
n0 = 10
n = 200
every = 200
"""
TEXTS = {"experiment.toml", "provenance.json", "rounds.tsv", "clients.tsv", "certificates.tsv", "certificates.json"}


class KeepResultsTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        self.runs, self.kept = self.folder / "runs", self.folder / "kept"
        self.runs.mkdir()

    def run_program(self, *words):
        done = subprocess.run([PROGRAM, *words, "--device", "cpu"], cwd=self.folder, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def train(self, name, *more):
        (self.folder / "e.toml").write_text(EXPERIMENT)
        self.run_program("train", "e.toml", "--out", self.runs / name, "--quiet", *more)
        self.run_program("certify", self.runs / name, "--quiet")

    def keep(self):
        subprocess.run([SOURCE / "tools/keep_results.sh", self.runs, self.kept], check=True)
        with tarfile.open(self.kept / "runs.tar.gz") as archive:
            return {member.name: member for member in archive.getmembers() if not member.isdir()}

    def model_of(self, run):
        """Where the kept run's table says that its model lay."""
        with tarfile.open(self.kept / "runs.tar.gz") as archive:
            return json.load(archive.extractfile(f"{run}/certificates.json"))["model"]

    def report(self, run):
        """What the terminal and the table in Markdown say about a run."""
        page = self.folder / "table.md"
        return self.run_program("report", run, "--out", page), page.read_text()

    def test_keeps_what_a_report_on_groups_needs(self):
        self.train("groups", "--groups.count=3")
        kept = self.keep()
        groups = {f"groups/group-0{g}/{file}" for g in (1, 2, 3) for file in TEXTS if not file.startswith("certificates")}
        run = {f"groups/{file}" for file in TEXTS - {"rounds.tsv", "clients.tsv"}}
        self.assertEqual(set(kept), groups | run)
        self.assertEqual(self.report(self.kept / "groups"), self.report(self.runs / "groups"))
        self.assertEqual(self.model_of("groups"), "groups")

    def test_keeps_equal_tables_of_clients_once(self):
        self.train("a")
        self.train("b", "--train.rounds=1")
        kept = self.keep()
        self.assertEqual(set(kept), {f"{run}/{file}" for run in "ab" for file in TEXTS})
        self.assertEqual(kept["b/clients.tsv"].linkname, "a/clients.tsv")
        self.assertEqual(self.model_of("a"), "a/model.safetensors")

    def test_gives_the_same_bytes_for_the_same_runs(self):
        self.train("a")
        self.keep()
        first = (self.kept / "runs.tar.gz").read_bytes()
        self.keep()
        self.assertEqual((self.kept / "runs.tar.gz").read_bytes(), first)

    def test_leaves_out_unfinished_runs(self):
        self.train("a")
        self.train("b")
        (self.runs / "b/DONE").unlink()
        self.assertEqual({name.split("/")[0] for name in self.keep()}, {"a"})


if __name__ == "__main__":
    unittest.main()

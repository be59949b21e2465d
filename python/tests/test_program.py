"""The `fedsmooth` command of the wheel."""

import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

import pytest

import fedsmooth as fs

COMMAND = pathlib.Path(sys.executable).parent / "fedsmooth"
NEEDS_GNUPLOT = pytest.mark.skipif(not shutil.which("gnuplot"), reason="gnuplot is not installed")


def run(*words, module=False, **options):
    program = [sys.executable, "-m", "fedsmooth"] if module else [COMMAND]
    return subprocess.run([*program, *words], capture_output=True, text=True, timeout=120, **options)


@pytest.mark.parametrize("module", [False, True])
def test_it_prints_its_version_and_its_help(module):
    assert run("--version", module=module).stdout.startswith(f"fedsmooth {fs.__version__} (")
    helped = run("certify", "--help", module=module)
    assert helped.returncode == 0 and "fedsmooth certify runs/quickstart/smoothadv" in helped.stdout
    assert helped.stderr == ""


def test_exit_codes_are_the_programs(tmp_path):
    wrong = run("certify", tmp_path / "none.safetensors")
    assert wrong.returncode == 2 and wrong.stdout == "" and "none.safetensors" in wrong.stderr
    assert wrong.stderr.count("\n") == 1 and "Traceback" not in wrong.stderr
    unknown = run("certfy")
    assert unknown.returncode == 2 and 'did you mean "certify"?' in unknown.stderr


def test_a_run_is_trained_certified_and_compared(experiment_file, tmp_path):
    folder = tmp_path / "run"
    assert run("train", experiment_file, "--out", folder, "--device=cpu").returncode == 0
    certified = run("certify", folder, "--device=cpu", "--every=4", "--json")
    assert certified.returncode == 0 and '"images":10' in certified.stdout
    assert len(fs.read_certificates(folder)) == 10
    assert run("compare", folder, folder).returncode == 0


def test_control_c_saves_the_state_and_gives_130(experiment_file, tmp_path):
    words = ["train", experiment_file, "--out", tmp_path / "run", "--train.rounds=100000", "--device=cpu"]
    process = subprocess.Popen([COMMAND, *words], stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while not (tmp_path / "run" / "rounds.tsv").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, printed = process.communicate(timeout=60)
    assert process.returncode == 130 and "interrupted after round" in printed and "Traceback" not in printed


def test_a_reader_that_stops_reading_ends_it_quietly(experiment_file):
    read, write = os.pipe()
    os.close(read)
    process = subprocess.Popen([COMMAND, "show", experiment_file], stdout=write, stderr=subprocess.PIPE, text=True)
    os.close(write)
    _, printed = process.communicate(timeout=60)
    assert process.returncode == -signal.SIGPIPE and printed == ""


def test_a_full_disk_is_reported(experiment_file):
    with open("/dev/full", "w") as full:
        ran = subprocess.run(
            [COMMAND, "show", experiment_file], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60
        )
    assert ran.returncode == 2 and "cannot be written" in ran.stderr


@NEEDS_GNUPLOT
def test_it_draws_a_table_that_python_made(model, test_set, tmp_path):
    fs.certify(model, test_set, n=500, out=tmp_path / "t.tsv")
    assert run("report", tmp_path / "t.tsv").returncode == 0
    assert "</html>" in (tmp_path / "t.html").read_text()

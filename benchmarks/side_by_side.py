"""Runs programs of different makers alternately on the same cores or GPU, and takes medians."""
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys

PEERS = pathlib.Path(__file__).resolve().parent / "peers"


def add_arguments(parser):
    parser.add_argument("--program", default="build/fedsmooth")
    parser.add_argument("--python", action="append", help="interpreters with PyTorch")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--rounds", type=int, default=3, help="how often each program is run")


def run(command):
    """What the command wrote to stdout; its own complaint ends the comparison."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}:\n{done.stderr}")
    return done.stdout


def run_json(command):
    """The lines of JSON that the command prints; a compiler in it may print others."""
    return [json.loads(line) for line in run(command).splitlines() if line.startswith("{")]


def find_pythons(options):
    def is_fit(python):
        probe = f"import numpy, torch; torch.empty(1, device='{options.device}')"
        done = subprocess.run([python, "-c", probe], capture_output=True, check=False)
        return done.returncode == 0

    candidates = map(shutil.which, options.python or ["/usr/bin/python3", "python3"])
    pythons = [p for p in dict.fromkeys(candidates) if p and is_fit(p)]
    if not pythons:
        print(f"no Python here has a PyTorch for device {options.device}; name one with --python")
    return pythons


def compare(options, pythons, ours, peer, rate, show):
    """Alternates `ours` and the peer script with each Python; returns our median and, by name, the
    peers'. `rate` turns a result into work per second, `show` that into text."""
    where = ["--device", options.device, "--threads", str(options.threads)]
    our_rates, peer_rates = [], {}
    for _ in range(options.rounds):
        result = run_json([options.program, *ours, *where])[-1]
        our_rates.append(rate(result))
        print(f"fedsmooth {result['version']}: {show(our_rates[-1])}", flush=True)
        for python in pythons:
            for result in run_json([python, PEERS / peer[0], *peer[1:], *where]):
                name = ", ".join([f"PyTorch {result['torch']}", *result.get("variant", [])])
                peer_rates.setdefault(name, []).append(rate(result))
                print(f"{name}: {show(rate(result))}", flush=True)
    medians = {name: statistics.median(rates) for name, rates in peer_rates.items()}
    return statistics.median(our_rates), medians


def print_table(rows):
    """The first column to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows)]
    for row in rows:
        cells = [cell.rjust(width) for cell, width in zip(row[1:], widths[1:])]
        print("  ".join([row[0].ljust(widths[0]), *cells]).rstrip())

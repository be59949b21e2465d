"""Runs programs of different makers alternately on the same cores and compares the medians."""
import json
import os
import pathlib
import shutil
import statistics
import subprocess

PEERS = pathlib.Path(__file__).resolve().parent / "peers"


def add_arguments(parser):
    parser.add_argument("--program", default="build/fedsmooth")
    parser.add_argument("--python", action="append", help="interpreters with PyTorch")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--rounds", type=int, default=3)


def run_json(command):
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def find_pythons(options):
    def has_torch(python):
        probe = [python, "-c", "import torch, numpy"]
        return subprocess.run(probe, capture_output=True, check=False).returncode == 0

    candidates = options.python or ["/usr/bin/python3", shutil.which("python3")]
    return [p for p in dict.fromkeys(candidates) if p and has_torch(p)]


def compare(options, what, ours, peer, value, unit):
    """Alternates `ours` and the peer script with each Python; the fastest of them counts. `value`
    turns a result into a rate in `unit`."""
    rates, peers = [], {}
    pythons = find_pythons(options)
    for _ in range(options.rounds):
        result = run_json([options.program, *ours, "--threads", str(options.threads)])
        rates.append(value(result))
        print(f"fedsmooth {result['version']}: {rates[-1]:.4g} {unit}", flush=True)
        for python in pythons:
            result = run_json([python, PEERS / peer[0], *peer[1:], "--threads",
                               str(options.threads)])
            name = f"PyTorch {result['torch']}"
            peers.setdefault(name, []).append(value(result))
            print(f"{name}: {value(result):.4g} {unit}", flush=True)
    if not peers:
        print("no Python with PyTorch here; name one with --python to compare")
        return
    medians = {name: statistics.median(values) for name, values in peers.items()}
    fastest = max(medians, key=medians.get)
    ratio = statistics.median(rates) / medians[fastest]
    print(f"{what}, {options.threads} threads: {ratio:.2f} times {fastest}")

#!/usr/bin/env python3
"""Our certifier and the plain PyTorch loop on the same AlexNet, image and cores, run alternately.

Every Python interpreter given (or found) that has PyTorch takes part; the fastest of them counts.
Prints one line per run and the ratio of the medians last."""
import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess

HERE = pathlib.Path(__file__).resolve().parent


def run_json(command):
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def has_torch(python):
    probe = [python, "-c", "import torch, numpy"]
    return subprocess.run(probe, capture_output=True, check=False).returncode == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", default="build/fedsmooth")
    parser.add_argument("--python", action="append", help="interpreters with PyTorch")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    candidates = options.python or ["/usr/bin/python3", shutil.which("python3")]
    pythons = [p for p in dict.fromkeys(candidates) if p and has_torch(p)]

    ours, peers = [], {}
    for _ in range(options.rounds):
        result = run_json([options.program, "bench", "certify", "--threads", str(options.threads)])
        ours.append(result["samples_per_second"])
        print(f"fedsmooth {result['version']}: {ours[-1]:.0f} samples/s", flush=True)
        for python in pythons:
            command = [python, HERE / "peers/certify.py", "--threads", str(options.threads)]
            result = run_json(command)
            name = f"PyTorch {result['torch']}"
            peers.setdefault(name, []).append(result["samples_per_second"])
            print(f"{name}: {result['samples_per_second']:.0f} samples/s", flush=True)
    if not peers:
        print("no Python with PyTorch here; name one with --python to compare")
        return
    medians = {name: statistics.median(rates) for name, rates in peers.items()}
    fastest = max(medians, key=medians.get)
    ratio = statistics.median(ours) / medians[fastest]
    print(f"certify, {options.threads} threads: {ratio:.2f} times {fastest}")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""A federated round of the paper's setting, ours and a plain PyTorch program of the same arithmetic,
run alternately on the same cores or GPU. Prints one line per run; last, for each method, the medians
and what follows from them for the paper's 150 rounds."""
import argparse
import pathlib
import tempfile
import time

import side_by_side

# What train.method and attack.estimator are for each.
METHODS = {"standard": ("standard", "stochastic"),
           "adversarial": ("adversarial", "stochastic"),
           "gaussian": ("gaussian", "stochastic"),
           "stochastic": ("smoothadv", "stochastic"),
           "one-point": ("smoothadv", "one-point"),
           "two-point": ("smoothadv", "two-point")}
OF_THE_PAPER = ("stochastic", "one-point")
STEPS_PER_RUN = 150 * 100 * 20  # rounds, clients a round, steps a client


def milliseconds(rate):
    return f"{1e5 / rate:,.2f} ms"


def duration(seconds):
    return f"{seconds:.1f} s" if seconds < 120 else f"{seconds / 60:.1f} min"


def show(rate):
    return f"{rate:,.1f} client steps/s, {milliseconds(rate)} for a step of 100 clients"


def compare(options, name, pythons):
    """Our rate, and the name and rate of the fastest peer."""
    method, estimator = METHODS[name]
    print(f"{name}:", flush=True)
    ours, peers = side_by_side.compare(
        options, pythons,
        ["bench", "train", f"--train.method={method}", f"--attack.estimator={estimator}"],
        ["train.py", "--method", method, "--estimator", estimator],
        lambda result: 1 / result["seconds_per_client_step"], show)
    return (ours, *max(peers.items(), key=lambda peer: peer[1], default=("", None)))


def table(results):
    rows = [["a step of 100 clients", "fedsmooth", "PyTorch", "ratio",
             "150 rounds: fedsmooth", "PyTorch", ""]]
    for name, (ours, peer, theirs) in results.items():
        row = [name, milliseconds(ours), "", "", duration(STEPS_PER_RUN / ours), "", ""]
        if theirs:
            row[2:4] = milliseconds(theirs), f"{ours / theirs:.2f}"
            row[5:7] = duration(STEPS_PER_RUN / theirs), peer
        rows.append(row)
    return rows


def time_whole_run(options):
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "run"
        start = time.perf_counter()
        side_by_side.run([options.program, "train", "--out", out, "--quiet", "--device",
                          options.device, "--threads", str(options.threads), *options.whole_run])
        seconds = time.perf_counter() - start
    print(f"fedsmooth train {' '.join(options.whole_run)}: {duration(seconds)}, everything included")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    side_by_side.add_arguments(parser)
    parser.add_argument("--methods", nargs="*", choices=METHODS,
                        help="all on a GPU, the paper's two on a CPU if left out")
    parser.add_argument("--whole-run", nargs=argparse.REMAINDER,
                        help="EXPERIMENT.toml and options of `fedsmooth train`, which is timed too")
    options = parser.parse_args()
    methods = options.methods
    if methods is None:
        methods = METHODS if options.device == "cuda" else OF_THE_PAPER
    pythons = side_by_side.find_pythons(options) if methods else []
    results = {name: compare(options, name, pythons) for name in methods}
    if results:
        side_by_side.print_table(table(results))
    if options.whole_run:
        time_whole_run(options)


if __name__ == "__main__":
    main()

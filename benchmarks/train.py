#!/usr/bin/env python3
"""A federated round of the paper's setting, or with --centralized steps of one client that holds all
images: ours and a plain PyTorch program of the same arithmetic, run alternately on the same cores or GPU.
Prints one line per run; last, for each method, the medians and what follows from them for the paper's
150 rounds, or for 150 epochs of 50,000 images."""
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


class Federated:
    """100 clients a round, 150 rounds of 20 steps."""
    step = "a step of 100 clients"
    run = "150 rounds"
    clients = 100

    def __init__(self, options):
        del options
        self.ours, self.peer = [], []
        self.steps = 150 * 100 * 20


class Centralized:
    """150 epochs of 50,000 images."""
    run = "150 epochs"
    clients = 1

    def __init__(self, options):
        self.step = f"a step of {options.batch} images x 2 copies"
        self.ours = ["--train.mode=centralized", f"--train.local.batch={options.batch}",
                     "--partition.samples_per_client=50000"]
        self.peer = ["--centralized", "--batch", str(options.batch)]
        self.steps = 150 * (50_000 // options.batch)


def milliseconds(rate, setting):
    return f"{1e3 * setting.clients / rate:,.2f} ms"


def duration(seconds):
    return f"{seconds:.1f} s" if seconds < 120 else f"{seconds / 60:.1f} min"


def compare(options, name, pythons, setting):
    """Our rate, and the name and rate of the fastest peer."""
    method, estimator = METHODS[name]
    print(f"{name}:", flush=True)
    ours, peers = side_by_side.compare(
        options, pythons,
        ["bench", "train", f"--model.name={options.model}", f"--train.method={method}",
         f"--attack.estimator={estimator}", *setting.ours],
        ["train.py", "--model", options.model, "--method", method, "--estimator", estimator,
         *setting.peer],
        lambda result: 1 / result["seconds_per_client_step"],
        lambda rate: f"{rate:,.1f} client steps/s, {milliseconds(rate, setting)} for {setting.step}")
    return (ours, *max(peers.items(), key=lambda peer: peer[1], default=("", None)))


def table(results, setting):
    rows = [[setting.step, "fedsmooth", "PyTorch", "ratio",
             f"{setting.run}: fedsmooth", "PyTorch", ""]]
    for name, (ours, peer, theirs) in results.items():
        row = [name, milliseconds(ours, setting), "", "", duration(setting.steps / ours), "", ""]
        if theirs:
            row[2:4] = milliseconds(theirs, setting), f"{ours / theirs:.2f}"
            row[5:7] = duration(setting.steps / theirs), peer
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
    parser.add_argument("--model", default="alexnet", help="one of NETWORKS in peers/networks.py")
    parser.add_argument("--centralized", action="store_true", help="one client with all images")
    parser.add_argument("--batch", type=int, default=256, help="images a step, centralized")
    parser.add_argument("--methods", nargs="*", choices=METHODS,
                        help="all on a GPU, the paper's two on a CPU if left out")
    parser.add_argument("--whole-run", nargs=argparse.REMAINDER,
                        help="EXPERIMENT.toml and options of `fedsmooth train`, which is timed too")
    options = parser.parse_args()
    methods = options.methods
    if methods is None:
        methods = METHODS if options.device == "cuda" else OF_THE_PAPER
    pythons = side_by_side.find_pythons(options) if methods else []
    setting = Centralized(options) if options.centralized else Federated(options)
    results = {name: compare(options, name, pythons, setting) for name in methods}
    if results:
        side_by_side.print_table(table(results, setting))
    if options.whole_run:
        time_whole_run(options)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Our certifier and plain PyTorch loops on the same network, image and cores or GPU, run
alternately. Prints one line per run and the medians last."""
import argparse

import side_by_side

VOTES = 100 + 100_000  # n0 and n of a certificate


def milliseconds(rate):
    return f"{1e3 * VOTES / rate:,.1f}"


def show(rate):
    return f"{rate:,.0f} samples/s, {milliseconds(rate)} ms a certificate"


def table(ours, peers):
    rows = [["medians", "samples/s", "ms a certificate", "ratio"]]
    for name, rate in [("fedsmooth", ours), *peers.items()]:
        rows.append([name, f"{rate:,.0f}", milliseconds(rate), f"{ours / rate:.2f}"])
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    side_by_side.add_arguments(parser)
    parser.add_argument("--model", default="alexnet", help="one of NETWORKS in peers/networks.py")
    options = parser.parse_args()
    command = ["bench", "certify", f"--model.name={options.model}"]

    def rate(result):
        return result["samples_per_second"]

    ours, peers = side_by_side.compare(options, side_by_side.find_pythons(options), command,
                                       ["certify.py", "--model", options.model], rate, show)
    side_by_side.print_table(table(ours, peers))


if __name__ == "__main__":
    main()

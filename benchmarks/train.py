#!/usr/bin/env python3
"""A federated round of the paper's setting with few clients, ours and a plain PyTorch program of the
same arithmetic, run alternately on the same cores. Prints one line per run and, for each estimator,
the ratio of the medians."""
import argparse

import side_by_side


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    side_by_side.add_arguments(parser)
    options = parser.parse_args()
    for estimator in ("stochastic", "one-point"):
        side_by_side.compare(options, f"train, {estimator}",
                             ["bench", "train", f"--attack.estimator={estimator}"],
                             ["train.py", "--estimator", estimator],
                             lambda result: 1 / result["seconds_per_client_step"],
                             "client steps/s")


if __name__ == "__main__":
    main()

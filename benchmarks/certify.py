#!/usr/bin/env python3
"""Our certifier and the plain PyTorch loop on the same AlexNet, image and cores, run alternately.
Prints one line per run and the ratio of the medians last."""
import argparse

import side_by_side


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    side_by_side.add_arguments(parser)
    side_by_side.compare(parser.parse_args(), "certify", ["bench", "certify"], ["certify.py"],
                         lambda result: result["samples_per_second"], "samples/s")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""CERTIFY's sampling loop as a PyTorch user writes it (after Cohen et al.'s core.py): repeat the
image, add noise, run the network, count the argmax. Prints samples per second."""
import argparse
import json
import time

import numpy as np
import torch

from networks import alexnet


def count_votes(model, image, n, sigma, batch):
    counts = np.zeros(10, dtype=int)
    with torch.no_grad():
        while n > 0:
            size = min(batch, n)
            n -= size
            copies = image.repeat((size, 1, 1, 1))
            votes = model(copies + torch.randn_like(copies) * sigma).argmax(1).numpy()
            counts += np.bincount(votes, minlength=10)
    return counts


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--n", type=int, default=10_000)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    model, image = alexnet().eval(), torch.full((3, 32, 32), 0.5)
    rates = {}
    for batch in (400, 1000):
        count_votes(model, image, batch, 0.25, batch)
        start = time.perf_counter()
        count_votes(model, image, options.n, 0.25, batch)
        rates[batch] = options.n / (time.perf_counter() - start)
    print(json.dumps({"torch": torch.__version__, "samples_per_second": max(rates.values()),
                      "by_batch": rates}))


if __name__ == "__main__":
    main()

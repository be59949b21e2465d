#!/usr/bin/env python3
"""CERTIFY's sampling loop as a PyTorch user writes it (after Cohen et al.'s core.py): repeat the
image, add noise, run the network, count the argmax. Prints samples per second."""
import argparse
import json
import time

import numpy as np
import torch
from torch import nn


class Normalize(nn.Module):
    def __init__(self):
        super().__init__()
        self.mean = torch.tensor([0.4914, 0.4822, 0.4465]).view(1, 3, 1, 1)
        self.sd = torch.tensor([0.2023, 0.1994, 0.2010]).view(1, 3, 1, 1)

    def forward(self, x):
        return (x - self.mean) / self.sd


def alexnet():
    return nn.Sequential(
        Normalize(),
        nn.Conv2d(3, 64, 11, 4, 5), nn.ReLU(inplace=True), nn.MaxPool2d(2),
        nn.Conv2d(64, 192, 5, 1, 2), nn.ReLU(inplace=True), nn.MaxPool2d(2),
        nn.Conv2d(192, 384, 3, 1, 1), nn.ReLU(inplace=True),
        nn.Conv2d(384, 256, 3, 1, 1), nn.ReLU(inplace=True),
        nn.Conv2d(256, 256, 3, 1, 1), nn.ReLU(inplace=True), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(256, 10)).eval()


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
    model, image = alexnet(), torch.full((3, 32, 32), 0.5)
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

#!/usr/bin/env python3
"""The Python module against the two loops it replaces: the bare network on noise that lies ready, and
Cohen's loop (repeat the image, draw, count on the host) in torch. Run alternately on the same cores.
Needs the packages fedsmooth, numpy and torch in the interpreter that runs it."""
import argparse
import statistics
import time

import numpy as np
import torch

import fedsmooth as fs

SHAPE, CLASSES, SIGMA, ALPHA = (3, 32, 32), 10, 0.25, 0.001


def alexnet():
    """The CIFAR AlexNet that the paper's experiments use."""
    nn = torch.nn
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(3, 64, 11, 4, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(64, 192, 5, 1, 2), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(192, 384, 3, 1, 1), nn.ReLU(), nn.Conv2d(384, 256, 3, 1, 1), nn.ReLU(),
        nn.Conv2d(256, 256, 3, 1, 1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(256, CLASSES)).eval()


def bare(model, image, n, batch):
    noisy = image + SIGMA * torch.randn(batch, *SHAPE)
    with torch.no_grad():
        for _ in range(n // batch):
            model(noisy)


def cohens_loop(model, image, n, batch):
    counts = np.zeros(CLASSES, dtype=int)
    with torch.no_grad():
        for _ in range(n // batch):
            copies = image.repeat((batch, 1, 1, 1))
            answers = model(copies + torch.randn_like(copies) * SIGMA).argmax(1)
            for answer in answers.tolist():
                counts[answer] += 1


def votes_per_second(work, n):
    start = time.perf_counter()
    work()
    return n / (time.perf_counter() - start)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=8000)
    parser.add_argument("--batch", type=int, default=400)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--threads", type=int, default=0)
    o = parser.parse_args()
    if o.threads:
        torch.set_num_threads(o.threads)
    model, image = alexnet(), torch.rand(*SHAPE)
    callback, engine = fs.Smooth(model, CLASSES, SIGMA), fs.from_torch(model, SHAPE, sigma=SIGMA, threads=o.threads)
    callback.certificate(image, 0, n0=1, n=100, batch_size=o.batch)  # the check, once for a model
    work = {
        "bare network": lambda: bare(model, image, o.n, o.batch),
        "Cohen's loop": lambda: cohens_loop(model, image, o.n, o.batch),
        "fs.Smooth over the module": lambda: callback.certificate(image, 0, n0=1, n=o.n, batch_size=o.batch),
        "fs.from_torch: our engine": lambda: engine.certify(image, n0=1, n=o.n),
    }
    rates = {name: [] for name in work}
    for _ in range(o.runs):
        for name, do in work.items():
            rates[name].append(votes_per_second(do, o.n))
    for name, found in rates.items():
        print(f"{name:28} {statistics.median(found):12,.0f} votes/s")


if __name__ == "__main__":
    main()

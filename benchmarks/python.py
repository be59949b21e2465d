#!/usr/bin/env python3
"""The Python module against the two loops it replaces: the bare network on noise that lies ready, and
Cohen's loop (repeat the image, draw, count on the host) in torch. Run alternately on the same cores or GPU.
Needs the packages fedsmooth, numpy and torch in the interpreter that runs it."""
import argparse
import statistics
import time

import numpy as np
import torch

import fedsmooth as fs

SHAPE, CLASSES, SIGMA, ALPHA = (3, 32, 32), 10, 0.25, 0.001


def alexnet(device):
    """The CIFAR AlexNet that the paper's experiments use."""
    nn = torch.nn
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(3, 64, 11, 4, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(64, 192, 5, 1, 2), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(192, 384, 3, 1, 1), nn.ReLU(), nn.Conv2d(384, 256, 3, 1, 1), nn.ReLU(),
        nn.Conv2d(256, 256, 3, 1, 1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(256, CLASSES),
    ).eval().to(device)


def bare(model, image, n, batch):
    noisy = image + SIGMA * torch.randn(batch, *SHAPE, device=image.device)
    with torch.no_grad():
        for _ in range(n // batch):
            model(noisy)


def cohens_loop(model, image, n, batch):
    counts = np.zeros(CLASSES, dtype=int)
    with torch.no_grad():
        for _ in range(n // batch):
            copies = image.repeat((batch, 1, 1, 1))
            answers = model(copies + torch.randn_like(copies) * SIGMA).argmax(1)
            for answer in answers.cpu().numpy():
                counts[answer] += 1


def votes_per_second(work, n, device):
    wait = torch.cuda.synchronize if device == "cuda" else lambda: None
    wait()
    start = time.perf_counter()
    work()
    wait()
    return n / (time.perf_counter() - start)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--n", type=int, default=8000)
    parser.add_argument("--batch", type=int, default=400)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2, help="of torch and of our engine")
    o = parser.parse_args()
    torch.set_num_threads(o.threads)  # some builds of torch take one by default
    torch.backends.cudnn.deterministic = True  # a certificate needs it, so the bare network has it too
    model, image = alexnet(o.device), torch.rand(*SHAPE, device=o.device)
    callback = fs.Smooth(model, CLASSES, SIGMA)
    engine = fs.from_torch(model, SHAPE, sigma=SIGMA, device=o.device, threads=o.threads)
    # The check, once for a model. It may settle on a smaller batch, which is then that of all loops:
    # another one has another speed.
    base = callback.certificate(image, 0, n0=1, n=100, batch_size=o.batch).base
    batch = int(base.rsplit("x", 1)[1])
    n = o.n // batch * batch
    evaluated = n + 2 * batch  # with n0's votes, padded, and the probe
    print(f"asked for batches of {o.batch}: {base}, engine {engine.base}; {torch.get_num_threads()} threads, n = {n}")
    work = {
        "bare network": (lambda: bare(model, image, n, batch), n),
        "Cohen's loop": (lambda: cohens_loop(model, image, n, batch), n),
        "fs.Smooth over the module": (lambda: callback.certificate(image, 0, n0=1, n=n, batch_size=o.batch), n),
        "fs.from_torch: our engine": (lambda: engine.certify(image.cpu(), n0=1, n=n), n),
    }
    rates = {name: [] for name in work}
    for _ in range(o.runs):
        for name, (do, votes) in work.items():
            rates[name].append(votes_per_second(do, votes, o.device))
    for name, found in rates.items():
        middle = statistics.median(found)
        print(f"{name:28} {middle:10,.0f} votes/s ({min(found):,.0f} to {max(found):,.0f})")
    padding = evaluated / n
    faster = statistics.median(
        e / c for e, c in zip(rates["fs.from_torch: our engine"], rates["Cohen's loop"], strict=True)
    )
    print(f"our engine is {faster:.1f} times Cohen's loop")
    share = statistics.median(
        s / b for s, b in zip(rates["fs.Smooth over the module"], rates["bare network"], strict=True)
    )
    print(f"Smooth is {share:.1%} of the bare network in votes, {share * padding:.1%} in copies evaluated")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""CERTIFY's sampling loop as PyTorch users write it: Cohen et al.'s, in fp32, for several sizes of
the batch, on CPU cores in both layouts; on a GPU also in bf16 and channels-last, with the largest
batch, as it is and compiled.
Prints a JSON line with samples per second for each."""
import argparse
import json

import numpy as np
import torch

from clock import seconds
from networks import NETWORKS

SIGMA = 0.25
SECONDS = 2.0  # about so long a loop is timed
BATCHES = {"cpu": [400, 1000], "cuda": [400, 1000, 10_000]}


def cohen(model, image, batch, layout=torch.contiguous_format):
    """As in Cohen et al.'s core.py: repeat the image, add noise, run the network, count the
    argmax."""
    model = model.to(memory_format=layout)

    def count(n):
        counts = np.zeros(10, dtype=int)
        while n > 0:
            size = min(batch, n)
            n -= size
            copies = image.repeat((size, 1, 1, 1))
            noisy = (copies + torch.randn_like(copies) * SIGMA).contiguous(memory_format=layout)
            votes = model(noisy).argmax(1).cpu().numpy()
            counts += np.bincount(votes, minlength=10)
        return counts

    return count


def tuned(model, image, batch, compiled):
    """In bf16 and channels-last, for n that is a multiple of the batch. Votes are added up on the
    GPU, so that it is waited for only once."""
    model = model.to(dtype=torch.bfloat16, memory_format=torch.channels_last)
    image = image.bfloat16()
    classes = torch.arange(10, device=image.device)

    def count_batch():
        noise = torch.randn(batch, *image.shape, dtype=image.dtype, device=image.device) * SIGMA
        copies = (image + noise).contiguous(memory_format=torch.channels_last)
        return (model(copies).argmax(1).unsqueeze(1) == classes).sum(0)

    if compiled:
        count_batch = torch.compile(count_batch, mode="max-autotune")

    def count(n):
        counts = torch.zeros_like(classes)
        for _ in range(n // batch):
            counts += count_batch()
        return counts.cpu().numpy()

    return count


def loops(network, image, batches):
    """Yields what is special about a loop, the function that counts n votes, and its batch."""
    def model():
        return NETWORKS[network]().eval().to(image.device)

    for batch in batches:
        yield ["fp32", f"batch {batch}"], cohen(model(), image, batch), batch
        if not image.is_cuda:
            last = cohen(model(), image, batch, torch.channels_last)
            yield ["fp32", "channels-last", f"batch {batch}"], last, batch
    if image.is_cuda:
        batch = max(batches)
        variant = ["bf16", "channels-last", f"batch {batch}"]
        yield variant, tuned(model(), image, batch, compiled=False), batch
        yield [*variant, "compiled"], tuned(model(), image, batch, compiled=True), batch


def samples_per_second(count, batch, device):
    for _ in range(3):  # compiles, chooses kernels, captures the work
        count(batch)
    batches = max(1, round(SECONDS / seconds(lambda: count(batch), device)))
    return batches * batch / seconds(lambda: count(batches * batch), device)


@torch.no_grad()
def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--model", choices=NETWORKS, default="alexnet")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    torch.backends.cudnn.benchmark = True  # batches have one size
    image = torch.full((3, 32, 32), 0.5, device=options.device)
    for variant, count, batch in loops(options.model, image, BATCHES[options.device]):
        rate = samples_per_second(count, batch, options.device)
        print(json.dumps({"torch": torch.__version__, "variant": variant,
                          "samples_per_second": rate}))


if __name__ == "__main__":
    main()

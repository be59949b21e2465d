#!/usr/bin/env python3
"""Centralized training of a network on CIFAR-10's binary files as a PyTorch user writes it, with
Gaussian noise, SmoothAdv or consistency regularisation (Jeong and Shin 2020): a second opinion on what
`fedsmooth train` learns with the same settings. Prints a line per epoch. The result is either certified
here, on every 20th test image by Cohen et al.'s bound, with a JSON line at the end, or saved (--save) as a
state dict for `fedsmooth certify`."""
import argparse
import json
import pathlib

import numpy as np
import torch
from scipy.stats import beta, norm
from torch.nn import functional as F

import train as peer
from networks import NETWORKS, BasicBlock

RADII = (0, 0.25, 0.5, 0.75)
ALPHA, N0 = 0.001, 100
LAMBDA, ETA = 20, 0.5  # of consistency regularisation, as published for sigma = 0.25


def read_cifar10(root, names, device):
    records = np.concatenate([np.fromfile(pathlib.Path(root) / f"{name}.bin", dtype=np.uint8)
                              for name in names]).reshape(-1, 3073)
    images = torch.from_numpy(records[:, 1:].reshape(-1, 3, 32, 32).copy())
    return images.to(device), torch.from_numpy(records[:, 0].astype(np.int64)).to(device)


def loss_of(logits, y, options):
    """Cross-entropy over all noisy copies; with `consistency` also lambda KL(s || p_i) + eta H(s)."""
    loss = F.cross_entropy(logits, y.repeat_interleave(options.m))
    if options.method != "consistency":
        return loss
    log_p = logits.log_softmax(1).view(len(y), options.m, -1)
    s = log_p.exp().mean(1)
    log_s = s.clamp_min(1e-20).log()
    divergence = (s.unsqueeze(1) * (log_s.unsqueeze(1) - log_p)).sum(2).mean()
    entropy = -(s * log_s).sum(1).mean()
    return loss + LAMBDA * divergence + ETA * entropy


def make_step(run, data, optimizer, options):
    """A function from the numbers of a batch's images to its loss, which makes one step of SGD."""
    images, labels = data

    def step(chosen):
        x, y = peer.augment(images[chosen].float() / 255), labels[chosen]
        noise = torch.randn(options.batch, options.m, 3, 32, 32, device=x.device) * options.sigma
        if options.method == "smoothadv":
            x = peer.smooth_adv(run, x, y, noise, "stochastic")
        loss = loss_of(run(peer.add_noise(x, noise)), y, options)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        return loss.detach()
    return step


def record(step, batch, device):
    """The same step as a CUDA graph. Recording it makes no step; its learning rate stays as it is now."""
    chosen = torch.zeros(batch, dtype=torch.int64, device=device)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        loss = step(chosen)

    def replay(now):
        chosen.copy_(now)
        graph.replay()
        return loss.clone()
    return replay


def train_epoch(step, order):
    return torch.stack([step(chosen) for chosen in order]).mean().item()


def train(model, run, data, options):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
    schedule = torch.optim.lr_scheduler.MultiStepLR(optimizer, options.milestones, gamma=0.1)
    step = make_step(run, data, optimizer, options)
    recorded, rate = step, None
    model.train()
    for epoch in range(options.epochs):
        order = torch.randperm(len(data[0]), device=data[0].device)
        order = order[:len(order) // options.batch * options.batch].view(-1, options.batch)
        if options.device == "cuda" and rate != schedule.get_last_lr():
            rate = schedule.get_last_lr()
            first, order = order[:3], order[3:]  # what is recorded must have run before
            side = torch.cuda.Stream()
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                train_epoch(step, first)
            torch.cuda.current_stream().wait_stream(side)
            recorded = record(step, options.batch, options.device)
        loss = train_epoch(recorded, order)
        schedule.step()
        print(f"epoch {epoch + 1}: loss {loss:.3f}", flush=True)


@torch.no_grad()
def count_votes(run, image, n, sigma, batch=10_000):
    counts = np.zeros(10, dtype=int)
    for begin in range(0, n, batch):
        copies = image.expand(min(batch, n - begin), -1, -1, -1)
        votes = run(copies + torch.randn_like(copies) * sigma).argmax(1)
        counts += np.bincount(votes.cpu().numpy(), minlength=10)
    return counts


def certify(model, run, data, options):
    """The certified radius of every 20th image, -1 where the answer is wrong or there is none."""
    model.eval()
    radii = []
    for image, label in zip(data[0][::20].float() / 255, data[1][::20].tolist()):
        top = count_votes(run, image, N0, options.sigma).argmax()
        hits = count_votes(run, image, options.n, options.sigma)[top]
        lower = beta.ppf(ALPHA, hits, options.n - hits + 1)
        sure = top == label and lower > 0.5
        radii.append(options.sigma * norm.ppf(lower) if sure else -1.0)
    return np.array(radii)


def common_names(model, network):
    """The state dict of a network of basic blocks under the names that the common PyTorch codes use."""
    projection, classifier = ("shortcut", "linear") if network == "resnet18" else ("downsample", "fc")
    parts = {"body.0": "conv1", "body.1": "bn1", "body.3": "conv2", "body.4": "bn2",
             "shortcut.0": f"{projection}.0", "shortcut.1": f"{projection}.1"}
    names, stage, number = {"1": "conv1", "2": "bn1", str(len(model) - 1): classifier}, 1, 0
    for i, block in enumerate(model):
        if isinstance(block, BasicBlock):
            if len(block.shortcut) > 0:
                stage, number = stage + 1, 0
            for part, name in parts.items():
                names[f"{i}.{part}"] = f"layer{stage}.{number}.{name}"
            number += 1
    renamed = {}
    for name, value in model.state_dict().items():
        part, tensor = name.rsplit(".", 1)
        if tensor != "num_batches_tracked":
            renamed[f"{names[part]}.{tensor}"] = value
    return renamed


def save(model, network, path):
    """Writes a .safetensors file: length of the header, header, tensors."""
    header, data = {}, b""
    for name, value in common_names(model, network).items():
        begin, data = len(data), data + value.detach().float().contiguous().cpu().numpy().tobytes()
        header[name] = {"dtype": "F32", "shape": list(value.shape), "data_offsets": [begin, len(data)]}
    text = json.dumps(header).encode()
    pathlib.Path(path).write_bytes(len(text).to_bytes(8, "little") + text + data)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", required=True, help="folder of data_batch_1.bin to test_batch.bin")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cuda")
    parser.add_argument("--model", choices=NETWORKS, default="resnet20")
    parser.add_argument("--method", choices=("gaussian", "smoothadv", "consistency"), default="gaussian")
    parser.add_argument("--m", type=int, default=2, help="noisy copies of an image in a step")
    parser.add_argument("--sigma", type=float, default=0.25)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--milestones", type=int, nargs="*", default=[20, 40])
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--n", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--precision", choices=("bf16", "fp32"), default="bf16", help="on a GPU")
    parser.add_argument("--save", help="write the state dict of a ResNet there and do not certify it")
    options = parser.parse_args()
    if options.save and not options.model.startswith("resnet"):
        parser.error(f"--save: {options.model} has no names for a file; only ResNets have")
    torch.manual_seed(options.seed)
    torch.backends.cudnn.benchmark = True
    peer.EPSILON, peer.M = options.epsilon, options.m
    model = NETWORKS[options.model]().to(options.device)
    run = peer.Bfloat16(model) if (options.device, options.precision) == ("cuda", "bf16") else model
    data = read_cifar10(options.data, [f"data_batch_{i}" for i in range(1, 6)], options.device)
    train(model, run, data, options)
    if options.save:
        save(model, options.model, options.save)
        return
    radii = certify(model, run, read_cifar10(options.data, ["test_batch"], options.device), options)
    print(json.dumps({"torch": torch.__version__, "model": options.model, "method": options.method,
                      "certified": {r: float((radii >= r).mean()) for r in RADII}}))


if __name__ == "__main__":
    main()

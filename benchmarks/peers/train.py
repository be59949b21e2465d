#!/usr/bin/env python3
"""A round of federated training as a PyTorch user writes it: clients one after another, each a copy
of the model, noise or SmoothAdv's attack or both, SGD, an average at the end. Model and data stay on
the device. With --centralized one client holds all images. On CPU cores also channels last; on a GPU
also in bf16 and channels last, as it is and compiled. Prints a JSON line with seconds per client step
for each."""
import argparse
import copy
import json

import torch
from torch.nn import functional as F

from clock import seconds
from networks import NETWORKS

METHODS = ("standard", "adversarial", "gaussian", "smoothadv")
ESTIMATORS = ("stochastic", "one-point", "two-point")
SIGMA, EPSILON, M, ATTACK_STEPS = 0.25, 0.5, 2, 2


def add_noise(x, noise):
    """M noisy copies of each image; without noise the images themselves."""
    return x if noise is None else (x.unsqueeze(1) + noise).flatten(0, 1)


def true_class_probability(model, x, y, noise):
    p = model(add_noise(x, noise)).softmax(1).view(len(x), -1, 10)
    return p.gather(2, y.view(-1, 1, 1).expand(-1, p.shape[1], 1)).squeeze(2)


def attack_gradient(model, x_adv, y, noise, estimator):
    if estimator == "stochastic":
        x_adv = x_adv.detach().requires_grad_(True)
        p = true_class_probability(model, x_adv, y, noise).mean(1)
        return torch.autograd.grad(-p.clamp_min(1e-20).log().sum(), [x_adv])[0]
    with torch.no_grad():
        p = true_class_probability(model, x_adv, y, noise)
        if estimator == "two-point":
            p = p - true_class_probability(model, x_adv, y, None)
        return -(p.view(len(x_adv), M, 1, 1, 1) * noise).mean(1)


def smooth_adv(model, x, y, noise, estimator):
    model.eval()  # the attack is on the network as it answers, not as it trains
    x_adv = x
    for _ in range(ATTACK_STEPS):
        g = attack_gradient(model, x_adv, y, noise, estimator)
        g = g / g.flatten(1).norm(dim=1).clamp_min(1e-30).view(-1, 1, 1, 1)
        v = (x_adv + 2 * EPSILON / ATTACK_STEPS * g).clamp(0, 1) - x
        norm = v.flatten(1).norm(dim=1).view(-1, 1, 1, 1)
        x_adv = x + v * (EPSILON / (norm + 1e-7)).clamp_max(1)
    model.train()
    return x_adv


def augment(x):
    """A crop with padding 4 and a flip per image, for the batch at once."""
    batch, device = len(x), x.device
    pixels = torch.arange(32, device=device)
    rows, columns = torch.randint(0, 9, (2, batch, 1), device=device) + pixels
    flip = torch.rand(batch, 1, device=device) < 0.5
    columns = torch.where(flip, columns.flip(1), columns)
    image = torch.arange(batch, device=device).view(-1, 1, 1, 1)
    channel = torch.arange(3, device=device).view(-1, 1, 1)
    padded = F.pad(x, (4, 4, 4, 4))
    return padded[image, channel, rows.view(-1, 1, 32, 1), columns.view(-1, 1, 1, 32)]


def local_train(model, run, images, labels, options):
    """`run` is the model as it is called: itself, or compiled, or in another precision."""
    device, batch = images.device, options.batch
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4)
    epochs = options.steps * batch // len(images) + 1
    order = torch.cat([torch.randperm(len(images), device=device) for _ in range(epochs)])
    for i in range(options.steps):
        chosen = order[i * batch:(i + 1) * batch]
        x, y = augment(images[chosen].float() / 255), labels[chosen]
        noise = None
        if options.method in ("gaussian", "smoothadv"):
            noise = torch.randn(batch, M, 3, 32, 32, device=device) * SIGMA
        if options.method in ("adversarial", "smoothadv"):
            x = smooth_adv(run, x, y, noise, options.estimator)
        logits = run(add_noise(x, noise))
        loss = F.cross_entropy(logits, y if noise is None else y.repeat_interleave(M))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
    return model.state_dict()


def run_round(model, run, clients, options):
    start = copy.deepcopy(model.state_dict())
    average = {}
    for images, labels in clients:
        model.load_state_dict(start)  # one model, so that it is compiled once
        for name, w in local_train(model, run, images, labels, options).items():
            average[name] = average.get(name, 0) + w.float() / len(clients)
    model.load_state_dict(average)


class ChannelsLast(torch.nn.Module):
    """The model, channels last."""

    def __init__(self, model):
        super().__init__()
        self.model = model.to(memory_format=torch.channels_last)

    def forward(self, x):
        return self.model(x.contiguous(memory_format=torch.channels_last))


class Bfloat16(ChannelsLast):
    """The model under autocast, channels last."""

    def forward(self, x):
        with torch.autocast(x.device.type, torch.bfloat16):
            return super().forward(x).float()


def variants(options):
    """Yields what is special about a program, its model, and the model as it is called."""
    def model():
        return NETWORKS[options.model]().to(options.device).train()

    plain = model()
    yield ["fp32"], plain, plain
    if options.device == "cpu":
        last = model()
        yield ["fp32", "channels-last"], last, ChannelsLast(last).train()
    else:
        tuned = model()
        yield ["bf16", "channels-last"], tuned, Bfloat16(tuned).train()
        compiled = model()
        yield (["bf16", "channels-last", "compiled"], compiled,
               torch.compile(Bfloat16(compiled).train()))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--model", choices=NETWORKS, default="alexnet")
    parser.add_argument("--centralized", action="store_true")
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--batch", type=int, default=30)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--method", choices=METHODS, default="smoothadv")
    parser.add_argument("--estimator", choices=ESTIMATORS, default="stochastic")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    torch.backends.cudnn.benchmark = True  # batches have one size
    held = 50_000 if options.centralized else 500
    clients = [(torch.randint(0, 256, (held, 3, 32, 32), dtype=torch.uint8, device=options.device),
                torch.randint(0, 10, (held,), device=options.device))
               for _ in range(1 if options.centralized else options.clients)]
    for variant, model, run in variants(options):
        few = argparse.Namespace(**{**vars(options), "steps": 3})
        run_round(model, run, clients[:2], few)
        spent = seconds(lambda: run_round(model, run, clients, options), options.device)
        print(json.dumps({"torch": torch.__version__, "variant": variant,
                          "seconds_per_client_step": spent / len(clients) / options.steps}),
              flush=True)


if __name__ == "__main__":
    main()

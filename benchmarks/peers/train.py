#!/usr/bin/env python3
"""A round of Fed-SmoothAdv as a PyTorch user writes it: clients one after another, each a copy of
the model, SmoothAdv's attack, SGD, a weighted average at the end. Prints seconds per client step."""
import argparse
import copy
import json
import time

import torch
from torch.nn import functional as F

from alexnet import alexnet

SIGMA, EPSILON, M, ATTACK_STEPS = 0.25, 0.5, 2, 2


def attack_gradient(model, x_adv, y, noise, estimator):
    batch = x_adv.shape[0]
    if estimator == "stochastic":
        x_adv = x_adv.detach().requires_grad_(True)
        p = model((x_adv.unsqueeze(1) + noise).flatten(0, 1)).softmax(1).view(batch, M, -1).mean(1)
        loss = -p.gather(1, y.unsqueeze(1)).clamp_min(1e-20).log().sum()
        return torch.autograd.grad(loss, [x_adv])[0]
    with torch.no_grad():
        p = model((x_adv.unsqueeze(1) + noise).flatten(0, 1)).softmax(1)
        p = p.gather(1, y.repeat_interleave(M).unsqueeze(1)).view(batch, M, 1, 1, 1)
        return -(p * noise).mean(1)


def smooth_adv(model, x, y, noise, estimator):
    x_adv = x
    for _ in range(ATTACK_STEPS):
        g = attack_gradient(model, x_adv, y, noise, estimator)
        g = g / g.flatten(1).norm(dim=1).clamp_min(1e-30).view(-1, 1, 1, 1)
        v = (x_adv + 2 * EPSILON / ATTACK_STEPS * g).clamp(0, 1) - x
        norm = v.flatten(1).norm(dim=1).view(-1, 1, 1, 1)
        x_adv = x + v * (EPSILON / (norm + 1e-7)).clamp_max(1)
    return x_adv


def augment(x):
    padded = F.pad(x, (4, 4, 4, 4))
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        top, left = torch.randint(0, 9, (2,)).tolist()
        crop = padded[i, :, top:top + 32, left:left + 32]
        out[i] = crop.flip(-1) if torch.rand(()) < 0.5 else crop
    return out


def local_train(model, images, labels, steps, batch, estimator):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4)
    order = torch.cat([torch.randperm(len(images)) for _ in range(steps * batch // len(images) + 1)])
    for i in range(steps):
        chosen = order[i * batch:(i + 1) * batch]
        x, y = augment(images[chosen].float() / 255), labels[chosen]
        noise = torch.randn(batch, M, 3, 32, 32) * SIGMA
        x_adv = smooth_adv(model, x, y, noise, estimator)
        loss = F.cross_entropy(model((x_adv.unsqueeze(1) + noise).flatten(0, 1)),
                               y.repeat_interleave(M))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
    return model.state_dict()


def run_round(model, clients, steps, batch, estimator):
    average = None
    for images, labels in clients:
        weights = local_train(copy.deepcopy(model), images, labels, steps, batch, estimator)
        share = 1 / len(clients)
        if average is None:
            average = {name: share * w for name, w in weights.items()}
        else:
            for name, w in weights.items():
                average[name] += share * w
    model.load_state_dict(average)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--estimator", default="stochastic")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    model = alexnet()
    clients = [(torch.randint(0, 256, (500, 3, 32, 32), dtype=torch.uint8),
                torch.randint(0, 10, (500,))) for _ in range(options.clients)]
    run_round(model, clients[:1], 3, 30, options.estimator)
    start = time.perf_counter()
    run_round(model, clients, options.steps, 30, options.estimator)
    seconds = time.perf_counter() - start
    print(json.dumps({"torch": torch.__version__, "estimator": options.estimator,
                      "seconds_per_client_step": seconds / options.clients / options.steps}))


if __name__ == "__main__":
    main()

"""The networks as the peers use them, layer by layer those of fedsmooth/model/architectures.cpp:
normalisation first, ten classes."""
import torch
from torch import nn


class Normalize(nn.Module):
    def __init__(self):
        super().__init__()
        # Buffers, so that they move with the model; they are not weights of it.
        mean, sd = [0.4914, 0.4822, 0.4465], [0.2023, 0.1994, 0.2010]
        self.register_buffer("mean", torch.tensor(mean).view(1, 3, 1, 1), persistent=False)
        self.register_buffer("sd", torch.tensor(sd).view(1, 3, 1, 1), persistent=False)

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
        nn.Flatten(), nn.Linear(256, 10))


def conv_norm(inputs, outputs, kernel, stride):
    return [nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False),
            nn.BatchNorm2d(outputs)]


class BasicBlock(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        stride = outputs // inputs  # a stage that doubles the channels halves the map
        self.body = nn.Sequential(*conv_norm(inputs, outputs, 3, stride), nn.ReLU(inplace=True),
                                  *conv_norm(outputs, outputs, 3, 1))
        self.shortcut = nn.Sequential(*(conv_norm(inputs, outputs, 1, 2) if stride == 2 else []))

    def forward(self, x):
        return torch.relu_(self.body(x) + self.shortcut(x))


def resnet(depth):
    layers = [Normalize(), *conv_norm(3, 16, 3, 1), nn.ReLU(inplace=True)]
    inputs = 16
    for outputs in (16, 32, 64):
        for _ in range((depth - 2) // 6):
            layers.append(BasicBlock(inputs, outputs))
            inputs = outputs
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))


NETWORKS = {"alexnet": alexnet, "resnet20": lambda: resnet(20), "resnet110": lambda: resnet(110)}

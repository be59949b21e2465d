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


def resnet(blocks, channels):
    """Stages of basic blocks; each but the first halves the map and doubles the channels."""
    layers = [Normalize(), *conv_norm(3, channels[0], 3, 1), nn.ReLU(inplace=True)]
    inputs = channels[0]
    for outputs in channels:
        for _ in range(blocks):
            layers.append(BasicBlock(inputs, outputs))
            inputs = outputs
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, 10))


def cifar_resnet(depth):
    return resnet((depth - 2) // 6, (16, 32, 64))


def resnet18():
    return resnet(2, (64, 128, 256, 512))


def vgg16():
    layers, inputs = [Normalize()], 3
    for outputs, convolutions in ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3)):
        for _ in range(convolutions):
            layers += [nn.Conv2d(inputs, outputs, 3, 1, 1), nn.BatchNorm2d(outputs), nn.ReLU(inplace=True)]
            inputs = outputs
        layers.append(nn.MaxPool2d(2))
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(inputs, 10))


class WideBlock(nn.Module):
    """Norm, ReLU, convolution, twice. Where the shape changes, both paths read the first norm's result."""

    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.start = nn.Sequential(nn.BatchNorm2d(inputs), nn.ReLU(inplace=True))
        self.body = nn.Sequential(nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False),
                                  nn.BatchNorm2d(outputs), nn.ReLU(inplace=True),
                                  nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False))
        self.shortcut = None if inputs == outputs else nn.Conv2d(inputs, outputs, 1, stride, bias=False)

    def forward(self, x):
        start = self.start(x)
        return self.body(start) + (x if self.shortcut is None else self.shortcut(start))


def wide_resnet(depth, width):
    layers, inputs = [Normalize(), nn.Conv2d(3, 16, 3, 1, 1, bias=False)], 16
    for outputs, stride in ((16 * width, 1), (32 * width, 2), (64 * width, 2)):
        for i in range((depth - 4) // 6):
            layers.append(WideBlock(inputs, outputs, stride if i == 0 else 1))
            inputs = outputs
    return nn.Sequential(*layers, nn.BatchNorm2d(inputs), nn.ReLU(inplace=True), nn.AdaptiveAvgPool2d(1),
                         nn.Flatten(), nn.Linear(inputs, 10))


NETWORKS = {"alexnet": alexnet, "resnet20": lambda: cifar_resnet(20), "resnet110": lambda: cifar_resnet(110),
            "resnet18": resnet18, "vgg16-bn": vgg16, "wrn-16-4": lambda: wide_resnet(16, 4),
            "wrn-28-10": lambda: wide_resnet(28, 10)}

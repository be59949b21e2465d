#!/usr/bin/env python3
"""Writes the safetensors headers of state dicts as PyTorch users save them, for model_test.cpp.

Run with a Python that has torch and safetensors; the results are committed beside this file. The
data behind a header is as long as its offsets say and of no interest.
"""

import pathlib

from networks import MODULES
from safetensors.torch import save
from torch import nn


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        if stride != 1:
            self.downsample = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))


class ResNet20(nn.Module):
    """The tensors of a ResNet-20 for CIFAR, by the names common in PyTorch."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 16, 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(16)
        self.layer1 = nn.Sequential(Block(16, 16, 1), Block(16, 16, 1), Block(16, 16, 1))
        self.layer2 = nn.Sequential(Block(16, 32, 2), Block(32, 32, 1), Block(32, 32, 1))
        self.layer3 = nn.Sequential(Block(32, 64, 2), Block(64, 64, 1), Block(64, 64, 1))
        self.fc = nn.Linear(64, 10)


class AlexNet(nn.Module):
    """The tensors of the CIFAR AlexNet without hidden linear layers."""

    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 64, 11, 4, 5), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(64, 192, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(192, 384, 3, padding=1), nn.ReLU(),
            nn.Conv2d(384, 256, 3, padding=1), nn.ReLU(),
            nn.Conv2d(256, 256, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2))
        self.classifier = nn.Linear(256, 10)


def write_header(module, name):
    data = save(module.state_dict())
    length = int.from_bytes(data[:8], "little")
    (pathlib.Path(__file__).parent / f"{name}.header").write_bytes(data[8:8 + length])


# Sequential(normalize, DataParallel(net)) is how locuslab/smoothing wraps a ResNet for CIFAR,
# DataParallel how many scripts save.
write_header(nn.Sequential(nn.Identity(), nn.DataParallel(ResNet20())), "resnet20-wrapped")
write_header(nn.Sequential(nn.Identity(), ResNet20()), "resnet20-sequential")
write_header(nn.DataParallel(AlexNet()), "alexnet-parallel")
write_header(AlexNet(), "alexnet")
for name in ("resnet18", "vgg16-bn", "wrn-16-4"):
    write_header(MODULES[name](), name)

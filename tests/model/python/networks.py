"""The named networks as torch modules, with the names of tensors that their state dicts have where users get them:
kuangliu/pytorch-cifar (ResNet18, VGG16) and xternalz/WideResNet-pytorch (WideResNet)."""

import torch
from torch import nn
from torch.nn import functional as F


def conv3(inputs, outputs, stride=1, bias=False):
    return nn.Conv2d(inputs, outputs, 3, stride, 1, bias=bias)


class BasicBlock(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1, self.bn1 = conv3(inputs, outputs, stride), nn.BatchNorm2d(outputs)
        self.conv2, self.bn2 = conv3(outputs, outputs), nn.BatchNorm2d(outputs)
        self.shortcut = nn.Sequential()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x):
        out = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        return F.relu(out + self.shortcut(x))


class ResNet18(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.bn1 = conv3(3, 64), nn.BatchNorm2d(64)
        self.layer1 = nn.Sequential(BasicBlock(64, 64, 1), BasicBlock(64, 64, 1))
        self.layer2 = nn.Sequential(BasicBlock(64, 128, 2), BasicBlock(128, 128, 1))
        self.layer3 = nn.Sequential(BasicBlock(128, 256, 2), BasicBlock(256, 256, 1))
        self.layer4 = nn.Sequential(BasicBlock(256, 512, 2), BasicBlock(512, 512, 1))
        self.linear = nn.Linear(512, 10)

    def forward(self, x):
        x = F.relu(self.bn1(self.conv1(x)))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.linear(F.avg_pool2d(x, 4).flatten(1))


class VGG16(nn.Module):
    def __init__(self):
        super().__init__()
        layers, inputs = [], 3
        for outputs, count in ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3)):
            for _ in range(count):
                layers += [conv3(inputs, outputs, bias=True), nn.BatchNorm2d(outputs), nn.ReLU(inplace=True)]
                inputs = outputs
            layers.append(nn.MaxPool2d(2, 2))
        self.features = nn.Sequential(*layers, nn.AvgPool2d(1, 1))
        self.classifier = nn.Linear(512, 10)

    def forward(self, x):
        return self.classifier(self.features(x).flatten(1))


class WideBlock(nn.Module):
    """A block that changes the number of channels projects its input after the first norm and ReLU."""

    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.bn1, self.conv1 = nn.BatchNorm2d(inputs), conv3(inputs, outputs, stride)
        self.bn2, self.conv2 = nn.BatchNorm2d(outputs), conv3(outputs, outputs)
        if inputs != outputs:
            self.convShortcut = nn.Conv2d(inputs, outputs, 1, stride, bias=False)

    def forward(self, x):
        active = F.relu(self.bn1(x))
        out = self.conv2(F.relu(self.bn2(self.conv1(active))))
        return torch.add(self.convShortcut(active) if hasattr(self, "convShortcut") else x, out)


class WideStage(nn.Module):
    def __init__(self, blocks, inputs, outputs, stride):
        super().__init__()
        self.layer = nn.Sequential(
            *(WideBlock(inputs if i == 0 else outputs, outputs, stride if i == 0 else 1) for i in range(blocks)))

    def forward(self, x):
        return self.layer(x)


class WideResNet(nn.Module):
    def __init__(self, depth, width):
        super().__init__()
        blocks = (depth - 4) // 6
        self.conv1 = conv3(3, 16)
        self.block1 = WideStage(blocks, 16, 16 * width, 1)
        self.block2 = WideStage(blocks, 16 * width, 32 * width, 2)
        self.block3 = WideStage(blocks, 32 * width, 64 * width, 2)
        self.bn1 = nn.BatchNorm2d(64 * width)
        self.fc = nn.Linear(64 * width, 10)

    def forward(self, x):
        x = self.block3(self.block2(self.block1(self.conv1(x))))
        return self.fc(F.avg_pool2d(F.relu(self.bn1(x)), 8).flatten(1))


# Each named network as its users have it.
MODULES = {
    "resnet18": ResNet18,
    "vgg16-bn": VGG16,
    "wrn-10-1": lambda: WideResNet(10, 1),
    "wrn-16-4": lambda: WideResNet(16, 4),
    "wrn-28-10": lambda: WideResNet(28, 10),
}

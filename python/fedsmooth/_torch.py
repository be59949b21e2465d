"""The layers of a fedsmooth model as a torch module. Imported only where torch is asked for."""

from typing import Any

import numpy as np
import torch
from torch import nn

from ._core import Error

Layers = list[dict[str, Any]]
Tensors = dict[str, np.ndarray]


class Normalize(nn.Module):
    """(x - mean) / sd per channel."""

    def __init__(self, mean: list[float], sd: list[float]) -> None:
        super().__init__()
        self.register_buffer("mean", torch.tensor(mean).view(-1, 1, 1))
        self.register_buffer("sd", torch.tensor(sd).view(-1, 1, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x - self.mean) / self.sd


class Subsample(nn.Module):
    """Keeps every stride-th pixel in both directions, and appends channels of zeros."""

    def __init__(self, stride: int, outputs: int) -> None:
        super().__init__()
        self.stride, self.outputs = stride, outputs

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        kept = x[:, :, :: self.stride, :: self.stride]
        return nn.functional.pad(kept, (0, 0, 0, 0, 0, self.outputs - x.shape[1]))


class StandardizedConv2d(nn.Conv2d):
    """A convolution whose filters are centred and divided by their l2 norm."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        centred = self.weight - self.weight.mean((1, 2, 3), keepdim=True)
        length = (centred.square().sum((1, 2, 3), keepdim=True) + 1e-5).sqrt()
        return self._conv_forward(x, centred / length, self.bias)


class Residual(nn.Module):
    """body(x) + shortcut(x); an empty shortcut is x itself."""

    def __init__(self, body: nn.Module, shortcut: nn.Module) -> None:
        super().__init__()
        self.body, self.shortcut = body, shortcut

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.body(x) + self.shortcut(x)


def build(network: dict[str, Any], tensors: Tensors, sigma: float, class_names: list[str]) -> nn.Module:
    """Returns the module of a network description, in evaluation mode, with `sigma` and `class_names`."""
    module = nn.Sequential(_sequence(network["layers"], tensors), nn.Flatten()).eval()
    module.sigma, module.class_names = sigma, class_names
    return module


def _sequence(layers: Layers, tensors: Tensors) -> nn.Sequential:
    return nn.Sequential(*(_module(layer, tensors) for layer in layers))


def _module(layer: dict[str, Any], tensors: Tensors) -> nn.Module:
    kind = layer["kind"]
    if kind == "normalize":
        return Normalize(layer["mean"], layer["sd"])
    if kind == "conv":
        outputs, inputs, kernel, _ = tensors[layer["name"] + ".weight"].shape
        kind_of_conv = StandardizedConv2d if layer.get("standardize") else nn.Conv2d
        conv = kind_of_conv(inputs, outputs, kernel, layer["stride"], layer["padding"], bias=layer["bias"])
        return _filled(conv, layer["name"], tensors)
    if kind == "batch-norm":
        return _filled(nn.BatchNorm2d(len(tensors[layer["name"] + ".weight"])), layer["name"], tensors)
    if kind == "group-norm":
        norm = nn.GroupNorm(layer["groups"], len(tensors[layer["name"] + ".weight"]))
        return _filled(norm, layer["name"], tensors)
    if kind == "linear":
        outputs, inputs = tensors[layer["name"] + ".weight"].shape
        linear = _filled(nn.Linear(inputs, outputs, bias=layer["bias"]), layer["name"], tensors)
        return nn.Sequential(nn.Flatten(), linear, nn.Unflatten(1, (outputs, 1, 1)))
    if kind == "max-pool":
        return nn.MaxPool2d(layer["kernel"], layer["stride"])
    if kind == "subsample":
        return Subsample(layer["stride"], layer["outputs"])
    if kind == "dropout":
        return nn.Dropout(layer["drop_rate"])
    if kind == "residual":
        return Residual(_sequence(layer["body"], tensors), _sequence(layer["shortcut"], tensors))
    if kind == "avg-pool":
        return nn.AdaptiveAvgPool2d(1)
    if kind == "relu":
        return nn.ReLU()
    if kind == "leaky-relu":
        return nn.LeakyReLU(layer["slope"])
    if kind == "silu":
        return nn.SiLU()
    if kind == "gelu":
        return nn.GELU()
    raise Error(f"to_torch: {kind}: a layer that it does not know")


def _filled(module: nn.Module, name: str, tensors: Tensors) -> nn.Module:
    for field, tensor in (*module.named_parameters(), *module.named_buffers()):
        if field != "num_batches_tracked":
            tensor.data.copy_(torch.from_dlpack(tensors[f"{name}.{field}"]))
    return module

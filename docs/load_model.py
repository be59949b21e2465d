"""Loads a model that fedsmooth trained as a PyTorch module.

    from load_model import load
    model = load("runs/quickstart/smoothadv/model.safetensors")
    logits = model(images)  # images [B, C, H, W] in [0, 1]; the normalisation is in the model

The module is in evaluation mode. It carries what the file says of it: `model.sigma`, the noise it
was trained for, and `model.class_names`. Needs the packages torch and safetensors.
"""

import json

import torch
from safetensors import safe_open
from torch import nn


class Normalize(nn.Module):
    def __init__(self, mean, sd):
        super().__init__()
        self.register_buffer("mean", torch.tensor(mean).view(-1, 1, 1))
        self.register_buffer("sd", torch.tensor(sd).view(-1, 1, 1))

    def forward(self, x):
        return (x - self.mean) / self.sd


class Subsample(nn.Module):
    def __init__(self, stride, outputs):
        super().__init__()
        self.stride, self.outputs = stride, outputs

    def forward(self, x):
        kept = x[:, :, :: self.stride, :: self.stride]
        return nn.functional.pad(kept, (0, 0, 0, 0, 0, self.outputs - x.shape[1]))


class StandardizedConv2d(nn.Conv2d):
    def forward(self, x):
        centred = self.weight - self.weight.mean((1, 2, 3), keepdim=True)
        length = (centred.square().sum((1, 2, 3), keepdim=True) + 1e-5).sqrt()
        return self._conv_forward(x, centred / length, self.bias)


class Residual(nn.Module):
    def __init__(self, body, shortcut):
        super().__init__()
        self.body, self.shortcut = body, shortcut  # an empty shortcut is the identity

    def forward(self, x):
        return self.body(x) + self.shortcut(x)


def _filled(module, layer, weights):
    """`module` with the tensors of `layer`."""
    for field, tensor in (*module.named_parameters(), *module.named_buffers()):
        if field != "num_batches_tracked":
            tensor.data.copy_(weights[f"{layer['name']}.{field}"])
    return module


def _build(layer, weights):
    """One layer of the description, see fedsmooth/model/network_json.h, as a module."""
    kind = layer["kind"]
    if kind == "normalize":
        return Normalize(layer["mean"], layer["sd"])
    if kind == "conv":
        outputs, inputs, kernel, _ = weights[layer["name"] + ".weight"].shape
        kind_of_conv = StandardizedConv2d if layer.get("standardize") else nn.Conv2d
        conv = kind_of_conv(inputs, outputs, kernel, layer["stride"], layer["padding"],
                            bias=layer["bias"])
        return _filled(conv, layer, weights)
    if kind == "batch-norm":
        channels = len(weights[layer["name"] + ".weight"])
        return _filled(nn.BatchNorm2d(channels), layer, weights)
    if kind == "group-norm":
        channels = len(weights[layer["name"] + ".weight"])
        return _filled(nn.GroupNorm(layer["groups"], channels), layer, weights)
    if kind == "relu":
        return nn.ReLU()
    if kind == "leaky-relu":
        return nn.LeakyReLU(layer["slope"])
    if kind == "silu":
        return nn.SiLU()
    if kind == "gelu":
        return nn.GELU()
    if kind == "max-pool":
        return nn.MaxPool2d(layer["kernel"], layer["stride"])
    if kind == "avg-pool":
        return nn.AdaptiveAvgPool2d(1)
    if kind == "subsample":
        return Subsample(layer["stride"], layer["outputs"])
    if kind == "dropout":
        return nn.Dropout(layer["drop_rate"])
    if kind == "linear":
        outputs, inputs = weights[layer["name"] + ".weight"].shape
        linear = _filled(nn.Linear(inputs, outputs, bias=layer["bias"]), layer, weights)
        return nn.Sequential(nn.Flatten(), linear, nn.Unflatten(1, (outputs, 1, 1)))
    if kind == "residual":
        return Residual(_sequence(layer["body"], weights), _sequence(layer["shortcut"], weights))
    raise ValueError(f"unknown kind of layer: {kind}")


def _sequence(layers, weights):
    return nn.Sequential(*(_build(layer, weights) for layer in layers))


def load(path):
    """The model in the file `path`, written by `fedsmooth train`."""
    with safe_open(path, framework="pt") as file:
        metadata = file.metadata()
        weights = {name: file.get_tensor(name) for name in file.keys()}
    network = json.loads(metadata["fedsmooth.network"])
    model = nn.Sequential(_sequence(network["layers"], weights), nn.Flatten()).eval()
    model.sigma = float(metadata["fedsmooth.sigma"])
    model.class_names = json.loads(metadata["fedsmooth.classes"])
    return model

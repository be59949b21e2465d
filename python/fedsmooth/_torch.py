"""Between torch modules and the layers of a fedsmooth model. Imported only where torch is asked for."""

import copy
import json
from typing import Any

import numpy as np
import torch
from torch import nn

from . import _core
from ._convert import refuse_training_mode, to_numpy
from ._core import Error
from ._safetensors import format_safetensors

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
    """Every stride-th pixel; channels filled up with zeros."""

    def __init__(self, stride: int, outputs: int) -> None:
        super().__init__()
        self.stride, self.outputs = stride, outputs

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        kept = x[:, :, :: self.stride, :: self.stride]
        return nn.functional.pad(kept, (0, 0, 0, 0, 0, self.outputs - x.shape[1]))


class Residual(nn.Module):
    """body(x) + shortcut(x); an empty shortcut is x itself."""

    def __init__(self, body: nn.Module, shortcut: nn.Module) -> None:
        super().__init__()
        self.body, self.shortcut = body, shortcut

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.body(x) + self.shortcut(x)


def build(network: dict[str, Any], tensors: Tensors, sigma: float, class_names: list[str]) -> nn.Module:
    """The module of a network description, in evaluation mode, with `sigma` and `class_names`."""
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
        conv = nn.Conv2d(inputs, outputs, kernel, layer["stride"], layer["padding"], bias=layer["bias"])
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
    raise Error(f"to_torch: {kind}: a layer that it does not know")


def _filled(module: nn.Module, name: str, tensors: Tensors) -> nn.Module:
    for field, tensor in (*module.named_parameters(), *module.named_buffers()):
        if field != "num_batches_tracked":
            tensor.data.copy_(torch.from_dlpack(tensors[f"{name}.{field}"]))
    return module


def take_apart(module: nn.Module, input: tuple[int, ...], sigma: float, class_names: list[str]) -> bytes:
    """A model file of the module: of its layers where they are known one by one, else of the named
    network that its tensors fit."""
    refuse_training_mode(module)
    if isinstance(module, nn.DataParallel):
        module = module.module
    tensors: Tensors = {}
    metadata = {"fedsmooth.sigma": repr(float(sigma)), "fedsmooth.classes": json.dumps(class_names)}
    try:
        layers = _layers(module, "", tensors)
    except Error as unknown:
        return _named(module, input, metadata, unknown)
    if layers[:1] and layers[0]["kind"] != "normalize":  # without one our engines fall back to the slow reference
        layers.insert(0, {"kind": "normalize", "mean": [0.0] * input[0], "sd": [1.0] * input[0]})
    network = {"name": type(module).__name__, "input": list(input), "layers": layers}
    return format_safetensors(tensors, {"fedsmooth.network": json.dumps(network), **metadata})


def _named(module: nn.Module, input: tuple[int, ...], metadata: dict[str, str], unknown: Error) -> bytes:
    net, mean, sd = module, [0.0] * input[0], [1.0] * input[0]
    if isinstance(module, nn.Sequential) and len(module) == 2 and (found := _normalization(module[0])):
        net, (mean, sd) = module[1], found
    state = {name: to_numpy(tensor, name).astype(np.float32) for name, tensor in net.state_dict().items()}
    first = next(module.parameters())
    with torch.no_grad():
        classes = module(torch.zeros(1, *input, device=first.device, dtype=first.dtype)).shape[-1]
    try:
        model = _core.model_from_state(
            format_safetensors(state, metadata), type(net).__name__, mean, sd, list(input), classes
        )
    except Error:
        raise unknown from None
    return model.to_bytes()


def _normalization(module: nn.Module) -> tuple[list[float], list[float]] | None:
    """Mean and sd of a module that has them under the usual names, and nothing that is trained."""
    if next(module.parameters(), None) is not None:
        return None
    for mean, sd in (("mean", "sd"), ("means", "sds"), ("mean", "std")):
        if hasattr(module, mean) and hasattr(module, sd):
            return _list(getattr(module, mean)), _list(getattr(module, sd))
    return None


def _list(values: Any) -> list[float]:
    return torch.as_tensor(values).detach().cpu().double().flatten().tolist()


def _layers(module: nn.Module, name: str, tensors: Tensors) -> Layers:
    """The layers of one module, whose tensors are taken along."""
    name = name or "net"

    def refuse(why: str) -> Error:
        return Error(f"from_torch: {name} ({type(module).__name__}): {why}")

    if isinstance(module, (nn.Sequential, nn.Identity)):
        return [layer for child, part in module.named_children() for layer in _layers(part, f"{name}.{child}", tensors)]
    if found := _normalization(module):
        return [{"kind": "normalize", "mean": found[0], "sd": found[1]}]
    if isinstance(module, nn.Conv2d):
        windows = (module.kernel_size, module.stride, module.padding)  # padding may be a word
        if (
            any(len(set(w)) != 1 for w in windows)
            or module.groups != 1
            or set(module.dilation) != {1}
            or module.padding_mode != "zeros"
        ):
            raise refuse("only square kernels with zero padding, without groups and dilation, are known")
        _keep(module, name, tensors)
        return [
            {
                "kind": "conv",
                "name": name,
                "outputs": module.out_channels,
                "kernel": module.kernel_size[0],
                "stride": module.stride[0],
                "padding": module.padding[0],
                "bias": module.bias is not None,
            }
        ]
    if isinstance(module, nn.BatchNorm2d):
        if module.eps != 1e-5 or not module.affine or not module.track_running_stats:
            raise refuse("only eps=1e-5 with weights and running statistics is known")
        _keep(module, name, tensors)
        return [{"kind": "batch-norm", "name": name}]
    if isinstance(module, nn.GroupNorm):
        if module.eps != 1e-5 or not module.affine:
            raise refuse("only eps=1e-5 with weights is known")
        _keep(module, name, tensors)
        return [{"kind": "group-norm", "name": name, "groups": module.num_groups}]
    if isinstance(module, nn.Linear):
        _keep(module, name, tensors)
        return [{"kind": "linear", "name": name, "outputs": module.out_features, "bias": module.bias is not None}]
    if isinstance(module, nn.MaxPool2d):
        kernel, stride = _pair(module.kernel_size), _pair(module.stride)
        if len({*kernel}) != 1 or len({*stride}) != 1 or _pair(module.padding) != (0, 0) or module.ceil_mode:
            raise refuse("only square windows without padding are known")
        return [{"kind": "max-pool", "kernel": kernel[0], "stride": stride[0]}]
    if isinstance(module, nn.AdaptiveAvgPool2d) and _pair(module.output_size) == (1, 1):
        return [{"kind": "avg-pool"}]
    if isinstance(module, nn.ReLU):
        return [{"kind": "relu"}]
    if isinstance(module, (nn.Dropout, nn.Dropout2d)):
        return [{"kind": "dropout", "drop_rate": module.p}]
    if isinstance(module, (nn.Flatten, nn.Unflatten)):
        return []
    if isinstance(module, Subsample):
        return [{"kind": "subsample", "stride": module.stride, "outputs": module.outputs}]
    if isinstance(module, Residual):
        return [
            {
                "kind": "residual",
                "body": _layers(module.body, f"{name}.body", tensors),
                "shortcut": _layers(module.shortcut, f"{name}.shortcut", tensors),
            }
        ]
    raise refuse("our engine does not know this layer; use fs.Smooth(model, ...), which needs none")


def _pair(value: Any) -> tuple[int, int]:
    return (value, value) if isinstance(value, int) else tuple(value)


def _keep(module: nn.Module, name: str, tensors: Tensors) -> None:
    for field, tensor in module.state_dict().items():
        if field != "num_batches_tracked":
            tensors[f"{name}.{field}"] = to_numpy(tensor, name).astype(np.float32)


def compare(module: nn.Module, model: Any) -> None:
    """An Error unless both give the same logits on the CPU, up to rounding: that a layer is known by
    its type does not say that the module's forward() calls it. model: one of the CPU."""
    on_cpu = copy.deepcopy(module).to("cpu", torch.float32)  # GPUs round far more, theirs to TF32, ours to bfloat16
    images = np.random.default_rng(0).random((16, *model.input), dtype=np.float32) * 2 - np.float32(0.5)
    with torch.no_grad():
        theirs = to_numpy(on_cpu(torch.from_dlpack(images)), "model")
    ours = model.logits(images)
    if theirs.shape != ours.shape or not np.allclose(theirs, ours, rtol=0, atol=1e-3 * np.abs(theirs).max()):
        raise Error(
            f"from_torch: {type(module).__name__} does more than its layers say: the logits differ; "
            "use fs.Smooth(model, ...)"
        )

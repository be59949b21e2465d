"""The operations of torch that our engine has. What is not in LAYERS or FUNCTIONS is refused.

Each entry looks at one recorded operation, refuses options that our layers do not express, and adds a layer to
the lowering (see _from_torch.py).
"""

import operator
import sys
from collections.abc import Callable
from typing import Any

import torch
from torch import fx, nn
from torch.nn import functional as F

from ._torch import Normalize, StandardizedConv2d, Subsample

Layer = dict[str, Any]
Lowering = Any  # _Lowering of _from_torch.py, which imports this file


class Refusal(Exception):
    """The reason why an operation is not one of ours. The caller adds the operation's name."""


def is_constant(node: fx.Node) -> bool:
    """Returns whether the operation's result depends only on the shape of a map, as sizes and zeros do."""
    if node.target is getattr:
        return node.args[1] in ("shape", "ndim")
    if node.target in ("mul", operator.mul, torch.mul):
        return bool(node.args[1:] == (0,))
    return node.target in ("size", "dim", torch.zeros_like)


def merge(first: Layer, second: Layer) -> Layer | None:
    """Returns one layer that replaces two, or None: for x - mean and x / sd, and for a stride and more channels."""
    if first["kind"] != second["kind"]:
        return None
    if first["kind"] == "normalize" and set(first["sd"]) == {1.0} and set(second["mean"]) == {0.0}:
        return first | {"sd": second["sd"]}
    if first["kind"] == "subsample":
        return second | {"stride": first["stride"] * second["stride"]}
    return None


def refuse(*_: Any) -> None:
    raise Refusal("our engine does not have this layer")


def name_of(kind: Any) -> str:
    return kind if isinstance(kind, str) else getattr(kind, "__name__", str(kind))


def _square(module: nn.Module, name: str) -> int:
    value = getattr(module, name)
    pair = value if isinstance(value, tuple) else (value, value)
    if len(pair) != 2 or pair[0] != pair[1] or type(pair[0]) is not int:
        raise Refusal(f"{name}={value!r}; one number for both directions is known")
    return pair[0]


def _only(module: nn.Module, **known: Any) -> None:
    for name, value in known.items():
        if (found := getattr(module, name)) not in (value, (value, value)):
            raise Refusal(f"{name}={found!r}; only {value!r} is known")


def _conv(to: Lowering, node: fx.Node, module: nn.Conv2d) -> None:
    _only(module, padding_mode="zeros", groups=1, dilation=1, output_padding=0, transposed=False)
    layer = {
        "kind": "conv",
        "name": node.target,
        "outputs": module.out_channels,
        "kernel": _square(module, "kernel_size"),
        "stride": _square(module, "stride"),
        "padding": _square(module, "padding"),
        "bias": module.bias is not None,
    }
    if type(module) is StandardizedConv2d:
        layer["standardize"] = True
    to.keep_tensors(module, node.target, ("weight", "bias"))
    to.add(node, to.operand(node, axes=4), layer)


def _batch_norm(to: Lowering, node: fx.Node, module: nn.BatchNorm2d) -> None:
    _only(module, eps=1e-5, affine=True, track_running_stats=True)
    to.keep_tensors(module, node.target, ("weight", "bias", "running_mean", "running_var"))
    to.add(node, to.operand(node, axes=4), {"kind": "batch-norm", "name": node.target})


def _group_norm(to: Lowering, node: fx.Node, module: nn.GroupNorm) -> None:
    _only(module, eps=1e-5, affine=True)
    to.keep_tensors(module, node.target, ("weight", "bias"))
    to.add(node, to.operand(node, axes=4), {"kind": "group-norm", "name": node.target, "groups": module.num_groups})


def _linear(to: Lowering, node: fx.Node, module: nn.Linear) -> None:
    to.keep_tensors(module, node.target, ("weight", "bias"))
    layer = {"kind": "linear", "name": node.target, "outputs": module.out_features, "bias": module.bias is not None}
    to.add(node, to.operand(node, axes=2), layer)


def _max_pool(to: Lowering, node: fx.Node, module: nn.MaxPool2d) -> None:
    _only(module, padding=0, dilation=1, ceil_mode=False, return_indices=False)
    layer = {"kind": "max-pool", "kernel": _square(module, "kernel_size"), "stride": _square(module, "stride")}
    to.add(node, to.operand(node, axes=4), layer)


def _avg_pool(to: Lowering, node: fx.Node, module: nn.AvgPool2d) -> None:
    """Lowers a pool over the whole map, or over one pixel with a stride, which leaves out the pixels between."""
    _only(module, padding=0, ceil_mode=False, divisor_override=None)
    x, kernel = to.operand(node, axes=4), _square(module, "kernel_size")
    _, channels, *pixels = to.values.shape(x)
    if kernel == 1:
        to.add(node, x, {"kind": "subsample", "stride": _square(module, "stride"), "outputs": channels})
    elif pixels == [kernel, kernel]:
        to.add(node, x, {"kind": "avg-pool"})
    else:
        raise Refusal(f"kernel_size={kernel}; the mean over the whole map, here {pixels}, is known")


def _global_pool(to: Lowering, node: fx.Node, module: nn.AdaptiveAvgPool2d) -> None:
    _only(module, output_size=1)
    to.add(node, to.operand(node, axes=4), {"kind": "avg-pool"})


def _mean(to: Lowering, node: fx.Node) -> None:
    given, named = to.rest(node)
    options = dict(zip(("dim", "keepdim"), given, strict=False)) | named
    axes = options.get("dim")
    if set(options) - {"dim", "keepdim"} or not isinstance(axes, (tuple, list)) or {a % 4 for a in axes} != {2, 3}:
        raise Refusal("the mean over height and width is known")
    to.add(node, to.operand(node, axes=4), {"kind": "avg-pool"})


def _activation(to: Lowering, node: fx.Node, module: Any, layer: Layer) -> None:
    x = to.operand(node)
    if getattr(module, "inplace", False):
        to.refuse_if_read_elsewhere(x)
    to.add_same(node, x, layer)


def _relu(to: Lowering, node: fx.Node, module: nn.ReLU) -> None:
    _activation(to, node, module, {"kind": "relu"})


def _leaky_relu(to: Lowering, node: fx.Node, module: nn.LeakyReLU) -> None:
    _activation(to, node, module, {"kind": "leaky-relu", "slope": module.negative_slope})


def _silu(to: Lowering, node: fx.Node, module: nn.SiLU) -> None:
    _activation(to, node, module, {"kind": "silu"})


def _gelu(to: Lowering, node: fx.Node, module: nn.GELU) -> None:
    _only(module, approximate="none")
    _activation(to, node, module, {"kind": "gelu"})


def _dropout(to: Lowering, node: fx.Node, module: nn.Dropout) -> None:
    to.add_same(node, to.operand(node), {"kind": "dropout", "drop_rate": module.p})


def _nothing(to: Lowering, node: fx.Node, module: nn.Identity) -> None:
    to.add_same(node, to.operand(node))


def _reshape(to: Lowering, node: fx.Node, *_: nn.Module) -> None:
    to.add_reshaped(node, to.operand(node))


def _drop(to: Lowering, node: fx.Node) -> None:
    given, named = to.rest(node)
    if given or named.get("training", True):
        raise Refusal("drops in evaluation mode too; give it training=self.training")
    _dropout(to, node, nn.Dropout(named.get("p", 0.5)))


def _normalize(to: Lowering, node: fx.Node, mean: Any, sd: Any) -> None:
    """Adds a normalisation. `mean` and `sd` are values that torch would broadcast to a map."""
    x = to.operand(node, axes=4)

    def per_channel(values: Any) -> list[float]:
        try:
            spread = torch.as_tensor(values).detach().double().expand(to.values.shape(x))
        except (RuntimeError, TypeError, ValueError):
            raise Refusal("its mean or sd is not one number per channel") from None
        found = spread[0, :, 0, 0]
        if not torch.equal(spread, found.view(-1, 1, 1).expand_as(spread)):
            raise Refusal("its mean or sd is not one number per channel")
        return [float(value) for value in found]

    to.add(node, x, {"kind": "normalize", "mean": per_channel(mean), "sd": per_channel(sd)})


def _normalize_module(to: Lowering, node: fx.Node, module: Any) -> None:
    """Lowers our Normalize, or torchvision's."""
    if getattr(module, "inplace", False):
        raise Refusal("inplace=True overwrites the image")
    sd = module.sd if type(module) is Normalize else module.std
    _normalize(to, node, *(torch.as_tensor(values).view(-1, 1, 1) for values in (module.mean, sd)))


def _second(to: Lowering, node: fx.Node) -> Any:
    to.operand(node)
    given, named = to.rest(node)
    if len(given) != 1 or named:
        raise Refusal("is called with options")
    return given[0]


def _subtract(to: Lowering, node: fx.Node) -> None:
    _normalize(to, node, _second(to, node), 1.0)


def _divide(to: Lowering, node: fx.Node) -> None:
    _normalize(to, node, 0.0, _second(to, node))


def _subsample(to: Lowering, node: fx.Node, module: Subsample) -> None:
    layer = {"kind": "subsample", "stride": module.stride, "outputs": module.outputs}
    to.add(node, to.operand(node, axes=4), layer)


def _concatenate(to: Lowering, node: fx.Node) -> None:
    """Lowers torch.cat((x, zeros), 1), where zeros is x.mul(0) or torch.zeros_like(x), to channels of zeros."""
    parts: Any = node.args[0] if node.args[1:] == (1,) or node.kwargs == {"dim": 1} else ()
    if len(parts) != 2 or not to.is_map(parts[0]) or to.is_map(parts[1]) or to.values.value(parts[1]).any():
        raise Refusal("zeros behind the channels of a map are known")
    to.add(node, parts[0], {"kind": "subsample", "stride": 1, "outputs": to.values.shape(node)[1]})


def _sum(to: Lowering, node: fx.Node) -> None:
    if node.target in (operator.iadd, "add_"):
        to.refuse_if_read_elsewhere(node.args[0])
    to.add_sum(node)


def _as(module: type[nn.Module], lower: Callable[..., None]) -> Callable[..., None]:
    """Returns an entry that lowers a function as the module with its arguments."""

    def lower_function(to: Lowering, node: fx.Node) -> None:
        given, named = to.rest(node)
        try:
            same = module(*given, **named)
        except TypeError:
            raise Refusal("is called with options") from None
        lower(to, node, same)

    return lower_function


LAYERS: dict[type, Callable[..., None]] = {
    nn.Conv2d: _conv,
    StandardizedConv2d: _conv,
    nn.BatchNorm2d: _batch_norm,
    nn.GroupNorm: _group_norm,
    nn.Linear: _linear,
    nn.MaxPool2d: _max_pool,
    nn.AvgPool2d: _avg_pool,
    nn.AdaptiveAvgPool2d: _global_pool,
    nn.ReLU: _relu,
    nn.LeakyReLU: _leaky_relu,
    nn.SiLU: _silu,
    nn.GELU: _gelu,
    nn.Dropout: _dropout,
    nn.Dropout2d: _dropout,
    nn.Identity: _nothing,
    nn.Flatten: _reshape,
    nn.Unflatten: _reshape,
    Normalize: _normalize_module,
    Subsample: _subsample,
}


def layer_of(kind: type) -> Callable[..., None] | None:
    """Returns the entry of an exact type. torchvision's Normalize has one, too, if torchvision is imported."""
    if (transforms := sys.modules.get("torchvision.transforms")) and kind is transforms.Normalize:
        return _normalize_module
    return LAYERS.get(kind)


FUNCTIONS: dict[Any, Callable[..., None]] = {
    F.max_pool2d: _as(nn.MaxPool2d, _max_pool),
    F.avg_pool2d: _as(nn.AvgPool2d, _avg_pool),
    F.adaptive_avg_pool2d: _as(nn.AdaptiveAvgPool2d, _global_pool),
    F.leaky_relu: _as(nn.LeakyReLU, _leaky_relu),
    F.silu: _as(nn.SiLU, _silu),
    F.gelu: _as(nn.GELU, _gelu),
    F.dropout: _drop,
    torch.cat: _concatenate,
    **dict.fromkeys((F.relu, torch.relu, "relu"), _as(nn.ReLU, _relu)),
    **dict.fromkeys((torch.flatten, "flatten", "view", torch.reshape, "reshape"), _reshape),
    **dict.fromkeys((torch.mean, "mean"), _mean),
    **dict.fromkeys((operator.add, operator.iadd, torch.add, "add", "add_"), _sum),
    **dict.fromkeys((operator.sub, torch.sub, "sub"), _subtract),
    **dict.fromkeys((operator.truediv, torch.div, "div"), _divide),
}

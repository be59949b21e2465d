"""A torch module as the layers of a fedsmooth model. Imported only where torch is asked for.

torch.fx runs the module once on a symbolic image and records every operation that its forward() calls. Each
recorded operation must be one that our engine has: a layer whose exact type is in LAYERS, or a function that
is in FUNCTIONS. Any other operation is refused by name, so that a certificate of the layers is one of the
module. compare() then compares the logits of both under the noise of the votes.
"""

import copy
import json
import math
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import fx, nn
from torch.nn.modules import module as all_modules
from torch.nn.utils import parametrize

from ._adapt import refuse_training_mode
from ._convert import to_numpy
from ._core import Error
from ._safetensors import format_safetensors
from ._torch_layers import FUNCTIONS, Refusal, is_constant, layer_of, merge, name_of, refuse

Layer = dict[str, Any]
ROOT = "net"
PROBED = 2  # number of images on which a recording is run once
SUGGESTION = "use fs.Smooth(model, ...), which takes any function"


def copy_to_cpu(module: nn.Module) -> nn.Module:
    """Returns a float32 copy, on the CPU, of a module in evaluation mode. Raises an Error if a part of it does not
    compute what its type says."""
    refuse_training_mode(module)
    for name, part in module.named_modules(prefix=ROOT):
        _refuse_changed(name, part)
    module = copy.deepcopy(module.module if type(module) is nn.DataParallel else module).to("cpu", torch.float32)
    for part in module.modules():  # .to() does not reach tensors that are neither parameters nor buffers
        for name, value in vars(part).items():
            if isinstance(value, torch.Tensor) and value.is_floating_point():
                setattr(part, name, value.to("cpu", torch.float32))
    return module


def take_apart(module: nn.Module, input: tuple[int, ...], sigma: float, class_names: list[str]) -> bytes:
    """Returns a model file of a module from copy_to_cpu(). Raises an Error that names what our engine does not have."""
    recorded = _record(module, input)
    network = {"name": type(module).__name__, "input": list(input), "layers": recorded.layers()}
    metadata = {"fedsmooth.sigma": repr(float(sigma)), "fedsmooth.classes": json.dumps(class_names)}
    return format_safetensors(recorded.tensors, {"fedsmooth.network": json.dumps(network), **metadata})


def _refuse_changed(name: str, module: nn.Module) -> None:
    """Raises an Error if the module does not compute what its type says."""
    where = f"from_torch: {name} ({type(module).__name__})"
    if parametrize.is_parametrized(module):
        raise Error(f"{where}: is parametrized; torch.nn.utils.parametrize.remove_parametrizations() undoes that")
    if module._forward_hooks or module._forward_pre_hooks:
        raise Error(f"{where}: has a forward hook; remove it (weight norm, spectral norm and pruning are hooks too)")
    if all_modules._global_forward_hooks or all_modules._global_forward_pre_hooks:
        raise Error(f"{where}: torch has a global forward hook; remove it")
    for field, tensor in (*module.named_parameters(recurse=False), *module.named_buffers(recurse=False)):
        if type(tensor) not in (torch.Tensor, nn.Parameter):  # a subclass may compute something else
            raise Error(f"{where}: its {field} is a {type(tensor).__name__}; {SUGGESTION}")
    for attribute in vars(module):
        if callable(getattr(type(module), attribute, None)):
            raise Error(f"{where}: its {attribute}() was replaced; {SUGGESTION}")


class _Tracer(fx.Tracer):
    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        return layer_of(type(m)) is not None or super().is_leaf_module(m, module_qualified_name)


class _Values(fx.Interpreter):
    """Runs a recording on an image, to see the shapes of maps and the values of constants."""

    def __init__(self, recorded: fx.GraphModule) -> None:
        super().__init__(recorded, garbage_collect_values=False)

    def value(self, x: Any) -> Any:
        return self.env[x] if isinstance(x, fx.Node) else x

    def shape(self, node: fx.Node) -> tuple[int, ...]:
        return tuple(self.env[node].shape)


def _record(module: nn.Module, input: tuple[int, ...]) -> "_Lowering":
    root = nn.Sequential(OrderedDict({ROOT: module})).eval()
    try:
        graph = _Tracer().trace(root)
        values = _Values(fx.GraphModule(root, graph))
        with torch.no_grad():
            values.run(torch.full((PROBED, *input), 0.5))
    except Exception as error:  # whatever the module's forward() may raise
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        name = type(module).__name__
        raise Error(f"from_torch: {name}: its forward() cannot be recorded ({reason}); {SUGGESTION}") from None
    return _Lowering(root, graph, values)


class _Lowering:
    """The layers of a recording. A map is a node that depends on the image's pixels; one of our layers, or none, leads
    to each map from the map `before` it. A sum of two maps is a residual block, and the map before it is the one where
    the two paths part."""

    def __init__(self, root: nn.Module, graph: fx.Graph, values: _Values) -> None:
        self.values = values
        self.tensors: dict[str, Any] = {}
        self._modules = dict(root.named_modules())
        self._before: dict[fx.Node, fx.Node | None] = {}
        self._layer: dict[fx.Node, Layer | None] = {}
        self._shape: dict[fx.Node, tuple[int, ...]] = {}  # [C, H, W] in our engine, which does not flatten
        for node in graph.nodes:
            if node.op == "placeholder":
                self._first = node
                self._keep(node, None, None, values.shape(node)[1:])
            elif node.op == "output":
                self._last = node.args[0]
            elif any(map(self.is_map, node.all_input_nodes)) and not is_constant(node):
                self._lower(node)

    def layers(self) -> list[Layer]:
        """Returns the layers of the whole module."""
        if not self.is_map(self._last) or len(self.values.shape(self._last)) != 2:
            raise Error("from_torch: the module does not give logits [B, K]")
        layers = self._between(self._first, self._last)
        if not layers or layers[0]["kind"] != "normalize":  # without one our engines fall back to the slow reference
            channels = self._shape[self._first][0]
            layers.insert(0, {"kind": "normalize", "mean": [0.0] * channels, "sd": [1.0] * channels})
        return layers

    def is_map(self, x: Any) -> bool:
        return isinstance(x, fx.Node) and x in self._before

    def _keep(self, node: fx.Node, before: fx.Node | None, layer: Layer | None, shape: tuple[int, ...]) -> None:
        self._before[node], self._layer[node], self._shape[node] = before, layer, shape

    def _between(self, first: fx.Node, last: fx.Node) -> list[Layer]:
        found: list[Layer] = []
        while last is not first:
            if layer := self._layer[last]:
                merged = merge(layer, found[0]) if found else None
                if merged is None:
                    found.insert(0, layer)
                else:
                    found[0] = merged
            last = self._before[last]
        return found

    def _lower(self, node: fx.Node) -> None:
        module = self._modules[node.target] if node.op == "call_module" else None
        kind = node.target if module is None else type(module)
        where = name_of(kind) if module is None else f"{node.target} ({name_of(kind)})"
        try:
            if module is None:
                lower: Callable[..., None] = FUNCTIONS.get(kind, refuse)
                lower(self, node)
            else:
                lower = layer_of(kind) or refuse
                lower(self, node, module)
        except Refusal as why:
            raise Error(f"from_torch: {where}: {why}; {SUGGESTION}") from None

    # The methods that the entries of LAYERS and FUNCTIONS call.

    def operand(self, node: fx.Node, axes: int = 0) -> fx.Node:
        """Returns the only map among the operation's arguments, which must have `axes` axes; 0: any number."""
        x = node.args[0] if node.args else None
        if node.all_input_nodes.count(x) != 1 or sum(map(self.is_map, node.all_input_nodes)) != 1:
            raise Refusal("is not called with one map")
        if node.op == "call_module" and (len(node.args) != 1 or node.kwargs):
            raise Refusal("is called with options")
        if axes and len(self.values.shape(x)) != axes:
            raise Refusal(f"is called with a map of {len(self.values.shape(x))} axes, {axes} are known")
        return x

    def rest(self, node: fx.Node) -> tuple[list[Any], dict[str, Any]]:
        """Returns the other arguments of a function, which are constants."""
        return [self.values.value(a) for a in node.args[1:]], {k: self.values.value(a) for k, a in node.kwargs.items()}

    def add(self, node: fx.Node, x: fx.Node, layer: Layer) -> None:
        """Adds a layer whose output is a map as our engine has it."""
        shape = self.values.shape(node)[1:]
        self._keep(node, x, layer, shape if len(shape) == 3 else (math.prod(shape), 1, 1))

    def add_same(self, node: fx.Node, x: fx.Node, layer: Layer | None = None) -> None:
        """Adds a layer that works on each number, or no layer."""
        self._keep(node, x, layer, self._shape[x])

    def add_reshaped(self, node: fx.Node, x: fx.Node) -> None:
        """Adds no layer for a reshape: our engine keeps [C, H, W] where torch flattens."""
        batch, *found = self.values.shape(node)
        if batch != PROBED or tuple(found) not in ((math.prod(self._shape[x]),), self._shape[x]):
            raise Refusal(f"makes {found} of {list(self._shape[x])}; flattening is known")
        self.add_same(node, x)

    def add_sum(self, node: fx.Node) -> None:
        if len(node.args) != 2 or node.kwargs or not all(map(self.is_map, node.args)):
            raise Refusal("adds something else than two maps")
        a, b = node.args
        if self._shape[a] != self._shape[b] or self.values.shape(a) != self.values.shape(b):
            raise Refusal("adds maps of two shapes")
        above, fork = {a}, b
        while (up := self._before[a]) is not None:
            above.add(a := up)
        while fork not in above:
            fork = self._before[fork]
        a, b = sorted(node.args, key=lambda end: -len(self._between(fork, end)))
        layer = {"kind": "residual", "body": self._between(fork, a), "shortcut": self._between(fork, b)}
        self._keep(node, fork, layer, self._shape[a])

    def refuse_if_read_elsewhere(self, x: fx.Node) -> None:
        """Raises a Refusal if an operation that overwrites x, or the map of which x is a view, changes what other
        operations read."""
        while x is not None:
            if sum(not is_constant(user) for user in x.users) > 1:
                raise Refusal("overwrites a map that is read elsewhere")
            layer = self._layer[x]
            if layer is not None and layer["kind"] != "dropout":  # x has memory of its own, or was checked
                break
            x = self._before[x]

    def keep_tensors(self, module: nn.Module, name: str, fields: tuple[str, ...]) -> None:
        for field in fields:
            if (tensor := getattr(module, field)) is not None:
                self.tensors[f"{name}.{field}"] = to_numpy(tensor, name)


def compare(module: nn.Module, model: Any, sigma: float) -> None:
    """Raises an Error unless module and model give the same logits, up to rounding, under the noise of the votes and
    under four times that noise. This finds what the recording cannot see, such as another path for real tensors. They
    are compared on the CPU, because GPUs round far more. sigma = 0, where the noise is not stated, counts as 1."""
    random, noise = np.random.default_rng(0), sigma or 1.0
    for scale in (noise, 4 * noise):
        images = random.random((16, *model.input)) + scale * random.standard_normal((16, *model.input))
        images = images.astype(np.float32)
        with torch.no_grad():
            theirs = to_numpy(module(torch.from_dlpack(images)), "model")
        ours = model.logits(images)
        if theirs.shape != ours.shape or not np.allclose(theirs, ours, rtol=0, atol=1e-3 * np.abs(theirs).max()):
            raise Error(
                f"from_torch: {type(module).__name__} does more than its layers say: the logits differ under noise of "
                f"{scale:g}; {SUGGESTION}"
            )

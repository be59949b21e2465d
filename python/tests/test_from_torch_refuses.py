"""from_torch refuses what our layers do not say, by its name."""

import pytest
from conftest import SHAPE

import fedsmooth as fs

torch = pytest.importorskip("torch")
prune = pytest.importorskip("torch.nn.utils.prune")
from test_from_torch import convert, small  # noqa: E402  (needs torch)

nn = torch.nn
F = nn.functional


class FlipsFarOut(nn.Sequential):
    def forward(self, x):
        y = super().forward(x)
        return torch.where((x.abs().amax((1, 2, 3)) > 2)[:, None], y.flip(1), y)


class Clamps(nn.Sequential):
    def forward(self, x):
        return super().forward(x.clamp(-0.5, 1.5))


class Doubles(nn.Sequential):
    def forward(self, x):
        return 2 * super().forward(x)


class Branches(nn.Sequential):
    def forward(self, x):
        return super().forward(-x if x.amax() > 2 else x)


class OverwritesItsInput(nn.Sequential):
    def forward(self, x):
        x = super().forward(x)
        x.clamp_(-1, 1)
        return x


class Scaled(nn.Linear):
    def forward(self, x):
        return super().forward(x) * (1 + (x.abs().amax() > 2))


class DropsAlways(nn.Sequential):
    def forward(self, x):
        return F.dropout(super().forward(x), 0.5)


class AddsAMap(nn.Module):
    """Whose body may overwrite what its shortcut reads."""

    def __init__(self, body):
        super().__init__()
        self.body = body

    def forward(self, x):
        return self.body(x) + x


OTHER_FUNCTIONS = {
    "flips far out": (FlipsFarOut(small()), "where|amax|abs"),
    "clamps": (Clamps(small()), "clamp"),
    "doubles": (Doubles(small()), "mul"),
    "branches": (Branches(small()), "cannot be recorded"),
    "overwrites": (OverwritesItsInput(small()), "clamp_"),
    "a changed linear layer": (nn.Sequential(nn.Flatten(), Scaled(108, 4)), "linear"),
    "drops always": (DropsAlways(small()), "dropout"),
    "an unknown layer": (small(nn.ELU()), r"net\.1 \(ELU\)"),
    "another form of gelu": (small(nn.GELU("tanh")), "approximate"),
    "dilation": (small(nn.Conv2d(8, 8, 3, padding=2, dilation=2)), "dilation"),
    "groups": (small(nn.Conv2d(8, 8, 3, padding=1, groups=2)), "groups"),
    "padding by a word": (small(nn.Conv2d(8, 8, 3, padding="same")), "padding='same'"),
    "reflected padding": (small(nn.Conv2d(8, 8, 3, padding=1, padding_mode="reflect")), "padding_mode"),
    "no square": (small(nn.Conv2d(8, 8, (3, 1), padding=(1, 0))), "kernel_size"),
    "another eps": (small(nn.BatchNorm2d(8, eps=1e-3)), "eps"),
    "no weights": (small(nn.GroupNorm(4, 8, affine=False)), "affine"),
    "no statistics": (small(nn.BatchNorm2d(8, track_running_stats=False)), "track_running_stats"),
    "dilated pool": (small(nn.MaxPool2d(2, 1, padding=0, dilation=5), shape=(8, 1, 1)), "dilation"),
    "ceiled pool": (small(nn.MaxPool2d(4, ceil_mode=True), shape=(8, 2, 2)), "ceil_mode"),
    "mean of parts": (small(nn.AvgPool2d(2), shape=(8, 3, 3)), "whole map"),
    "rows": (nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.Linear(6, 4)), "4 axes"),
    "another map": (small(nn.Flatten(), nn.Unflatten(1, (2, 12, 12))), "flattening"),
    "overwritten shortcut": (small(AddsAMap(nn.Sequential(nn.Identity(), nn.ReLU(inplace=True)))), "read elsewhere"),
    "two outputs": (nn.Conv2d(3, 4, 3), "logits"),
}


@pytest.mark.parametrize("module, message", OTHER_FUNCTIONS.values(), ids=OTHER_FUNCTIONS)
def test_what_our_layers_do_not_say_is_refused_by_name(module, message):
    with pytest.raises(fs.Error, match=message):
        fs.from_torch(module.eval(), SHAPE, sigma=1.0)


def replace_forward(module):
    module[0].forward = lambda x: 2 * nn.Conv2d.forward(module[0], x)


def replace_inner_method(module):
    module[0]._conv_forward = lambda x, w, b: F.conv2d(2 * x, w, b, padding=1)


def hook(module):
    module[0].register_forward_hook(lambda m, x, y: 2 * y)


def pre_hook(module):
    module.register_forward_pre_hook(lambda m, x: (x[0].clamp(0, 1),))


def subclass_of_tensor(module):
    class Quantized(torch.Tensor):
        pass

    module[0].weight = nn.Parameter(module[0].weight.detach().as_subclass(Quantized))


CHANGES = {
    "forward": (replace_forward, r"net\.0 \(Conv2d\): its forward\(\) was replaced"),
    "inner method": (replace_inner_method, r"its _conv_forward\(\) was replaced"),
    "hook": (hook, r"net\.0 \(Conv2d\): has a forward hook"),
    "pre-hook": (pre_hook, r"net \(Sequential\): has a forward hook"),
    "weight norm": (lambda m: nn.utils.weight_norm(m[0]), "hook"),
    "spectral norm": (lambda m: nn.utils.spectral_norm(m[2]), "hook"),
    "parametrization": (lambda m: nn.utils.parametrizations.weight_norm(m[0]), r"net\.0 .*is parametrized"),
    "pruning": (lambda m: prune.random_unstructured(m[2], "weight", 0.5), "hook"),
    "tensor": (subclass_of_tensor, r"net\.0 \(Conv2d\): its weight is a Quantized"),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("change, message", CHANGES.values(), ids=CHANGES)
def test_changed_modules_are_refused_by_name(change, message):
    module = small().eval()
    change(module)
    module.eval()
    with pytest.raises(fs.Error, match=message):
        fs.from_torch(module, SHAPE, sigma=1.0)


def test_a_parametrization_that_was_removed_is_part_of_the_weights():
    module = small()
    nn.utils.parametrizations.weight_norm(module[0])
    nn.utils.parametrize.remove_parametrizations(module[0], "weight")
    convert(module)


def test_global_hooks_are_refused():
    handle = nn.modules.module.register_module_forward_hook(lambda m, x, y: y)
    try:
        with pytest.raises(fs.Error, match="global forward hook"):
            fs.from_torch(small().eval(), SHAPE)
    finally:
        handle.remove()


class ClampsRealTensors(nn.Sequential):
    """What is recorded is no tensor, and goes another way."""

    def forward(self, x):
        return super().forward(x.clamp(-0.5, 1.5) if type(x) is torch.Tensor else x)


@pytest.mark.parametrize("sigma, noise", [(1.0, "1"), (0.2, "0.8"), (0.0, "1")])
def test_logits_are_compared_at_the_noise_of_the_votes(sigma, noise):
    with pytest.raises(fs.Error, match=f"the logits differ under noise of {noise};"):
        fs.from_torch(ClampsRealTensors(small()).eval(), SHAPE, sigma=sigma)
    fs.from_torch(ClampsRealTensors(small()).eval(), SHAPE, sigma=0.01)  # where no pixel is clamped

"""What Smooth asks of torch modules, with a stand-in of a few lines: runs where torch is not installed."""

import contextlib
import sys
import types

import numpy as np
import pytest
from conftest import half_space

import fedsmooth as fs


def corner(images):
    return half_space(images[:, :, :6, :6])


class Module:
    def __init__(self, children=()):
        self.training, self.children = True, dict(children)

    def named_modules(self):
        yield "", self
        yield from self.children.items()

    def eval(self):
        for _, module in self.named_modules():
            module.training = False

    def parameters(self):
        return iter(())

    buffers = parameters

    def __call__(self, images):
        assert isinstance(images, Tensor)
        return Tensor(corner(images.values))


class Tensor:
    device, dtype = "cpu", "torch.float32"

    def __init__(self, values):
        self.values = values

    def to(self, device, dtype):
        return self

    def detach(self):
        return self

    cpu = detach

    def __dlpack__(self, **options):
        return self.values.__dlpack__()

    def __dlpack_device__(self):
        return self.values.__dlpack_device__()


@pytest.fixture(autouse=True)
def torch(monkeypatch):
    fake = types.SimpleNamespace(
        Tensor=Tensor,
        nn=types.SimpleNamespace(Module=Module),
        float32="torch.float32",
        device=str,
        from_dlpack=Tensor,
        no_grad=contextlib.nullcontext,
        __version__="fake",
    )
    monkeypatch.setitem(sys.modules, "torch", fake)


OPTIONS = {"n": 1000, "batch_size": 100}


def test_modules_get_tensors_and_give_the_same_votes(image):
    module = Module()
    module.eval()
    ours = fs.Smooth(module, 2, 0.25).certificate(image, 3, **OPTIONS)
    assert ours.count_top == fs.Smooth(half_space, 2, 0.25).certificate(image, 3, **OPTIONS).count_top
    assert ours.base == "cpu/fp32/torch-fakex100"


@pytest.mark.parametrize("side, batch", [(6, 64), (32, 64), (64, 16), (224, 8)])
def test_default_batch_of_a_module_on_a_cpu(side, batch):
    """Activations of larger batches make every layer wait for fresh pages."""
    module = Module()
    module.eval()
    assert base_at_default_batch(module, side).endswith(f"x{batch}")


def test_default_batch_of_another_function():
    assert base_at_default_batch(corner, 6).endswith("x1000")


def base_at_default_batch(f, side):
    test_set = np.zeros((1, 3, side, side), np.float32), [0]
    return fs.certify(fs.Smooth(f, 2, 0.25), test_set, n0=1, n=10)["base"][0]


def test_training_mode_is_refused_by_name(image):
    with pytest.raises(fs.Error, match="Module is in training mode"):
        fs.Smooth(Module(), 2, 0.25).certificate(image, 0, **OPTIONS)
    module = Module({"head.drop": Module()})
    module.training = False
    with pytest.raises(fs.Error, match="head.drop is in training mode"):
        fs.certify(fs.Smooth(module, 2, 0.25), (image[None], np.array([1])), **OPTIONS)


def test_core_py_s_methods_set_evaluation_mode(image):
    module = Module({"head.drop": Module()})
    with pytest.warns(UserWarning, match="Module was in training mode.*call .train") as warned:
        assert fs.Smooth(module, 2, 0.25).certify(image, 100, 1000, 0.001, 100)[0] == 1
        assert fs.Smooth(module, 2, 0.25).predict(image, 1000, 0.001, 100) == 1
    assert len(warned) == 1 and warned[0].filename == __file__
    assert not module.training and not module.children["head.drop"].training

"""Beside torch, in one process. Skipped where it is not installed."""

import subprocess
import sys
import types

import numpy as np
import pytest
from conftest import SHAPE, network

import fedsmooth as fs

torch = pytest.importorskip("torch")
nn = torch.nn


class NormalizeLayer(nn.Module):
    """As in locuslab/smoothing: plain tensors, no buffers."""

    def __init__(self):
        super().__init__()
        self.means, self.sds = torch.tensor([0.5, 0.4, 0.3]), torch.tensor([0.2, 0.25, 0.3])

    def forward(self, x):
        return (x - self.means.view(3, 1, 1)) / self.sds.view(3, 1, 1)


def net(*, dropout=0.5):
    torch.manual_seed(0)
    return nn.Sequential(
        NormalizeLayer(),
        nn.Conv2d(3, 8, 3, padding=1),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Dropout(dropout),
        nn.Flatten(),
        nn.Linear(72, 4),
    )


@pytest.fixture
def tensor(image):
    return torch.from_dlpack(image)


def test_training_mode_is_refused_by_name(tensor, tmp_path):
    model = net()
    with pytest.raises(fs.Error, match="Sequential is in training mode"):
        fs.Smooth(model, 4, 0.25).certificate(tensor, 0)
    model.eval()[5].train()
    with pytest.raises(fs.Error, match="model: 5 is in training mode"):
        fs.certify(fs.Smooth(model, 4, 0.25), (tensor[None], [0]), out=tmp_path / "t.tsv")
    with pytest.raises(fs.Error, match="training mode"):
        fs.from_torch(model, SHAPE)


def test_dropout_behind_a_function_is_refused(tensor):
    model = net()
    with pytest.raises(fs.Error, match="when asked again"):
        fs.Smooth(lambda x: model(x), 4, 0.25).certify(tensor, 10, 1000, 0.001, 50)
    statistics = net(dropout=0.0)
    with pytest.raises(fs.Error, match="again|other images"):
        fs.Smooth(lambda x: statistics(x), 4, 0.25).certify(tensor, 10, 1000, 0.001, 50)


def test_modules_and_functions_get_tensors(tensor, image):
    model = net().eval()
    seen = set()

    def function(x):
        seen.add((type(x), x.dtype, x.device.type, tuple(x.shape), x.requires_grad, torch.is_grad_enabled()))
        return model(x)

    options = {"n": 500, "batch_size": 64}
    one = fs.Smooth(model, 4, 0.25).certificate(tensor, 5, **options)
    two = fs.Smooth(function, 4, 0.25).certificate(tensor, 5, **options)
    three = fs.Smooth(model, 4, 0.25).certificate(image, 5, **options)  # a NumPy image for a module
    assert one == two == three and "torch" in one.base
    assert seen == {(torch.Tensor, torch.float32, "cpu", (64, *SHAPE), False, False)}


def test_half_precision_is_another_classifier(tensor):
    model = net().eval()
    double = fs.Smooth(net().eval().double(), 4, 0.25, seed=0).certificate(tensor, 5, n=500, batch_size=64)
    assert "/fp64/" in double.base
    single = fs.Smooth(model, 4, 0.25, seed=0).certificate(tensor, 5, n=500, batch_size=64)
    assert abs(double.count_top - single.count_top) <= 2


def test_to_torch_and_back(model, tmp_path):
    images = torch.rand(20, *SHAPE)
    module = model.to_torch()
    assert not module.training and module.sigma == 0.25 and module.class_names == model.class_names
    with torch.no_grad():
        assert np.allclose(np.from_dlpack(module(images)), model.logits(images), atol=1e-4)
    back = fs.from_torch(module, SHAPE, sigma=0.25, device="cpu")
    assert np.allclose(back.logits(images), model.logits(images), atol=1e-5)
    (tmp_path / "b.safetensors").write_bytes(network(batch_norm=True))
    with_norm = fs.load(tmp_path / "b.safetensors", device="cpu")
    with torch.no_grad():
        assert np.allclose(np.from_dlpack(with_norm.to_torch()(images)), with_norm.logits(images), atol=1e-4)


def test_a_data_set_of_tensors(tmp_path):
    data = torch.utils.data.TensorDataset(torch.rand(6, *SHAPE), torch.arange(6) % 4)
    table = fs.certify(fs.Smooth(net().eval(), 4, 0.25), data, every=2, n=500, batch_size=50, out=tmp_path / "t.tsv")
    assert list(table["idx"]) == [0, 2, 4] and list(table["label"]) == [0, 2, 0]


def test_what_is_no_tensor_is_refused(tensor):
    class Output(dict):
        logits = None

    with pytest.raises(fs.Error, match="Output"):
        fs.Smooth(lambda x: Output(), 4, 0.25).certify(tensor, 10, 1000, 0.001, 50)


class Named(nn.Module):
    """As Hugging Face's models answer."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, x):
        return types.SimpleNamespace(loss=None, logits=self.model(x))


def test_named_logits_are_taken(image):
    model, options = net().eval(), {"n": 500, "batch_size": 64}
    plain = fs.Smooth(model, 4, 0.25, seed=0).certificate(image, 5, **options)
    assert fs.Smooth(Named(model).eval(), 4, 0.25, seed=0).certificate(image, 5, **options) == plain


def test_a_function_of_tensors_with_numpy_images(image):
    model, options = net().eval(), {"n": 500, "batch_size": 64}

    def function(x):
        return model(x.to("cpu"))

    with pytest.raises(AttributeError) as failed:
        fs.Smooth(function, 4, 0.25).certificate(image, 5, **options)
    assert 'inputs="torch"' in failed.value.__notes__[0]
    plain = fs.Smooth(model, 4, 0.25, seed=0).certificate(image, 5, **options)
    assert fs.Smooth(function, 4, 0.25, seed=0, inputs="torch").certificate(image, 5, **options) == plain


def test_channels_last_images_are_explained():
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Flatten(), nn.Linear(4 * 30 * 30, 2)).eval()
    g = fs.Smooth(model, 2, 0.25)
    expected = r"looks like \[H, W, C\]; give \[C, H, W\], here \[3, 32, 32\].*3 channels"
    with pytest.raises(fs.Error, match=expected):
        g.certify(torch.rand(32, 32, 3), 10, 500, 0.001, 50)
    with pytest.raises(fs.Error, match=expected):
        fs.certify(g, (torch.rand(2, 32, 32, 3), [0, 1]), n=500)
    with pytest.raises(RuntimeError, match="channels") as failed:
        g.certify(torch.rand(1, 32, 32), 10, 500, 0.001, 50)
    assert "tensor [50, 1, 32, 32]" in failed.value.__notes__[0]


PAGES = """
import resource
import torch
import fedsmooth as fs

layers = [torch.nn.Conv2d(3, 64, 3, padding=1), torch.nn.ReLU(), torch.nn.Conv2d(64, 8, 3, padding=1), torch.nn.ReLU()]
g = fs.Smooth(torch.nn.Sequential(*layers, torch.nn.Flatten(), torch.nn.Linear(8192, 2)).eval(), 2, 0.25)
x = torch.rand(3, 32, 32)
g.certify(x, n=128)
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
g.certify(x, n=1280)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def test_layers_do_not_wait_for_fresh_pages():
    """At the default batch size, in a process that has freed no large block yet. Each activation has 4,096 pages."""
    ran = subprocess.run([sys.executable, "-c", PAGES], capture_output=True, text=True, check=True, timeout=120)
    assert int(ran.stdout) < 10_000


def test_a_table_of_a_module_is_verified(tmp_path):
    data = (np.random.default_rng(0).integers(0, 256, (8, *SHAPE), dtype=np.uint8), np.arange(8) % 4)
    g = fs.Smooth(net().eval(), 4, 0.25)
    table = fs.certify(g, data, n=500, batch_size=64, out=tmp_path / "t.tsv")
    assert fs.verify(table, g, data, images=4).plausible
    torch.manual_seed(1)
    other = nn.Sequential(nn.Flatten(), nn.Linear(108, 4)).eval()
    with pytest.raises(fs.Error, match="about another model"):
        fs.verify(table, fs.Smooth(other, 4, 0.25), data)


def test_features_go_into_a_module_as_vectors():
    torch.manual_seed(0)
    model = nn.Linear(12, 2).eval()
    rows = torch.rand(3, 12)
    table = fs.certify(fs.Smooth(model, 2, 0.25), (rows, [0, 1, 0]), n=500, batch_size=50)
    assert len(table) == 3 and "torch" in table["base"][0]


def test_logits_that_are_rounded_keep_their_largest():
    for many in (
        [[3.0, 1.0, 2.0], [1.0, 1 + 1e-12, 1 - 1e-12], [5.0, 5.0, 1.0], [0.0, 1e-60, -1.0]],
        [[2**60, 2**60 + 1]],
    ):
        expected = fs._adapt.to_logits(np.array(many))
        found = fs._adapt.round_tensor(torch.tensor(np.array(many)))
        assert found.dtype == torch.float32 and np.array_equal(found.argmax(1), np.array(many).argmax(1))
        assert np.allclose(found, expected, rtol=1e-6, atol=0)
    broken = fs._adapt.round_tensor(torch.tensor([[np.inf, 1.0], [np.nan, 2.0]], dtype=torch.float64))
    assert not broken.isfinite().all(1).any()

"""Models of our own engine, without torch."""

import numpy as np
import pytest
from conftest import SHAPE, network
from test_smooth import interrupt_soon

import fedsmooth as fs
from fedsmooth import _core
from fedsmooth._safetensors import format_safetensors


def evaluate(model, images):
    """The network of conftest in plain NumPy."""
    t = model._native.tensors()
    x = np.pad((images - 0.5) / 0.25, ((0, 0), (0, 0), (1, 1), (1, 1)))
    maps = np.stack(
        [
            sum(
                np.einsum("bchw,c->bhw", x[:, :, i : i + 6, j : j + 6], t["c.weight"][k, :, i, j])
                for i in range(3)
                for j in range(3)
            )
            + t["c.bias"][k]
            for k in range(8)
        ],
        axis=1,
    )
    pooled = np.maximum(maps, 0).reshape(len(x), 8, 3, 2, 3, 2).max((3, 5))
    return pooled.reshape(len(x), -1) @ t["l.weight"].T + t["l.bias"]


def test_what_a_file_says(model):
    assert (model.sigma, model.num_classes, model.input) == (0.25, 4, SHAPE)
    assert model.class_names == [f"class {i}" for i in range(4)]
    assert model.base.startswith("cpu/fp32/fastx")
    assert [layer["kind"] for layer in model.network["layers"]] == ["normalize", "conv", "relu", "max-pool", "linear"]


@pytest.mark.parametrize("count", [1, 5, 400])
def test_logits(model, count):
    images = np.random.default_rng(0).random((count, *SHAPE), dtype=np.float32)
    assert np.allclose(model.logits(images), evaluate(model, images), atol=1e-4)


def test_votes_of_the_engine_and_of_its_logits_as_a_function_are_the_same(model, image):
    engine = model.smooth(seed=0).certificate(image, index=3, n=3000)
    function = fs.Smooth(model.logits, 4, 0.25, seed=0).certificate(image, index=3, n=3000, batch_size=500)
    assert engine.count_top == function.count_top and engine.count_runner_up == function.count_runner_up
    assert engine.radius == function.radius and engine.base != function.base


def test_certificates_of_many_are_those_of_each(model):
    images = np.random.default_rng(0).random((5, *SHAPE), dtype=np.float32)
    many = model.certify(images, n=1000, seed=4, indices=[3, 1, 4, 15, 9])
    alone = model.certify(images[3], n=1000, seed=4, indices=[15])
    assert alone == [many[3]] and [c.index for c in many] == [3, 1, 4, 15, 9]


def test_threads_do_not_change_votes(model_file, image):
    counts = {fs.load(model_file, "cpu", threads).certify(image, n=5000, seed=1)[0].count_top for threads in (1, 2, 5)}
    assert len(counts) == 1


def test_control_c_in_the_engine(model, image):
    interrupt_soon()
    with pytest.raises(KeyboardInterrupt):
        model.certify(image, n=1 << 30)
    assert model.certify(image, n=1000)[0].n == 1000  # and it is fit for the next


def test_save_and_load(model, tmp_path):
    model.save(tmp_path / "copy.safetensors")
    copy = fs.load(tmp_path / "copy.safetensors")
    images = np.random.default_rng(0).random((3, *SHAPE), dtype=np.float32)
    assert np.array_equal(copy.logits(images), model.logits(images))


def test_hostile_files_and_shapes(tmp_path, model, image):
    for content in (b"", b"x" * 100, network()[:-1], network() + b"x", network()[:200]):
        (tmp_path / "bad.safetensors").write_bytes(content)
        with pytest.raises(fs.Error, match="bad.safetensors"):
            fs.load(tmp_path / "bad.safetensors")
    with pytest.raises(fs.Error, match="nothing"):
        fs.load(tmp_path / "nothing.safetensors")
    with pytest.raises(fs.Error, match="device"):
        _core.Votes(model._native, "gpu", 0, "float")
    for shape in ((2, 3, 6, 5), (3, 6, 6), (2, 1, 6, 6), (0,)):
        with pytest.raises(fs.Error, match="images"):
            model.logits(np.zeros(shape, np.float32))
    with pytest.raises(fs.Error, match="num_classes"):
        fs.Smooth(model, 5, 0.25).certify(image, 10, 1000, 0.001, 100)
    for shape in ((2, 3, 6, 5), (1, 6, 6), (6, 6)):
        with pytest.raises(fs.Error):
            model.certify(np.zeros(shape, np.float32), n=1000)


def test_images_with_channels_last_are_turned_round_by_every_call(model, image):
    """Both layouts have as many pixels: one that is not turned round would be another image."""
    last = image.transpose(1, 2, 0)
    g, options = model.smooth(seed=3), {"n": 500, "alpha": 0.01}
    assert g.certificate(last, 5, **options) == g.certificate(image, 5, **options)
    assert model.certify(last, seed=3, indices=[5], **options) == [g.certificate(image, 5, **options)]
    assert g.predict(last, n=500) in (g.predict(image, n=500), fs.ABSTAIN)
    for call in (g.certify, g.predict, g.certificate, model.certify):
        with pytest.raises(fs.Error, match=r"images: \[1, 3, 8, 8\], the network takes \[N, 3, 6, 6\]"):
            call(np.zeros((3, 8, 8), np.float32), n=500)
    votes = model._votes_of_engine(4, "float")  # no call of the native part reads other shapes
    with pytest.raises(fs.Error, match=r"image: \[6, 6, 3\], the network takes \[3, 6, 6\]"):
        votes.predict(np.ascontiguousarray(last), 0.25, 500, 0.01, 1, 0)


def test_a_state_dict_is_refused_with_the_remedy(tmp_path):
    path = tmp_path / "state.safetensors"
    path.write_bytes(format_safetensors({"c.weight": np.zeros((8, 3, 3, 3))}, {}))
    with pytest.raises(fs.Error, match="does not describe its network; load its tensors into a torch module"):
        fs.load(path)


def test_a_model_without_sigma_needs_one(tmp_path, image):
    (tmp_path / "m.safetensors").write_bytes(network(sigma=0))
    model = fs.load(tmp_path / "m.safetensors")
    with pytest.raises(fs.Error, match="give sigma"):
        model.certify(image, n=1000)
    assert model.certify(image, sigma=0.5, n=1000)[0].sigma == 0.5

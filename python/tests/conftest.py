import json
import signal
import struct
import zlib

import numpy as np
import pytest

import fedsmooth as fs
from fedsmooth import _core
from fedsmooth._safetensors import format_safetensors

# A shell has background jobs ignore Ctrl-C, which tests send.
signal.signal(signal.SIGINT, signal.default_int_handler)

SHAPE = (3, 6, 6)
W = np.linspace(-1, 1, 108, dtype=np.float32).reshape(SHAPE)
PUBLISHED_ROWS = (
    "idx\tlabel\tpredict\tradius\tcorrect\ttime\n0\t3\t3\t0.5\t1\t0:00:15.100000\n20\t7\t-1\t0.0\t0\t0:00:15\n"
    "40\t1\t2\t0.9\t0\t0:00:15.400000\n60\t1\t1\t1e-05\t1\t0:00:15\n"
)


def half_space(images):
    """Class 1 where w x > 0.3, class 0 elsewhere. Summed image by image: BLAS rounds rows differently."""
    score = np.array([np.sum(image * W, dtype=np.float64) for image in images], dtype=np.float32) - 0.3
    return np.stack([-score, score], axis=1)


def distance(image):
    """Of an image from the border of the half-space: the radius that no certificate may exceed."""
    return (np.sum(image * W, dtype=np.float64) - 0.3) / np.linalg.norm(W.astype(np.float64))


@pytest.fixture
def image():
    """An image in class 1, at l2 distance 0.40 from the border."""
    x = 0.5 + 0.5 * np.sign(W) * np.random.default_rng(1).random(SHAPE, dtype=np.float32)
    low, high = 0.0, 1.0
    for _ in range(60):
        mid = (low + high) / 2
        low, high = (mid, high) if distance(0.5 + mid * (x - 0.5)) < 0.4 else (low, mid)
    return (0.5 + high * (x - 0.5)).astype(np.float32)


def network(kernel_outputs=8, classes=4, batch_norm=False, sigma=0.25, shape=SHAPE):
    """A model file with random weights."""
    rng = np.random.default_rng(0)
    channels, height, width = shape
    layers = [
        {"kind": "normalize", "mean": [0.5] * channels, "sd": [0.25] * channels},
        {"kind": "conv", "name": "c", "outputs": kernel_outputs, "kernel": 3, "padding": 1, "bias": True, "stride": 1},
    ]
    kernel = rng.normal(size=(kernel_outputs, channels, 3, 3)) / 5
    tensors = {"c.weight": kernel, "c.bias": rng.normal(size=kernel_outputs)}
    if batch_norm:
        layers.append({"kind": "batch-norm", "name": "b"})
        tensors |= {
            "b.weight": rng.random(kernel_outputs) + 0.5,
            "b.bias": rng.normal(size=kernel_outputs),
            "b.running_mean": rng.normal(size=kernel_outputs),
            "b.running_var": rng.random(kernel_outputs) + 0.5,
        }
    layers += [
        {"kind": "relu"},
        {"kind": "max-pool", "kernel": 2, "stride": 2},
        {"kind": "linear", "name": "l", "outputs": classes, "bias": True},
    ]
    inputs = kernel_outputs * (height // 2) * (width // 2)
    tensors |= {"l.weight": rng.normal(size=(classes, inputs)) / 5, "l.bias": np.zeros(classes)}
    metadata = {
        "fedsmooth.network": json.dumps({"name": "test", "input": list(shape), "layers": layers}),
        "fedsmooth.sigma": str(sigma),
        "fedsmooth.classes": json.dumps([f"class {i}" for i in range(classes)]),
    }
    return format_safetensors(tensors, metadata)


@pytest.fixture
def model_file(tmp_path):
    path = tmp_path / "model.safetensors"
    path.write_bytes(network())
    return path


@pytest.fixture
def model(model_file):
    return fs.load(model_file, device="cpu")


@pytest.fixture
def native(model_file):
    return _core.model_from_bytes(model_file.read_bytes(), "test")


def write_png(path, pixels):
    """Bytes [H, W, 3], or [H, W] of a grey file."""
    height, width = pixels.shape[:2]
    colour = 2 if pixels.ndim == 3 else 0
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, colour, 0, 0, 0)
    content = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + content)
    return path


def experiment_text(root):
    """A training that takes milliseconds, on the images of `root`."""
    return (
        f'[data]\nname = "arrays"\nroot = "{root}"\naugment = false\n[model]\nname = "small"\n'
        "[partition]\nclients = 6\nsamples_per_client = 20\n[attack]\nsteps = 1\n"
        "[train]\nrounds = 2\nclients_per_round = 2\nevaluate_every = 0\n"
        "[train.local]\nsteps = 2\nbatch = 4\n[certify]\nn = 1000\n"
    )


@pytest.fixture(scope="session")
def few_images(tmp_path_factory):
    """An .npz file with a few of the built-in images: to make all of them takes longer than a test."""
    path = tmp_path_factory.mktemp("data") / "few.npz"
    (x_train, y_train), (x_test, y_test) = fs.load_data("shapes", split="train"), fs.load_data("shapes")
    np.savez(path, x_train=x_train[:200], y_train=y_train[:200], x_test=x_test[:40], y_test=y_test[:40])
    return path


@pytest.fixture(scope="session")
def experiment_file(few_images):
    path = few_images.with_name("quick.toml")
    path.write_text(experiment_text(few_images))
    return path


@pytest.fixture
def test_set():
    """Bytes and labels, 12 images."""
    rng = np.random.default_rng(2)
    return rng.integers(0, 256, (12, *SHAPE), dtype=np.uint8), rng.integers(0, 4, 12)

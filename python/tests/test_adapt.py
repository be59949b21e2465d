"""What users have in place of a function of NumPy images: taken, or refused with the remedy."""

import json
import sys
import types
import warnings

import numpy as np
import pytest
from conftest import SHAPE, W, half_space

import fedsmooth as fs

OPTIONS = {"n": 500, "batch_size": 100}


def certificate(f, x, **more):
    return fs.Smooth(f, 2, 0.25, seed=0, **more).certificate(x, 3, **OPTIONS)


def test_logits_are_taken_from_an_output_that_names_them(image):
    whole = certificate(half_space, image)
    assert certificate(lambda x: types.SimpleNamespace(logits=half_space(x)), image) == whole
    assert certificate(lambda x: types.SimpleNamespace(logits=half_space(x), loss=None), image) == whole


def test_a_classifier_keeps_its_answers_when_its_logits_are_rounded(image):
    def log_likelihoods(x):  # in float32 all are -1e9
        return half_space(x).astype(np.float64) - 1e9

    whole = certificate(half_space, image)
    assert certificate(log_likelihoods, image).count_top == whole.count_top
    x = np.full((1, 2, 2), 0.5, np.float32)
    for logits in ([1, 1 + 1e-12], [2**60, 2**60 + 1], [0.0, 1e-60]):
        row = np.array([logits], dtype=np.float64 if isinstance(logits[1], float) else np.int64)
        assert fs.Smooth(lambda z, row=row: np.repeat(row, len(z), axis=0), 2, 0.25).certify(x, n=500)[0] == 1
    many = np.array([[3.0, 1.0, 2.0], [1.0, 1 + 1e-12, 1 - 1e-12], [5.0, 5.0, 1.0]])
    rounded = fs._adapt.to_logits(many)
    assert rounded.dtype == np.float32 and np.array_equal(rounded.argmax(1), many.argmax(1))
    assert np.array_equal(rounded[[0, 2]], many[[0, 2]].astype(np.float32))  # others keep their bits


def test_bytes_are_taken_everywhere_as_fractions_of_255(image, model):
    x = np.rint(image * 255).astype(np.uint8)
    fractions = x / np.float32(255)
    assert certificate(half_space, x) == certificate(half_space, fractions)
    assert fs.Smooth(half_space, 2, 0.25).predict(x, 1000, 0.001, 100) == 1
    assert model.certify(x, n=500, seed=0) == model.certify(fractions, n=500, seed=0)
    assert np.array_equal(model.logits(x[None]), model.logits(fractions[None]))


def test_images_of_a_model_may_be_channels_last(model, image, test_set):
    turned = image.transpose(1, 2, 0)
    # SHAPE is [3, 6, 6], so that [6, 6, 3] can be nothing else.
    assert model.certify(turned, n=500, seed=0) == model.certify(image, n=500, seed=0)
    images, labels = test_set
    one = fs.certify(model, (images, labels), n=500, limit=3)
    two = fs.certify(model, (images.transpose(0, 2, 3, 1), labels), n=500, limit=3)
    assert list(one["count_top"]) == list(two["count_top"])


def test_a_function_that_fails_on_channels_last_hears_of_it():
    def strict(x):
        if x.shape[1] != 3:
            raise RuntimeError("expected 3 channels")
        return half_space(x)

    expected = r"\[32, 32, 3\] looks like \[H, W, C\]; give \[C, H, W\], here \[3, 32, 32\].*expected 3 channels"
    with pytest.raises(fs.Error, match=expected):
        certificate(strict, np.full((32, 32, 3), 0.5, np.float32))
    with pytest.raises(RuntimeError, match="^expected 3 channels") as failed:
        certificate(strict, np.full((1, 6, 6), 0.5, np.float32))
    assert "NumPy array [100, 1, 6, 6]" in failed.value.__notes__[0]


def test_a_function_of_torch_that_gets_numpy_is_told(image, monkeypatch):
    monkeypatch.setitem(
        sys.modules,
        "torch",
        types.SimpleNamespace(Tensor=type("Tensor", (), {}), nn=types.SimpleNamespace(Module=type("Module", (), {}))),
    )
    with pytest.raises(AttributeError) as failed:
        certificate(lambda x: x.to("cpu"), image)
    assert "NumPy array [100, 3, 6, 6]" in failed.value.__notes__[0] and 'inputs="torch"' in failed.value.__notes__[0]


def test_features_are_certified_as_vectors(image):
    flat = image.ravel()

    def linear(x):
        assert x.ndim == 2 and x.shape[1] == flat.size
        return half_space(x.reshape(-1, *SHAPE))

    found, there = certificate(linear, flat), certificate(half_space, image)
    assert found.predict == 1 and abs(found.count_top - there.count_top) < 60  # the noise has another layout
    rows = np.stack([flat, 1 - flat, flat])
    table = fs.certify(fs.Smooth(linear, 2, 0.25), (rows, [1, 0, 1]), **OPTIONS)
    assert len(table) == 3 and table.certified_accuracy(0) > 0.5
    items = fs.certify(fs.Smooth(linear, 2, 0.25), list(zip(rows, [1, 0, 1], strict=True)), **OPTIONS)
    assert list(items["count_top"]) == list(table["count_top"])


def test_a_model_of_images_refuses_features(model, test_set):
    with pytest.raises(fs.Error, match=r"images: \[12, 108\], the network takes \[N, 3, 6, 6\]"):
        fs.certify(model, (test_set[0].reshape(12, -1), test_set[1]), n=500)


class Estimator:
    """As scikit-learn's."""

    def __init__(self, classes=(0, 1), binary=False):
        self.classes_ = np.array(classes)
        if binary:
            self.decision_function = lambda x: self._scores(x)[:, 1]
        else:
            self.predict_proba = self._scores

    def predict(self, x):
        return self._scores(x).argmax(1)

    def _scores(self, x):
        assert x.ndim == 2
        return half_space(x.reshape(-1, *SHAPE)).astype(np.float64)


def test_estimators_are_taken(image):
    base = "cpu/fp64/scikit-learn-"
    for estimator in (Estimator(), Estimator(binary=True)):
        found = certificate(estimator, image)
        assert found.predict == 1 and found.base.startswith(base)
        assert certificate(estimator, image.ravel()).predict == 1
    with pytest.raises(fs.Error, match=r"\['cat', 'dog'\].*labels 0, 1"):
        certificate(Estimator(["cat", "dog"]), image)


def test_scikit_learn(tmp_path):
    linear_model = pytest.importorskip("sklearn.linear_model")
    x, y = np.random.default_rng(0).random((200, 16), dtype=np.float32), None
    y = (x.mean(axis=1) > 0.5).astype(int)
    fitted = linear_model.LogisticRegression().fit(x, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # BLAS may round by position: a smaller batch is taken
        table = fs.certify(fs.Smooth(fitted, 2, 0.1), (x[:5], y[:5]), out=tmp_path / "t.tsv", **OPTIONS)
    assert len(table) == 5 and "scikit-learn" in table["base"][0]


class Session:
    """As ONNX Runtime's."""

    def __init__(self, outputs=("logits",), batch=None):
        node = types.SimpleNamespace
        self.inputs = [node(name="x", shape=[batch or "N", *SHAPE], type="tensor(float)")]
        self.outputs = [node(name=name, shape=["N", 2]) for name in outputs]

    def get_inputs(self):
        return self.inputs

    def get_outputs(self):
        return self.outputs

    def get_providers(self):
        return ["CPUExecutionProvider"]

    def run(self, names, given):
        assert names == ["logits"] or len(self.outputs) == 1
        batch = self.inputs[0].shape[0]
        assert not isinstance(batch, int) or len(given["x"]) == batch
        return [half_space(given["x"])]


def test_sessions_are_taken(image):
    for session in (Session(), Session(["scores"]), Session(["features", "logits"])):
        assert certificate(session, image).count_top == certificate(half_space, image).count_top
    assert certificate(Session(batch=7), image).base.endswith("x7")  # the only one that it takes
    with pytest.raises(fs.Error, match="none of them called logits"):
        certificate(Session(["a", "b"]), image)


def test_onnx_runtime(image, tmp_path):
    onnxruntime, onnx = pytest.importorskip("onnxruntime"), pytest.importorskip("onnx")
    helper, floats = onnx.helper, onnx.TensorProto.FLOAT
    weights = np.stack([-W.ravel(), W.ravel()], axis=1)
    graph = helper.make_graph(
        [helper.make_node("Flatten", ["x"], ["f"]), helper.make_node("MatMul", ["f", "w"], ["logits"])],
        "linear",
        [helper.make_tensor_value_info("x", floats, ["N", *SHAPE])],
        [helper.make_tensor_value_info("logits", floats, ["N", 2])],
        [onnx.numpy_helper.from_array(weights, "w")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = certificate(session, image)
    assert found.predict == 1 and found.base.startswith("cpu/fp32/onnxruntime-1.")


def test_logits_that_are_not_finite_are_warned_about(image, test_set):
    def nan(x):
        return half_space(x) + np.nan

    def some(x):
        logits = half_space(x)
        logits[:, 0] = np.where(x[:, 0, 0, 0] > image[0, 0, 0], np.inf, logits[:, 0])
        return logits

    with pytest.warns(UserWarning, match="nan: 700 of 700 copies had logits that are not finite"):
        assert fs.Smooth(nan, 2, 0.25).certify(image, 100, 500, 0.001, 100) == (-1, 0.0)
    with pytest.warns(UserWarning, match="some: .* copies had logits"):
        fs.Smooth(some, 2, 0.25).certify(image, 100, 500, 0.001, 100)
    with pytest.warns(UserWarning, match="nan: .* copies"):
        fs.certify(fs.Smooth(nan, 2, 0.25), (test_set[0], test_set[1] % 2), limit=2, **OPTIONS)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fs.Smooth(half_space, 2, 0.25).certify(image, 100, 500, 0.001, 100)


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda x: fs.Smooth(None, 2, 0.25), "base_classifier: a NoneType cannot be called"),
        (lambda x: fs.Smooth(half_space, 2, "0.25"), r"sigma='0.25': must be a number"),
        (lambda x: fs.Smooth(half_space, "two", 0.25), "num_classes='two': must be a whole number"),
        (lambda x: fs.Smooth(half_space, 2, 0.25, inputs="jax"), "inputs='jax': must be"),
        (lambda x: certify(x, n=1000.5), "n=1000.5: must be a whole number"),
        (lambda x: certify(x, n="1000"), "n='1000': must be a whole number"),
        (lambda x: certify(x, n0=True), "n0=True: must be a whole number"),
        (lambda x: certify(x, alpha="x"), "alpha='x': must be a number"),
        (lambda x: certify(x, batch_size="10"), "batch_size='10': must be a whole number"),
        (lambda x: certify(x, radii="wide"), "radii='wide': must be a number"),
        (lambda x: certify(x, noise="cut"), 'noise="cut": must be float or exact'),
        (lambda x: certify(x[None]), r"shape \[1, 3, 6, 6\], expected \[C, H, W\].*one image"),
    ],
)
def test_mistakes_are_one_line(image, make, message):
    with pytest.raises(fs.Error, match=message) as refused:
        make(image)
    assert "\n" not in str(refused.value)


def certify(x, **options):
    return fs.Smooth(half_space, 2, 0.25).certify(x, **({"n": 1000, "batch_size": 100} | options))


def test_whole_floats_are_counts(image):
    assert certify(image, n=1e3, n0=1e2)[0] == 1


def test_radii_a_plan_and_exact_noise(image, model, test_set, tmp_path):
    g = fs.Smooth(half_space, 2, 0.25, seed=0)
    decided = g.certificate(image, 3, n=100_000, radii=[0.1, 0.2], batch_size=100)
    assert decided.radius == 0.2 and decided.n < 5000
    assert g.certify(image, n=100_000, radii=0.1, batch_size=100) == (1, 0.1)
    planned = g.certificate(image, 3, n=50_000, n0=1000, plan=0.1, batch_size=100)
    assert planned.n < 50_000 and planned.radius > 0
    pixels = np.rint(image * 255).astype(np.uint8)  # which exact noise needs
    exact = g.certificate(pixels, 3, n=1000, noise="exact", batch_size=100)
    assert exact.noise == "exact" and exact.predict == 1
    assert g.predict(pixels, noise="exact", batch_size=100) == 1
    out = tmp_path / "t.tsv"
    fs.certify(model, test_set, n=500, radii=[0.05, 0.1], noise="exact", out=out)
    identity = json.loads(out.with_suffix(".json").read_text())["identity"]
    assert identity["noise"] != "float" and identity["radii"] == [0.0, 0.05, 0.1]
    before = fs.read_certificates(out)
    more = fs.certify(model, test_set, n=2000, radii=[0.05, 0.1], noise="exact", out=out, resume=True)
    assert (more["n"] >= before["n"]).all() and set(more["radius"]) <= {0.0, 0.05, 0.1}
    assert fs.verify(out, model, test_set, images=3).plausible
    assert model.certify(image, n=2000, radii=[0.05])[0].radius in (0.0, 0.05)


def test_a_smooth_says_what_it_is():
    assert repr(fs.Smooth(half_space, 2, 0.25)) == "Smooth(half_space, num_classes=2, sigma=0.25)"

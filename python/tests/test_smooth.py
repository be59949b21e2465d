"""Smooth over a function of NumPy arrays."""

import inspect
import signal
import threading
import time

import numpy as np
import pytest
from conftest import distance, half_space

import fedsmooth as fs


def test_half_space_has_its_closed_form(image):
    g = fs.Smooth(half_space, 2, 0.25)
    cert = g.certificate(image, index=7, n=20_000, batch_size=500)
    assert cert.predict == cert.selected == 1
    assert 0.9 * distance(image) < cert.radius <= distance(image)
    assert cert.count_top + cert.count_runner_up == cert.n == 20_000
    assert cert.p_lower == fs.lower_bound(cert.count_top, cert.n, cert.alpha)
    assert cert.base == "cpu/fp32/pythonx500"


def test_every_way_to_certify_has_the_same_options():
    shared = ("n0", "n", "alpha", "radii", "beta", "plan", "noise")
    ways = (fs.Smooth.certify, fs.Smooth.certificate, fs.Model.certify, fs.certify)
    parameters = [inspect.signature(way).parameters for way in ways]
    options = [[(p[name].default, p[name].annotation) for name in shared] for p in parameters]
    assert all(option == options[0] for option in options)


def test_seed_and_index_name_the_noise(image):
    def ask(seed, index):
        return (
            fs.Smooth(half_space, 2, 0.5, seed=seed).certificate(image, index=index, n=2000, batch_size=100).count_top
        )

    assert ask(3, 7) == ask(3, 7)
    assert len({ask(3, 7), ask(3, 8), ask(4, 7), ask(4, 8)}) > 1


def test_without_a_seed_classifier_and_image_name_the_noise(image):
    def ask(f, x):
        return fs.Smooth(f, 2, 0.5).certificate(x, index=7, n=200, batch_size=100).seed

    seed = ask(half_space, image)
    assert seed == ask(half_space, image)
    assert seed != ask(lambda x: 2 * half_space(x), image)
    assert seed != ask(half_space, image * np.float32(0.5))


def test_without_an_index_every_call_has_noise_of_its_own(image):
    g = fs.Smooth(half_space, 2, 0.5)
    certificates = [g.certificate(image, n=2000, batch_size=100) for _ in range(4)]
    assert len({c.seed for c in certificates}) == 4
    again = fs.Smooth(half_space, 2, 0.5, seed=certificates[0].seed)
    assert again.certificate(image, index=0, n=2000, batch_size=100).count_top == certificates[0].count_top


def test_votes_do_not_depend_on_the_batch(image):
    counts = {
        fs.Smooth(half_space, 2, 0.5, seed=0).certificate(image, 1, n=1000, batch_size=b).count_top
        for b in (1, 7, 192, 1000)
    }
    assert len(counts) == 1


def test_noise_of_many_threads_is_that_of_the_engine(model_file):
    images = np.random.default_rng(0).random((3, 32, 32), dtype=np.float32)
    seen = []

    def look(batch):
        seen.append(batch.copy())
        return np.ascontiguousarray(batch[:, 0, :2, 0])

    fs.Smooth(look, 2, 0.25, seed=0).certificate(images, 7, n=100, n0=100, batch_size=100)  # above what one thread does
    fs.Smooth(look, 2, 0.25, seed=0).certificate(images, 7, n=100, n0=100, batch_size=10)  # below
    large, small = seen[6], np.concatenate(seen[8 + 5 + 10 : 8 + 5 + 20])
    assert np.array_equal(large, small) and abs(np.std(large - images) / 0.25 - 1) < 0.01


def test_predict_and_abstention(image):
    g = fs.Smooth(half_space, 2, 0.25)
    assert g.predict(image, 1000, 0.001, 100) == 1
    border = np.full_like(image, 0.5)
    assert abs(distance(border)) < 0.1
    undecided = fs.Smooth(half_space, 2, 5.0)
    assert undecided.predict(border, 100, 1e-9, 100) == fs.ABSTAIN == fs.Smooth.ABSTAIN == -1
    assert undecided.certify(border, 100, 1000, 1e-9, 100) == (-1, 0.0)


def test_multiclass_radius_is_another_one(image):
    one = fs.Smooth(half_space, 2, 0.25).certificate(image, 0, n=2000, batch_size=500)
    two = fs.Smooth(half_space, 2, 0.25, radius="multiclass").certificate(image, 0, n=2000, batch_size=500)
    assert two.count_top == one.count_top and 0 < two.radius < one.radius


def test_work_in_place_is_allowed(image):
    def in_place(images):
        logits = half_space(images)
        images *= 0
        return logits

    assert fs.Smooth(in_place, 2, 0.25).certificate(image, 0, n=1000, batch_size=300) == fs.Smooth(
        half_space, 2, 0.25
    ).certificate(image, 0, n=1000, batch_size=300)


@pytest.mark.parametrize(
    "change, message",
    [
        (lambda x: x[None], r"expected \[C, H, W\]"),
        (lambda x: x + np.nan, "outside"),
        (lambda x: x * 255, "outside"),
        (lambda x: x - 0.6, "outside"),
        (lambda x: (x * 255).astype(np.int64), r"bytes \(uint8\)"),
        (lambda x: x.astype(complex), "real numbers"),
        (lambda x: "image", "real numbers"),
    ],
)
def test_images_that_are_none(image, change, message):
    for ask in (
        lambda x: fs.Smooth(half_space, 2, 0.25).certify(x, 10, 1000, 0.001, 100),
        lambda x: fs.Smooth(half_space, 2, 0.25).predict(x, 1000, 0.001, 100),
    ):
        with pytest.raises(fs.Error, match=message):
            ask(change(image))


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"n": 9}, "too few votes"),
        ({"n": 0}, "n=0"),
        ({"n0": 0}, "n0=0"),
        ({"alpha": 0.0}, "alpha"),
        ({"alpha": 1.5}, "alpha"),
        ({"batch_size": 0}, "batch_size=0"),
    ],
)
def test_arguments_out_of_range(image, arguments, message):
    with pytest.raises(fs.Error, match=message):
        fs.Smooth(half_space, 2, 0.25).certificate(image, 0, **({"n": 1000, "batch_size": 100} | arguments))


@pytest.mark.parametrize("sigma", [0, -1, float("nan"), float("inf")])
def test_noise_must_be_positive(sigma):
    with pytest.raises(fs.Error, match="sigma"):
        fs.Smooth(half_space, 2, sigma)


def test_error_is_a_value_error():
    assert issubclass(fs.Error, ValueError)


calls = 0


def forgetful(images):
    global calls
    calls += 1
    return half_space(images) + calls


def batch_statistics(images):
    return half_space(images - images.mean())


def by_position(images):
    return half_space(images) * np.linspace(1, 2, len(images), dtype=np.float32)[:, None]


@pytest.mark.parametrize(
    "f, message",
    [
        (forgetful, "when asked again"),
        (batch_statistics, "other images in the batch"),
        (lambda x: half_space(x)[:, :1], "shape"),
        (lambda x: half_space(x)[:-1], "shape"),
        (lambda x: half_space(x).argmax(1), "shape"),
        (lambda x: (half_space(x),), "tuple"),
        (lambda x: {"logits": 1}, "dict"),
        (lambda x: None, "real numbers"),
        (lambda x: [["a", "b"]], "list"),
        (3, "cannot be called"),
        ("model.pt", "model.pt is a path; load the model first"),
    ],
)
def test_what_is_not_a_function_of_an_image_is_refused(image, f, message):
    with pytest.raises(fs.Error, match=message):
        fs.Smooth(f, 2, 0.25).certify(image, 10, 1000, 0.001, 100)


def test_a_smaller_steady_batch_is_taken_and_said(image):
    with pytest.warns(UserWarning, match="batches of 1 are used"):
        cert = fs.Smooth(by_position, 2, 0.25).certificate(image, 0, n=100, batch_size=10)
    assert cert.base.endswith("x1") and cert.predict == 1


def test_a_model_that_changes_while_it_is_certified_gives_no_certificate(image):
    count = 0

    def drifts(images):
        nonlocal count
        count += 1
        return half_space(images) + (count > 10)

    with pytest.raises(fs.Error, match="changed while it was certified"):
        fs.Smooth(drifts, 2, 0.25).certify(image, 100, 1000, 0.001, 100)


def test_a_model_that_changed_between_calls_is_checked_again(image):
    shift = 0.0
    g = fs.Smooth(lambda x: half_space(x) + np.array([shift, 0], np.float32), 2, 0.25)
    assert g.certify(image, 100, 1000, 0.001, 100)[0] == 1
    shift = 1e3
    assert g.certify(image, 100, 1000, 0.001, 100)[0] == 0


def test_logits_that_are_not_numbers_vote_for_nobody(image):
    nan = fs.Smooth(lambda x: half_space(x) + np.nan, 2, 0.25)
    with pytest.warns(UserWarning, match="not finite"):
        assert nan.certify(image, 10, 1000, 0.001, 100) == (-1, 0.0)
    with pytest.warns(UserWarning, match="not finite"):
        assert nan.predict(image, 1000, 0.001, 100) == -1


def test_what_a_function_raises_is_raised(image):
    def broken(images):
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        fs.Smooth(broken, 2, 0.25).certify(image, 10, 1000, 0.001, 100)


def test_calls_within_a_call_are_refused(image):
    g = fs.Smooth(half_space, 2, 0.25)

    def inner(images):
        if len(g._votes):
            g.certify(image, 10, 100, 0.001, 50)
        return half_space(images)

    g.base_classifier = inner
    with pytest.raises(fs.Error, match="being counted"):
        g.certify(image, 10, 100, 0.001, 50)
        g.certify(image, 10, 100, 0.001, 50)


def interrupt_soon():
    threading.Timer(0.3, lambda: signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)).start()


def test_control_c_is_answered_within_a_second(image):
    interrupt_soon()
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        fs.Smooth(half_space, 2, 0.25).certify(image, 100, 1 << 28, 0.001, 100)
    assert time.monotonic() - start < 1.3


def test_other_threads_run_while_votes_are_counted(image, model):
    ticks = []
    done = threading.Event()

    def tick():
        while not done.is_set():
            ticks.append(1)
            time.sleep(0.001)

    thread = threading.Thread(target=tick)
    thread.start()
    model.certify(image, n=200_000, seed=0)
    done.set()
    thread.join()
    assert len(ticks) > 10

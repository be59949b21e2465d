"""Torch models on a GPU: noise is drawn and votes are counted there. Skipped where there is none."""

import time

import numpy as np
import pytest

import fedsmooth as fs
from fedsmooth._adapt import Adapted
from fedsmooth._core import ClassifierChanged, DependsOnPosition
from fedsmooth._smooth import make_budget

torch = pytest.importorskip("torch")
nn = torch.nn
if not torch.cuda.is_available():
    pytest.skip("torch sees no GPU", allow_module_level=True)


def net(dtype=torch.float32):
    torch.manual_seed(0)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.deterministic, torch.backends.cudnn.benchmark = True, False
    model = nn.Sequential(nn.Conv2d(3, 16, 5, 2, 2), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(1024, 10))
    return model.eval().to("cuda", dtype)


@pytest.fixture
def image():
    return torch.rand(3, 32, 32, generator=torch.Generator().manual_seed(1))


def test_votes_are_counted_on_the_gpu(image):
    g = fs.Smooth(net(), 10, 0.25, seed=0)
    cert = g.certificate(image, 3, n=5000, batch_size=512)
    assert [votes.counts_on_gpu for votes in g._votes.values()] == [True]
    assert cert.n == 5000 and "cuda" in cert.base


def test_noise_there_is_that_of_the_cpu_bit_for_bit(image):
    """A classifier that only looks: the ten first pixels are its logits."""

    def noisy_copies(x):
        seen = []

        def look(images):
            seen.append(images.detach().cpu().clone())
            return images[:, 0, 0, :10]

        cert = fs.Smooth(look, 10, 0.25, seed=0).certificate(x, 7, n=256, n0=256, batch_size=256)
        return [images for images in seen if abs((images - image).std() - 0.25) < 0.01], cert.count_top

    on_gpu, on_cpu = noisy_copies(image.cuda()), noisy_copies(image)
    assert len(on_gpu[0]) == len(on_cpu[0]) == 2 and on_gpu[1] == on_cpu[1]
    assert all(torch.equal(a, b) for a, b in zip(on_gpu[0], on_cpu[0], strict=True))


@pytest.mark.parametrize("n", [1000, 1001, 513])
def test_short_batches_and_half_precision(image, n):
    for dtype in (torch.float32, torch.bfloat16):
        model = net(dtype)
        cert = fs.Smooth(model, 10, 0.25, seed=0).certificate(image, 3, n=n, batch_size=256)
        copied = lambda x, m=model: m(x.cuda().to(next(m.parameters()).dtype)).float().cpu()  # noqa: E731
        by_hand = fs.Smooth(copied, 10, 0.25, seed=0)
        assert cert.count_top == by_hand.certificate(image, 3, n=n, batch_size=256).count_top


def test_another_stream_is_the_model_s(image):
    with torch.cuda.stream(torch.cuda.Stream()):
        one = fs.Smooth(net(), 10, 0.25, seed=0).certificate(image, 3, n=5000, batch_size=512)
    assert one.count_top == fs.Smooth(net(), 10, 0.25, seed=0).certificate(image, 3, n=5000, batch_size=512).count_top


def test_streams_may_change_between_calls(image):
    """Noise, model and counting follow each other on whichever stream is current, also with votes that were kept."""
    model, side = net(), torch.cuda.Stream()

    def count(g):
        return g.certificate(image, 3, n=20_000, batch_size=512).count_top

    expected = count(fs.Smooth(model, 10, 0.25, seed=0))
    for inside_first in (True, False):
        g = fs.Smooth(model, 10, 0.25, seed=0)
        for inside in (inside_first, not inside_first) * 3:
            if inside:
                with torch.cuda.stream(side):
                    assert count(g) == expected
            else:
                assert count(g) == expected
        assert len(g._votes) == 2 and all(votes.counts_on_gpu for votes in g._votes.values())


def test_the_function_runs_on_the_stream_that_draws_its_noise(image):
    side, seen = torch.cuda.Stream(), set()

    def look(images):
        seen.add(torch.cuda.current_stream().cuda_stream)
        return images[:, 0, 0, :10]

    g = fs.Smooth(look, 10, 0.25, seed=0)
    with torch.cuda.stream(side):
        g.certificate(image.cuda(), 3, n=1000, batch_size=100)
        (votes,) = g._votes.values()
    assert seen == {side.cuda_stream}
    votes.predict(image.numpy(), 0.25, 1000, 0.001, 1, 0)  # kept votes, asked for outside
    assert seen == {side.cuda_stream}


def adapted(on_gpu):
    """A function that is honest on the host, and `on_gpu` in the GPU's memory."""
    gpu = torch.cuda.current_device()
    stream = torch.cuda.current_stream(gpu).cuda_stream
    f = Adapted(lambda batch: np.ascontiguousarray(batch[:, 0, 0, :10]), "test", on_gpu, gpu, stream)
    return f.votes(10, 64, (3, 32, 32))


def test_what_votes_is_what_is_checked():
    calls = 0

    def by_position(images):
        logits = images[:, 0, 0, :10].contiguous()
        logits[0] = 0
        return logits

    def by_call(images):
        nonlocal calls
        calls += 1
        return images[:, 0, 0, :10] + float(calls)

    with pytest.raises(DependsOnPosition):
        adapted(by_position).check([3, 32, 32])
    with pytest.raises(fs.Error, match="different logits for the same images"):
        adapted(by_call).check([3, 32, 32])


def test_a_function_that_changes_on_the_gpu_gets_no_certificate(image):
    changed = False

    def on_gpu(images):
        return images[:, 0, 0, :10].flip(1).contiguous() if changed else images[:, 0, 0, :10].contiguous()

    votes = adapted(on_gpu)
    votes.check([3, 32, 32])
    changed = True
    budget = make_budget(10, 1000, 0.001, "one-sided", None, 0.001, 0.0)
    with pytest.raises(ClassifierChanged):
        votes.certify(image.numpy()[None], [0], 0.25, budget, 1)


def test_a_function_may_work_in_place(image):
    def in_place(images):
        logits = images[:, 0, 0, :10].clone()
        images.zero_()
        return logits

    g = fs.Smooth(in_place, 10, 0.25, seed=0)
    honest = fs.Smooth(lambda x: x[:, 0, 0, :10], 10, 0.25, seed=0)
    for index in (3, 4):
        ours, theirs = (s.certificate(image.cuda(), index, n=1000, batch_size=100) for s in (g, honest))
        assert ours.count_top == theirs.count_top


def test_nan_votes_for_nobody(image):
    g = fs.Smooth(lambda x: x[:, 0, 0, :10] + float("nan"), 10, 0.25, seed=0)
    assert g.certify(image.cuda(), 10, 1000, 0.001, 100) == (-1, 0.0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_a_module_there_becomes_a_model_also_with_tf32(dtype):
    module = net(dtype)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    model = fs.from_torch(module, (3, 32, 32))
    assert model.logits(np.zeros((1, 3, 32, 32), np.float32)).shape == (1, 10)


def test_faster_than_cohens_loop(image):
    """Cohen's: repeat the image, draw by torch, count on the host."""
    model, n, batch = net(), 100_000, 1000

    def loop():
        counts = np.zeros(10, dtype=int)
        with torch.no_grad():
            for _ in range(n // batch):
                copies = image.cuda().repeat((batch, 1, 1, 1))
                for answer in model(copies + torch.randn_like(copies) * 0.25).argmax(1).cpu().numpy():
                    counts[answer] += 1

    g = fs.Smooth(model, 10, 0.25, seed=0)
    g.certificate(image, 0, n0=1, n=1000, batch_size=batch)
    loop()

    def seconds(work):
        torch.cuda.synchronize()
        start = time.perf_counter()
        work()
        return time.perf_counter() - start

    theirs, ours = seconds(loop), seconds(lambda: g.certificate(image, 0, n0=1, n=n, batch_size=batch))
    print(f"Cohen's loop {n / theirs:,.0f} votes/s, Smooth {n / ours:,.0f}")
    assert ours < theirs

"""Torch models on a GPU: noise is drawn and votes are counted there. Skipped where there is none."""

import time

import numpy as np
import pytest

import fedsmooth as fs

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
    g = fs.Smooth(net(), 10, 0.25)
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

        cert = fs.Smooth(look, 10, 0.25).certificate(x, 7, n=256, n0=256, batch_size=256)
        return [images for images in seen if abs((images - image).std() - 0.25) < 0.01], cert.count_top

    on_gpu, on_cpu = noisy_copies(image.cuda()), noisy_copies(image)
    assert len(on_gpu[0]) == len(on_cpu[0]) == 2 and on_gpu[1] == on_cpu[1]
    assert all(torch.equal(a, b) for a, b in zip(on_gpu[0], on_cpu[0], strict=True))


@pytest.mark.parametrize("n", [1000, 1001, 513])
def test_short_batches_and_half_precision(image, n):
    for dtype in (torch.float32, torch.bfloat16):
        model = net(dtype)
        cert = fs.Smooth(model, 10, 0.25).certificate(image, 3, n=n, batch_size=256)
        by_hand = fs.Smooth(lambda x, m=model: m(x.cuda().to(next(m.parameters()).dtype)).float().cpu(), 10, 0.25)
        assert cert.count_top == by_hand.certificate(image, 3, n=n, batch_size=256).count_top


def test_another_stream_is_the_model_s(image):
    with torch.cuda.stream(torch.cuda.Stream()):
        one = fs.Smooth(net(), 10, 0.25).certificate(image, 3, n=5000, batch_size=512)
    assert one.count_top == fs.Smooth(net(), 10, 0.25).certificate(image, 3, n=5000, batch_size=512).count_top


def test_nan_votes_for_nobody(image):
    g = fs.Smooth(lambda x: x[:, 0, 0, :10] + float("nan"), 10, 0.25)
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

    g = fs.Smooth(model, 10, 0.25)
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

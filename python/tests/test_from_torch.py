"""from_torch: a module becomes our layers. What is refused is in test_from_torch_refuses.py."""

import importlib
import pathlib

import numpy as np
import pytest
from conftest import SHAPE

import fedsmooth as fs

torch = pytest.importorskip("torch")
nn = torch.nn
F = nn.functional


def spread(module):
    """The module in evaluation mode, with weights and statistics that no two layers share."""
    torch.manual_seed(0)
    for part in module.modules():
        if isinstance(part, (nn.BatchNorm2d, nn.GroupNorm)) and part.affine:
            nn.init.uniform_(part.weight, 0.5, 2), nn.init.normal_(part.bias)
        if isinstance(part, nn.BatchNorm2d):
            nn.init.normal_(part.running_mean), nn.init.uniform_(part.running_var, 0.5, 2)
    return module.eval()


def convert(module, input=SHAPE, **options):
    """The model, whose logits on images under noise are the module's."""
    model = fs.from_torch(spread(module), input, device="cpu", **options)
    images = torch.rand(6, *input) + 0.5 * torch.randn(6, *input)
    with torch.no_grad():
        theirs = np.from_dlpack(module(images))
    assert np.allclose(theirs, model.logits(images), atol=1e-4 * np.abs(theirs).max())
    return model


def small(*after, shape=(8, 6, 6)):
    """A convolution, what follows it, and a linear layer."""
    return nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), *after, nn.Flatten(), nn.Linear(int(np.prod(shape)), 4))


class NormalizeLayer(nn.Module):
    """As in locuslab/smoothing: plain tensors, no buffers, repeated for every pixel."""

    def __init__(self):
        super().__init__()
        self.means, self.sds = torch.tensor([0.5, 0.4, 0.3]), torch.tensor([0.2, 0.25, 0.3])

    def forward(self, input):
        (batch_size, num_channels, height, width) = input.shape
        means = self.means.repeat((batch_size, height, width, 1)).permute(0, 3, 1, 2)
        sds = self.sds.repeat((batch_size, height, width, 1)).permute(0, 3, 1, 2)
        return (input - means) / sds


class DownsampleA(nn.Module):
    """As in the ResNets for CIFAR of D-X-Y/ResNeXt-DenseNet and locuslab/smoothing."""

    def __init__(self, stride):
        super().__init__()
        self.avg = nn.AvgPool2d(kernel_size=1, stride=stride)

    def forward(self, x):
        x = self.avg(x)
        return torch.cat((x, x.mul(0)), 1)


class BasicBlock(nn.Module):
    def __init__(self, inputs, outputs, shortcut=None):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, outputs // inputs, 1, bias=False)
        self.bn1, self.bn2 = nn.BatchNorm2d(outputs), nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.relu, self.shortcut = nn.ReLU(inplace=True), shortcut

    def forward(self, x):
        out = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        out += x if self.shortcut is None else self.shortcut(x)
        return self.relu(out)


class ResNet(nn.Module):
    def __init__(self, shortcut, pool):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, 8, 3, 1, 1, bias=False), nn.BatchNorm2d(8)
        self.layer1 = nn.Sequential(BasicBlock(8, 8), BasicBlock(8, 16, shortcut), BasicBlock(16, 16))
        self.fc, self.pool = nn.Linear(16, 4), pool

    def forward(self, x):
        x = self.pool(self.layer1(F.relu(self.bn1(self.conv1(x)), inplace=True)))
        return self.fc(F.dropout(x.view(x.size(0), -1), 0.5, self.training))


class WideBlock(nn.Module):
    """As in xternalz/WideResNet-pytorch: a block that changes the number of channels overwrites x by its activation."""

    def __init__(self, inputs, outputs):
        super().__init__()
        self.bn1, self.bn2 = nn.BatchNorm2d(inputs), nn.BatchNorm2d(outputs)
        self.conv1 = nn.Conv2d(inputs, outputs, 3, outputs // inputs, 1, bias=False)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.relu, self.same = nn.ReLU(inplace=True), inputs == outputs
        self.convShortcut = None if self.same else nn.Conv2d(inputs, outputs, 1, outputs // inputs, bias=False)

    def forward(self, x):
        if not self.same:
            x = self.relu(self.bn1(x))
        out = self.conv1(self.relu(self.bn1(x)) if self.same else x)
        out = self.conv2(F.dropout(self.relu(self.bn2(out)), p=0.3, training=self.training))
        return torch.add(x if self.same else self.convShortcut(x), out)


class WideBlockOfRawShortcut(nn.Module):
    """As in meliketoy/wide-resnet.pytorch: biases, a stride in the second convolution, a shortcut of x itself."""

    def __init__(self, inputs, outputs):
        super().__init__()
        self.bn1, self.bn2 = nn.BatchNorm2d(inputs), nn.BatchNorm2d(outputs)
        self.conv1 = nn.Conv2d(inputs, outputs, 3, padding=1, bias=True)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, outputs // inputs, 1, bias=True)
        self.shortcut = nn.Sequential()
        if inputs != outputs:
            self.shortcut = nn.Sequential(nn.Conv2d(inputs, outputs, 1, outputs // inputs, bias=True))

    def forward(self, x):
        out = self.conv2(F.relu(self.bn2(self.conv1(F.relu(self.bn1(x))))))
        out += self.shortcut(x)
        return out


@pytest.mark.parametrize("block", [WideBlock, WideBlockOfRawShortcut])
def test_wide_resnets_as_people_write_them(block):
    blocks = [block(8, 8), block(8, 16), block(16, 16), nn.BatchNorm2d(16), nn.ReLU(), nn.AdaptiveAvgPool2d(1)]
    model = convert(small(*blocks, shape=(16,)))
    assert [layer["kind"] for layer in model.network["layers"]].count("residual") == 3
    convert(model.to_torch())


def project():
    return nn.Sequential(nn.Conv2d(8, 16, 1, 2, bias=False), nn.BatchNorm2d(16))


@pytest.mark.parametrize("shortcut", [lambda: DownsampleA(2), project])
@pytest.mark.parametrize("pool", [nn.AvgPool2d(3), nn.AdaptiveAvgPool2d(1), lambda x: x.mean((2, 3))])
@pytest.mark.parametrize("wrap", [lambda m: m, lambda m: nn.Sequential(NormalizeLayer(), m), nn.DataParallel])
def test_resnets_as_people_write_them(shortcut, pool, wrap):
    model = convert(wrap(ResNet(shortcut(), pool)))
    kinds = [layer["kind"] for layer in model.network["layers"]]
    assert kinds[:4] == ["normalize", "conv", "batch-norm", "relu"] and kinds.count("residual") == 3


def test_models_go_to_torch_and_back():
    layers = [nn.GroupNorm(4, 8), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Dropout(0.5)]
    module = nn.Sequential(NormalizeLayer(), small(*layers, shape=(8,)))
    model = convert(module)
    back = convert(model.to_torch())
    assert [x["kind"] for x in back.network["layers"]] == [x["kind"] for x in model.network["layers"]]
    residual = convert(ResNet(DownsampleA(2), nn.AdaptiveAvgPool2d(1)))
    convert(residual.to_torch())


class Activations(nn.Module):
    """Each as a function."""

    def __init__(self):
        super().__init__()
        self.conv, self.linear = nn.Conv2d(3, 8, 3, padding=1), nn.Linear(8, 4)

    def forward(self, x):
        x = F.gelu(F.leaky_relu(self.conv(x), 0.2))
        return self.linear(F.silu(x, inplace=True).mean((2, 3)))


def test_activations():
    norms = [nn.BatchNorm2d(8), nn.BatchNorm2d(8)]
    layers = [nn.LeakyReLU(0.3), norms[0], nn.SiLU(inplace=True), nn.Conv2d(8, 8, 3, padding=1), norms[1], nn.GELU()]
    model = convert(small(*layers))
    kinds = ["leaky-relu", "silu", "gelu"]
    assert [x["kind"] for x in model.network["layers"] if x["kind"] in kinds] == kinds
    assert model.network["layers"][2]["slope"] == 0.3
    convert(model.to_torch())
    functions = [x for x in convert(Activations()).network["layers"] if x["kind"] in kinds]
    assert functions == [{"kind": "leaky-relu", "slope": 0.2}, {"kind": "gelu"}, {"kind": "silu"}]


def test_standardized_convolutions_go_to_torch_and_back():
    layers = importlib.import_module("fedsmooth._torch")
    conv = layers.StandardizedConv2d(8, 8, 3, padding=1)
    model = convert(small(nn.BatchNorm2d(8), nn.ReLU(), conv, nn.BatchNorm2d(8), nn.ReLU()))
    assert [x.get("standardize") for x in model.network["layers"] if x["kind"] == "conv"] == [None, True]
    convert(model.to_torch())


@pytest.fixture
def example(monkeypatch):
    """examples/certify_torch.py, whose network is written as people write it."""
    monkeypatch.syspath_prepend(pathlib.Path(__file__).parents[2] / "examples")
    return importlib.import_module("certify_torch")


def test_the_example_s_network(example):
    convert(example.Network(), (3, 32, 32))


def test_a_layer_may_be_called_in_several_places():
    relu = nn.ReLU()
    model = convert(small(relu, nn.Conv2d(8, 8, 3, padding=1), relu))
    assert [layer["kind"] for layer in model.network["layers"]].count("relu") == 2


def test_torchvision_s_normalize():
    transforms = pytest.importorskip("torchvision.transforms")
    convert(nn.Sequential(transforms.Normalize((0.5, 0.4, 0.3), (0.2, 0.25, 0.3)), small()))


def test_from_torch_certifies_as_the_module_does():
    module = spread(small(nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Dropout(), shape=(8, 3, 3)))
    image = torch.rand(SHAPE)
    ours = fs.from_torch(module, SHAPE, sigma=0.25, device="cpu").smooth(seed=0).certificate(image, 5, n=2000)
    theirs = fs.Smooth(module, 4, 0.25, seed=0).certificate(image, 5, n=2000, batch_size=100)
    assert abs(ours.count_top - theirs.count_top) <= 2  # rounding apart, the same votes

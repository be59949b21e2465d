"""A torch network, trained under noise and certified: python certify_torch.py [steps]

Needs the packages fedsmooth and torch. Takes some seconds on two cores.
"""

import sys

import torch
from torch import nn

import fedsmooth as fs

SIGMA, CLASSES = 0.25, 10


class Network(nn.Module):
    """Images [B, 3, 32, 32] in [0, 1] to logits. A normalisation, if there is one, belongs in here."""

    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 16, 5, 2, 2),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, 1, 1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(32, 64, 3, 1, 1),
            nn.ReLU(),
            nn.MaxPool2d(2),
        )
        self.classifier = nn.Linear(256, CLASSES)

    def forward(self, x):
        return self.classifier(self.features(x).flatten(1))


def train(model, images, labels, steps):
    """A base classifier must know noisy images: Gaussian augmentation, with the sigma of the certificates."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    for _ in range(steps):
        batch = torch.randint(len(images), (64,))
        noisy = images[batch] + SIGMA * torch.randn(64, 3, 32, 32)
        loss = nn.functional.cross_entropy(model(noisy), labels[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model.eval()


def main(steps):
    torch.manual_seed(0)
    # The built-in data: ten figures, 32x32. Bytes to [0, 1]; noise is added in this space.
    images, labels = (torch.from_dlpack(a) for a in fs.load_data("shapes", split="train"))
    model = train(Network(), images.float() / 255, labels, steps)

    # One image: the class, and the l2 distance within which no image gets another one.
    test_images, test_labels = fs.load_data("shapes")
    g = fs.Smooth(model, CLASSES, SIGMA)
    label, radius = g.certify(test_images[7], n0=100, n=1000, alpha=0.001, batch_size=256)
    print(f"image 7: class {label}, certified within l2 distance {radius:.3f}")

    # The test set, by our engine: the same network, faster. The table is of this model alone.
    engine = fs.from_torch(model, input=(3, 32, 32), sigma=SIGMA)
    out = f"torch-{steps}.certificates.tsv"
    table = fs.certify(engine, (test_images, test_labels), every=100, n=2000, out=out, resume=True)
    for r in (0.0, 0.25, 0.5):
        print(f"certified accuracy at l2 radius {r}: {table.certified_accuracy(r):.2f}")
    print(f"next: fedsmooth report {out}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 600)

"""A test set certified into a table, one image file certified, and a table verified."""

import json
import os
import pathlib
import shutil
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from . import _core
from ._core import Error
from ._model import Model
from ._numbers import as_count, as_device, as_flag, as_seed, as_text, as_threads
from ._progress import bar_or_none
from ._smooth import Smooth, make_budget
from ._table import Path, Table, file_of
from ._test_set import pick
from ._values import list_paths, overrides_to_pairs


def certify(
    g: Smooth | Model,
    test_set: Any,
    *,
    every: int = 1,
    limit: int = 0,
    out: Path | None = None,
    resume: bool = False,
    n0: int = 100,
    n: int = 100_000,
    alpha: float = 0.001,
    batch_size: int | None = None,
    sigma: float | None = None,
    only_correct: bool = False,
    class_names: Sequence[str] | None = None,
    name: str = "python",
    radii: Sequence[float] | None = None,
    beta: float = 0.001,
    plan: float = 0.0,
    noise: str = "float",
) -> Table:
    """Certifies every `every`-th image of a test set, at most `limit` of them if that is not 0.

    test_set: a pair of arrays (images [N, C, H, W] in [0, 1] or bytes, labels [N]), or a data set of
        (image [C, H, W], label). Features [N, D] in [0, 1] are accepted too: f then gets [B, D].
    out: the table to write, NAME.tsv; NAME.json beside it says what the table is about. The program writes the same
        files. Rows are appended whole; resume=True continues after the last one. If left out, the table has no file.
    sigma: the noise, for a Model; the model's own if left out. A Smooth has its own.
    class_names: one per class; the model's, or numbers, if left out.
    name: of the data set. With the images and the name of load_data(), the table is the one that the program writes,
        and the program can resume it.
    only_correct: draws no fresh votes where the selected class is wrong.
    n0, n, alpha, batch_size, radii, beta, plan, noise: as for Smooth; a Model has a batch of its own. With resume=True,
        batch_size is that of the table if left out, and with radii a larger n continues the rows that are not decided.
    """
    smooth = g.smooth(sigma) if isinstance(g, Model) else g
    if not isinstance(smooth, Smooth):
        raise Error(
            f"g: a {type(g).__name__} is not a smoothed classifier; make one by fs.Smooth(f, num_classes, sigma)"
        )
    if resume and out is None:
        raise Error("resume=True: there is no table to continue; give out=")
    if sigma not in (None, smooth.sigma):
        raise Error(f"sigma={sigma}: g has sigma={smooth.sigma}; leave sigma out")
    first, given = pick(test_set, every, limit, smooth, class_names, as_text("name", name))
    budget = make_budget(n0, n, alpha, smooth.radius, radii, beta, plan)

    if out is not None and resume and batch_size is None and pathlib.Path(out).is_file():
        batch_size = _batch_of(_identity_of(out))

    def write(path: pathlib.Path) -> None:
        def ask(votes: _core.Votes) -> None:
            _core.write_table(
                votes=votes,
                name=smooth.name,
                sha256=smooth.sha256,
                given=given,
                sigma=smooth.sigma,
                budget=budget,
                only_correct=as_flag("only_correct", only_correct),
                seed=smooth.seed,
                every=as_count("every", every),
                limit=as_count("limit", limit),
                out=path,
                resume=as_flag("resume", resume),
                progress=bar_or_none(),
            )

        smooth._ask(ask, first.x, first.shape, batch_size, noise, again=False)

    if out is not None:
        path = pathlib.Path(out)
        write(path)
        return Table(_core.read_certificates(path), path)
    path = pathlib.Path(tempfile.mkdtemp(prefix="fedsmooth-")) / "certificates.tsv"
    try:
        write(path)
        return Table(_core.read_certificates(path), path, name=smooth.name, is_scratch=True)
    except BaseException:
        shutil.rmtree(path.parent, ignore_errors=True)
        raise


def _identity_of(table: Path) -> dict[str, Any]:
    """Returns what the JSON beside a table says that it is about."""
    identity: dict[str, Any] = json.loads(_core.read_identity(table))
    return identity


def _batch_of(identity: Mapping[str, Any]) -> int | None:
    """Returns the batch size with which a table's `base` ends; None if it ends otherwise."""
    batch = str(identity.get("base", "")).rpartition("x")[2]
    return int(batch) if batch.isdigit() else None


def certify_image(
    model: Path,
    image: Path,
    overrides: Mapping[str, Any] | None = None,
    *,
    sigma: float | None = None,
    n: int | None = None,
    seed: int | None = None,
    device: str = "auto",
    threads: int = 0,
) -> _core.ImageCertificate:
    """Certifies one image file, as `fedsmooth certify MODEL IMAGE` does; str() of the result says it in words.

    model: a run folder, whose [certify] applies, or a model file. image: a PNG or JPEG file; a grey one has one
        channel where the model's images have one. Digits name an image of the test set, as on the command line.
    overrides: keys of the experiment: {"certify.alpha": 1e-4}. sigma, n: short for certify.sigma and certify.n. If left
        out they are the run's own; for a model file, the sigma that it was trained for, and 100,000.
    seed: that of an earlier answer repeats its noise; drawn by the system if left out.
    device, threads: as for load().
    """
    for name, path in (("model", model), ("image", image)):
        if not isinstance(path, (str, os.PathLike)):
            raise Error(f"{name}: a {type(path).__name__} is not a path; what is in memory is certified by .certify()")
    pairs = overrides_to_pairs(
        overrides,
        certify_sigma=sigma,
        certify_n=None if n is None else as_count("n", n),
        seed=None if seed is None else as_seed(seed),
    )
    return _core.certify_image(
        model=os.fspath(model),
        image=os.fspath(image),
        overrides=pairs,
        device=as_device(device),
        threads=as_threads(threads),
        warn=warnings.warn,
    )


def verify(
    table: Table | Path,
    model: Smooth | Model | Path | None = None,
    test_set: Any = None,
    *,
    images: int = 10,
    n: int = 0,
    seed: int | None = None,
    batch_size: int | None = None,
    with_: Sequence[Path] = (),
    overrides: Mapping[str, Any] | None = None,
    device: str = "auto",
    threads: int = 0,
) -> _core.Verification:
    """Checks a table. Every row must follow from its counts (else an Error is raised), and votes that are drawn anew
    for `images` of the rows, chosen at random, must not contradict the stored ones. `plausible` of the result is the
    verdict; if it is False, a warning is given, too. An honest table fails with probability at most 0.001.

    model, test_set: the classifier g and the test set that fs.certify() got. Without a test set, `model` is a model
        file or a run folder, as in `fedsmooth verify --model`; if left out, it is the one that the table names.
    n: votes to draw for each image; 0: as many as the table has. batch_size, with a test set: that of the table if
        left out.
    seed: of the choice of images and of the votes; drawn by the system if left out.
    with_: for a table of several models as one, the other models; those that the table names if `model` and `with_`
        are left out.
    overrides: keys of the experiment, for a model file or run: {"data.root": "data"}.
    device, threads: as for load(), without a test set.
    """
    count, votes = as_count("images", images), as_count("n", n)
    number = None if seed is None else as_seed(seed)
    if test_set is None:
        _refuse({"batch_size": batch_size}, "of a classifier in memory; give the test set too")
        found = _verify_file(file_of(table), model, count, votes, with_, overrides, number, device, threads)
    else:
        given = {"with_": list(with_), "overrides": overrides, "device": device != "auto", "threads": threads}
        _refuse(given, "of a model file; with a test set, model is a classifier in memory")
        found = _verify_in_hand(file_of(table), model, test_set, count, votes, number, batch_size)
    if not found.plausible:
        warnings.warn(
            f"{found.table}: is implausible: counts as high as its own come with probability {found.p_value:.2g}",
            stacklevel=2,
        )
    return found


def _refuse(given: Mapping[str, Any], why: str) -> None:
    """Raises an Error for an argument that would be ignored."""
    for name, value in given.items():
        if value:
            raise Error(f"{name}: is {why}")


def _verify_file(
    file: str,
    model: Any,
    images: int,
    n: int,
    with_: Sequence[Path],
    overrides: Mapping[str, Any] | None,
    seed: int | None,
    device: str,
    threads: int,
) -> _core.Verification:
    if isinstance(model, (Smooth, Model)):
        raise Error("verify: give the test set too, as fs.certify() had it")
    data = _identity_of(file).get("data")
    if data not in _core.data_sources() and "data.name" not in (overrides or {}):
        raise Error(f"verify: data {data!r} cannot be loaded by that name; give model and test set as for fs.certify")
    return _core.verify(
        table=file,
        images=images,
        model="" if model is None else os.fspath(model),
        with_=list_paths("with_", with_),
        n=n,
        overrides=overrides_to_pairs(overrides, seed=seed),
        device=as_device(device),
        threads=as_threads(threads),
        progress=bar_or_none(),
        warn=warnings.warn,
    )


def _verify_in_hand(
    file: str, model: Any, test_set: Any, count: int, votes: int, seed: int | None, batch_size: int | None
) -> _core.Verification:
    identity = _identity_of(file)
    smooth = model.smooth(identity.get("sigma")) if isinstance(model, Model) else model
    if not isinstance(smooth, Smooth):
        raise Error(f"verify: a {type(model).__name__} is neither a Smooth nor a Model; give what fs.certify() had")
    size = _batch_of(identity) if batch_size is None else batch_size
    like, given = pick(test_set, identity.get("every", 1), identity.get("limit", 0), smooth, None, "")
    noise = _core.noise_of_table(file)

    def ask(drawn: _core.Votes) -> _core.Verification:
        return _core.verify_in_hand(
            votes=drawn,
            name=smooth.name,
            sha256=smooth.sha256,
            given=given,
            table=file,
            images=count,
            n=votes,
            sigma=smooth.sigma,
            seed=seed,
            progress=bar_or_none(),
            warn=warnings.warn,
        )

    return smooth._ask(ask, like.x, like.shape, size, noise, again=False)

"""Logs a run folder's numbers to MLflow or Weights & Biases.

    python -m fedsmooth.log runs/mine --to mlflow
    python -m fedsmooth.log runs/mine --to wandb --project robust

It logs the rounds, certified accuracy and the experiment's keys. The tracker's own variables say where to
(MLFLOW_TRACKING_URI, WANDB_MODE). The run folder is not changed. For TensorBoard set log.tensorboard in the
experiment.
"""

import argparse
import math
import pathlib
import sys
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any

from . import _core
from ._core import Error
from ._table import read_certificates

RADII = (0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 2.0)


def parameters(run: pathlib.Path) -> dict[str, Any]:
    """Returns the experiment's values, by section.key."""
    path = run / "experiment.toml"
    if not path.exists():
        raise Error(f"{run}: no run here; `fedsmooth train` writes one")
    return dict(_flatten(tomllib.loads(path.read_text())))


def _flatten(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield from _flatten(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value


def rounds(run: pathlib.Path) -> list[tuple[int, dict[str, float]]]:
    """Returns for each round its number and its values in rounds.tsv; empty cells are left out."""
    found = []
    for row in _core.read_rounds(run / "rounds.tsv"):
        values = {
            "loss": row.loss,
            "noisy_accuracy": row.noisy_accuracy,
            "perturbation_mean": row.perturbation_mean,
            "perturbation_p95": row.perturbation_p95,
            "probability_drop": row.probability_drop,
            "dropped": float(row.dropped),
            "seconds": row.seconds,
        }
        found.append((row.round, {k: v for k, v in values.items() if v is not None and math.isfinite(v)}))
    return found


def certified(run: pathlib.Path) -> dict[str, float]:
    """Returns certified accuracy at the usual radii and the average radius; nothing if the run is not certified."""
    if not (run / "certificates.tsv").exists():
        return {}
    table = read_certificates(run)
    shares = {f"certified_accuracy_{r:.2f}": table.certified_accuracy(r) for r in RADII}
    return shares | {"average_certified_radius": table.acr}


def to_mlflow(run: pathlib.Path, project: str, name: str) -> None:
    import mlflow

    config = parameters(run)
    mlflow.set_experiment(project)
    with mlflow.start_run(run_name=name):
        mlflow.log_params(config)
        for number, values in rounds(run):
            mlflow.log_metrics(values, step=number)
        mlflow.log_metrics(certified(run))


def to_wandb(run: pathlib.Path, project: str, name: str) -> None:
    import wandb

    config = parameters(run)  # refuses a folder that is no run before anything is logged
    with wandb.init(project=project, name=name, config=config) as tracked:
        for number, values in rounds(run):
            tracked.log(values, step=number)
        tracked.summary.update(certified(run))


TRACKERS = {"mlflow": to_mlflow, "wandb": to_wandb}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m fedsmooth.log", description=__doc__.splitlines()[0])
    parser.add_argument("run", type=pathlib.Path, help="a run folder")
    parser.add_argument("--to", required=True, choices=TRACKERS, help="the tracker to write to")
    parser.add_argument("--project", default="fedsmooth", help="MLflow's experiment, Weights & Biases' project")
    parser.add_argument("--name", help="name of the run there; that of the folder if left out")
    o = parser.parse_args(arguments)
    try:
        TRACKERS[o.to](o.run, o.project, o.name or o.run.resolve().name)
    except Error as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except ModuleNotFoundError as error:
        print(f"error: {error.name} is not installed; pip install {o.to}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())

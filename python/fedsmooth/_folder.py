"""A model folder in Hugging Face's form: model.safetensors, config.json, README.md."""

import json
import pathlib
from typing import Any

from . import _core
from ._core import Error
from ._model import Model
from ._table import Table, file_of

RADII = (0.0, 0.25, 0.5, 0.75, 1.0)


def save_folder(
    model: Model,
    folder: str | pathlib.Path,
    table: Table | None = None,
    *,
    name: str = "fedsmooth-model",
    dataset: str = "unknown",
) -> None:
    """Writes `model`, and a model card with the certified accuracy of `table`, into a folder that load() reads.

    table: certificates of this very model. Raises an Error for those of another one, such as the torch module from
        which the model was made.
    name, dataset: what the card calls the model and the data set of the table."""
    folder = pathlib.Path(folder)
    if table is not None:
        _check_is_about(table, model)
    folder.mkdir(parents=True, exist_ok=True)
    model.save(folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(_config(model), indent=2) + "\n")
    (folder / "README.md").write_text(_card(model, table, name, dataset))


def _check_is_about(table: Table, model: Model) -> None:
    if "alpha" not in table.columns:
        raise Error(f"{table.path}: a published table does not say which model it is about")
    if len(table) == 0:
        raise Error(f"{table.path or 'table'}: no certificates yet")
    told = json.loads(_core.read_identity(file_of(table))).get("model_sha256")
    if told not in (model.sha256, _core.sha256(model._native.to_bytes())):
        raise Error(f"{table.path or 'table'}: is about another model than {model.name}; certify it by fs.certify")


def _config(model: Model) -> dict[str, Any]:
    names = model.class_names or [str(i) for i in range(model.num_classes)]
    return {
        "model_type": "fedsmooth",
        "architectures": [model.network["name"]],
        "num_channels": model.input[0],
        "image_size": list(model.input[1:]),
        "num_labels": model.num_classes,
        "id2label": {str(i): label for i, label in enumerate(names)},
        "sigma": model.sigma,
        "sha256": _core.sha256(model._native.to_bytes()),
    }


def _card(model: Model, table: Table | None, name: str, dataset: str) -> str:
    quote = json.dumps  # a JSON string is a YAML string
    lines = [
        "---",
        "library_name: fedsmooth",
        "pipeline_tag: image-classification",
        "tags: [certified-robustness, randomized-smoothing]",
    ]
    if table is not None:
        lines += [
            "model-index:",
            f"- name: {quote(name)}",
            "  results:",
            "  - task: {type: image-classification}",
            f"    dataset: {{name: {quote(dataset)}, type: {quote(dataset)}}}",
            "    metrics:",
        ]
        for r in RADII:
            metric = quote(f"certified accuracy at l2 radius {r}")
            value = table.certified_accuracy(r)
            lines.append(f"    - {{type: certified_accuracy, name: {metric}, value: {value:.4f}}}")
        lines += [f"    - {{type: average_certified_radius, name: ACR, value: {table.acr:.4f}}}"]
    lines += [
        "---",
        "",
        f"# {name}",
        "",
        f"A base classifier for randomized smoothing with Gaussian noise of sigma {model.sigma}, on images",
        f"{list(model.input)} in [0, 1].",
        "",
    ]
    if table is not None:
        lines += [
            f"Certified on {len(table)} images of {dataset}, under noise of sigma {table['sigma'][0]}, alpha "
            f"{table['alpha'][0]} per image:",
            "",
            "| l2 radius | " + " | ".join(str(r) for r in RADII) + " |",
            "|---" * (len(RADII) + 1) + "|",
            "| certified accuracy | " + " | ".join(f"{table.certified_accuracy(r):.3f}" for r in RADII) + " |",
            "",
        ]
    lines += [
        "    import fedsmooth as fs",
        '    model = fs.load("model.safetensors")',
        "    model.certify(images, n=100_000)",
        "",
    ]
    return "\n".join(lines)

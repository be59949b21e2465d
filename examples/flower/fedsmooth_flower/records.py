"""Between fedsmooth's messages and Flower's records."""

from dataclasses import fields
from typing import Any

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, RecordDict

from fedsmooth import Error
from fedsmooth.federation import Answer, Hello, Task


def pack(config: dict[str, Any], arrays: dict[str, np.ndarray] | None = None) -> RecordDict:
    records = RecordDict({"config": ConfigRecord(config)})
    if arrays:
        records["arrays"] = ArrayRecord({name: Array(values) for name, values in arrays.items()})
    return records


def from_hello(hello: Hello) -> RecordDict:
    return pack(_values(hello))


def to_hello(records: RecordDict) -> Hello:
    return Hello(**_fields(records, Hello))


def from_task(task: Task, setup: dict[str, Any]) -> RecordDict:
    config = _values(task)
    weights = config.pop("weights")
    return pack(setup | config, {"weights": weights})


def to_task(records: RecordDict) -> Task:
    return Task(**_fields(records, Task), weights=_array(records, "weights"))


def from_answer(answer: Answer) -> RecordDict:
    config = {"t": answer.t, "attempt": answer.attempt, "identity": answer.identity}
    return pack(config, {"words": answer.words})


def to_answer(records: RecordDict) -> Answer:
    return Answer(**_fields(records, Answer), words=_array(records, "words"))


def _values(message: Any) -> dict[str, Any]:
    """The fields by name. asdict() would copy the weights."""
    return {field.name: getattr(message, field.name) for field in fields(message)}


def _fields(records: RecordDict, kind: type) -> dict[str, Any]:
    """The fields of `kind`, read from a record. A field of another type is an Error: the sender may be anyone."""
    config, found = records["config"], {}
    for name, wanted in kind.__annotations__.items():
        if wanted is np.ndarray:
            continue
        value, plain = config.get(name), getattr(wanted, "__origin__", wanted)
        if type(value) is not plain:
            raise Error(f"{name} is a {type(value).__name__}, expected a {plain.__name__}")
        found[name] = value
    return found


def _array(records: RecordDict, name: str) -> np.ndarray:
    try:
        return records["arrays"][name].numpy()
    except Exception as error:  # whatever a sender may have put there
        raise Error(f"no array {name}: {error}") from None

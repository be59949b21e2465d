"""Messages name parameters of the functions that a user can call, never options of the program."""

import inspect
import pathlib
import re
import tomllib

import pytest

import fedsmooth as fs
from fedsmooth import _core
from fedsmooth.federation import change_experiment

SOURCES = pathlib.Path(__file__).parents[2] / "fedsmooth"
NO_FUNCTION = ()  # of the program alone
ANY = tuple(f for f in vars(fs).values() if inspect.isfunction(f)) + (fs.Table.radii_against,)

# The functions that raise or warn what a file of the library says. Each must have each parameter that the file names;
# of a list, one function must have all parameters that a message names.
HEARD_BY = {
    "data/public_sets.cpp": NO_FUNCTION,  # fs.load_data reads what is there
    "distributed/": NO_FUNCTION,  # ranks
    "engine/": (fs.train, fs.certify_run, fs.attack, fs.load),
    "jobs/against.cpp": (fs.Table.radii_against,),
    "jobs/attack.cpp": (fs.attack,),
    "jobs/certification.cpp": (fs.certify_run, fs.certify),
    "jobs/certification/certification_job.cpp": NO_FUNCTION,  # shards
    "jobs/certification/ensemble_under_test.cpp": [fs.certify_run, fs.verify],
    "jobs/certification/same_classifier.cpp": (fs.verify,),
    "jobs/certification/model_under_test.cpp": (fs.certify_run, fs.verify, fs.attack, fs.certify_image, fs.sweep),
    "jobs/compare.cpp": (fs.compare,),
    "jobs/conformal.cpp": NO_FUNCTION,  # fs.Conformal has images in memory
    "jobs/context.cpp": (fs.train, fs.certify_run, fs.verify, fs.attack, fs.sweep, fs.certify_image, fs.load),
    "jobs/curl.cpp": NO_FUNCTION,
    "jobs/load_run.cpp": (fs.report,),
    "jobs/merge.cpp": (fs.merge,),
    "jobs/plot.cpp": (fs.plot,),
    "jobs/recertify.cpp": (fs.recertify,),
    "jobs/report.cpp": (fs.report,),
    "jobs/sweep.cpp": (fs.sweep,),
    "jobs/training/": (fs.train,),
    "jobs/verify.cpp": (fs.verify,),
    "model/model.cpp": (fs.certify_run, fs.verify, fs.attack, fs.certify_image),
    "records/certificate_file.cpp": (fs.recertify, fs.merge),
    "records/run.cpp": (fs.train,),
    "records/table_file.cpp": (fs.certify, fs.certify_run, fs.attack),
    "report/norm.cpp": (fs.report, fs.plot, fs.compare),
    # How a table was made.
    "records/group_columns.cpp": ANY,
    "report/": ANY,
}
PROGRAM_ALONE = {
    ("jobs/against.cpp", "out"),  # fs.Table.radii_against returns the radii
    ("jobs/certification.cpp", "against"),
    ("jobs/certification.cpp", "radii"),  # not with --against
    ("jobs/sweep.cpp", "side-by-side"),  # ranks
}
HOW_IT_WAS_MADE = re.compile(r"\(--[a-z-]+[,)]")  # in the words of any function
COMMAND = re.compile(r"`[^`]*`|<code>fedsmooth [^<]*</code>")  # of the program, whoever reads it
OF_STYLE = re.compile(r"var\(--|--w:|--default-settings")


def messages():
    """Each string of the library's sources that names options: file, options, and the string."""
    for path in sorted(SOURCES.rglob("*")):
        if path.suffix not in (".cpp", ".h", ".cu", ".cuh") or path.name in ("style.h", "script.h"):
            continue
        code = "\n".join(line for line in path.read_text().splitlines() if not line.lstrip().startswith("//"))
        for literal in re.findall(r'"((?:[^"\\\n]|\\.)*)"', re.sub(r'"\s*\n\s*"', "", code)):
            text = HOW_IT_WAS_MADE.sub("", OF_STYLE.sub("", COMMAND.sub("", literal)))
            file = str(path.relative_to(SOURCES))
            options = re.findall(r"(?<![\w.-])--([a-z][a-z0-9._-]*[a-z0-9])", text)
            if options := {option for option in options if (file, option) not in PROGRAM_ALONE}:
                yield file, options, literal


def heard_by(file):
    return next((functions for place, functions in HEARD_BY.items() if file.startswith(place)), None)


def parameters(function):
    return set(inspect.signature(function).parameters)


def test_options_in_messages_are_parameters():
    found = list(messages())
    assert len(found) > 50
    keys = {
        f"{section}.{key}"
        for section, table in tomllib.loads(change_experiment("")).items()
        if isinstance(table, dict)
        for key in table
    }
    wrong = []
    for file, options, literal in found:
        said = {_core.in_python_words(f"--{option}").split("=")[0] for option in options}
        functions = heard_by(file)
        if functions is None:
            wrong.append(f"{file}: name in HEARD_BY who hears {literal!r}")
            continue
        lacks = [said - parameters(f) - keys for f in functions]
        if any(lacks) if isinstance(functions, tuple) else all(lacks):
            wrong.append(f"{file}: {lacks} are neither parameters nor keys: {literal!r}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    "message, said",
    [
        ("a.tsv: exists; continue it with --resume or choose another --out", "resume=True or choose another out="),
        ("--alpha=5: must be", "alpha=5: must be"),
        ("give --train.rounds.", "give train.rounds."),
        ("--epsilon=-1: must be", "epsilons=-1: must be"),
        ("--with: give --model too", "with_=: give model= too"),
        ("continue with `fedsmooth train --resume run`", "`fedsmooth train --resume run`"),
    ],
)
def test_words(message, said):
    assert said in _core.in_python_words(message)


def test_messages_of_an_attack_and_of_an_unfinished_run(experiment_file, tmp_path):
    run = fs.train(experiment_file, {"train.rounds": 1}, out=tmp_path / "run")
    with pytest.raises(fs.Error, match="^epsilons=-1: must be between"):
        fs.attack(run.folder, [-1], device="cpu")
    with pytest.raises(fs.Error, match="^attack.epsilon: is training's; give epsilons="):
        fs.attack(run.folder, overrides={"attack.epsilon": 1}, device="cpu")
    (run.folder / "DONE").unlink()
    with pytest.raises(fs.Error, match="unfinished .*; continue with `fedsmooth train --resume"):
        fs.certify_run(run.folder, resume=True)


def test_several_models_as_one(experiment_file, tmp_path):
    """Certified into a table of its own, and verified by the members that the table or the caller names."""
    a, b = (
        fs.train(experiment_file, {"seed": seed, "train.rounds": 1}, out=tmp_path / f"run{seed}").folder
        for seed in (1, 2)
    )
    with pytest.raises(fs.Error, match="^with_=: give out=, the table to write"):
        fs.certify_run(a, with_=[b])
    options = {"certify.n": 100, "certify.every": 10}
    table = fs.certify_run(a, options, with_=[b], out=tmp_path / "both.tsv", device="cpu")
    assert table["base"][0].endswith("/mean-of-2") and not (a / "certificates.tsv").exists()
    assert fs.verify(table, images=2, device="cpu").plausible
    assert fs.verify(table, b, with_=[a], images=2, device="cpu").plausible
    with pytest.raises(fs.Error, match="is about 2 models as one, 1 given; give all of them by model= and with_="):
        fs.verify(table, a, device="cpu")
    with pytest.raises(fs.Error, match="^with_=: give model= too"):
        fs.verify(table, with_=[a], device="cpu")

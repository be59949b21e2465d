#!/usr/bin/env python3
"""Checks every `fedsmooth ...` and `make ...` command in the documents, the messages and the examples of --help.

    documented_commands.py PROGRAM SOURCE          each names a command and options that exist
    documented_commands.py PROGRAM SOURCE --run    each is run as well, on small data in a temporary folder

All files that git tracks are read, but for those of NOT_READ. A document's command is one between backticks or a
line of a code block; a message's is one between backticks in a string, or an example there. Names in capitals and {}
stand for a run. commands_not_run.tsv lists those that are not run, with the reason; an entry that occurs nowhere is a
failure, and so is a target that the Makefile does not have."""
import ast
import inspect
import json
import os
import pathlib
import re
import shlex
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib

COMMAND = re.compile(r"(?:mpirun .*?)?(?:build/)?fedsmooth\s+(?:--)?[a-z]")
NOT_READ = {  # beginnings of paths, with the reason
    "CHANGELOG.md": "names commands of earlier versions",
    "tests/": "has commands that must be refused",
    "python/tests/": "has commands that must be refused",
}
# What makes any experiment small. The last value of a key counts.
DATA = ["--data.name=idx", "--data.root=tiny", "--data.held_out=0", "--model.name=layers",
        '--model.layers=[{kind="linear",name="fc",outputs=10,bias=true}]', "--model.mean=[0.5]", "--model.sd=[0.25]"]
TRAINING = [*DATA, "--data.augment=false", "--partition.clients=4", "--partition.samples_per_client=4",
            "--train.rounds=1", "--train.clients_per_round=2", "--train.local.steps=1", "--train.local.batch=2",
            "--server.clusters=1", "--server.average_from=0", "--seed=0"]
VOTES = ["--certify.n0=20", "--certify.n=10000", "--certify.limit=2", "--certify.every=1"]


def normal(command):
    """One line that names the program `fedsmooth`, without a trailing comment."""
    command = re.sub(r"\s+#\s.*$", "", command.strip())
    return re.sub(r"\s+", " ", command).replace("build/fedsmooth", "fedsmooth").rstrip(".,;:")


def in_markdown(text):
    """Commands of a page: code spans, and lines of fenced or indented code."""
    prose, code, fenced, previous = [], [], False, ""
    for line in text.splitlines():
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif fenced or (line.startswith("    ") and (not previous.strip() or previous.startswith("    "))):
            code.append(line)
        else:
            prose.append(line)
        previous = line
    lines = "\n".join(code).replace("\\\n", " ").splitlines()
    return [*re.findall(r"`([^`]+)`", "\n".join(prose)), *(line.strip().removeprefix("$ ") for line in lines)]


def in_notebook(text):
    """Commands of a notebook's text."""
    cells = json.loads(text)["cells"]
    return [command for cell in cells if cell["cell_type"] == "markdown" for command in in_markdown("".join(cell["source"]))]


def in_python(text):
    """Commands of docstrings and of strings; {} stands for what an f-string fills in."""
    found, tree = [], ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts = [part.value if isinstance(part, ast.Constant) else "{}" for part in node.values]
            found += re.findall(r"`([^`]+)`", "".join(parts))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found += in_markdown(inspect.cleandoc(node.value))
    return found


def in_comments(text):
    """Commands between backticks of a file with # comments, and its lines that are commands."""
    lines = re.sub(r"^#+ ?", "", text.replace("\\\n", " "), flags=re.M)
    return [*re.findall(r"`([^`]+)`", lines), *(line.strip() for line in text.splitlines() if not line.startswith("#"))]


def in_source(text):
    """Commands of C++ strings; those that stand side by side are one."""
    found = []
    text = re.sub(r"^\s*//.*$", "", text, flags=re.M)
    for literal in re.findall(r'(?:"(?:[^"\\\n]|\\.)*"\s*)+', text):
        joined = "".join(re.findall(r'"((?:[^"\\\n]|\\.)*)"', literal))
        joined = joined.replace("\\n", "\n").replace('\\"', '"').replace("\\\\", "\\")
        found += re.findall(r"`([^`]+)`", joined)
        found += [line.strip() for line in joined.splitlines() if line.startswith("  ")]
    return found


READERS = {".md": in_markdown, ".ipynb": in_notebook, ".py": in_python, ".cpp": in_source, ".toml": in_comments,
           ".sbatch": in_comments}


def collect(source, bad):
    """Each command of the program, and each of make, with the first file that has it."""
    tracked = subprocess.run(["git", "ls-files"], cwd=source, check=True, capture_output=True, text=True).stdout.split()
    bad += [f"NOT_READ: no file begins with {start}" for start in NOT_READ if not any(p.startswith(start) for p in tracked)]
    found, made = {}, {}
    for path in tracked:
        read = READERS.get(pathlib.Path(path).suffix)
        if read is None or path.startswith(tuple(NOT_READ)) or not (source / path).exists():
            continue
        for text in read((source / path).read_text()):
            if COMMAND.match(text):
                found.setdefault(normal(text), path)
            elif re.match(r"make(\s|$)", text):
                made.setdefault(normal(text), path)
    return found, made


def missing_targets(command, source):
    """The targets of a command of make that the Makefile does not have."""
    targets = re.findall(r"^([a-z][a-z-]*):", (source / "Makefile").read_text(), re.M)
    words = shlex.split(re.split(r"&&|;", command)[0])[1:]
    return [word for word in words if not word.startswith("-") and "=" not in word and word not in targets]


def words_of(command):
    """The words after the program's name, and of a name that {} stands for."""
    words = shlex.split(command.replace("{}", "RUN").replace("|", "\\|"))
    return words[words.index("fedsmooth") + 1:]


class Grammar:
    """Which commands and options there are, from the program's completion for bash."""

    def __init__(self, program):
        text = subprocess.run([program, "completion", "bash"], check=True, capture_output=True, text=True).stdout
        self.keys = set(re.search(r'local keys="([^"]*)"', text)[1].replace("=", "").split())
        self.options = {name: set(words.split()) for name, words in re.findall(r'^    (\S+)\) words="([^"]*)"', text, re.M)}

    def wrong(self, command):
        """What the program does not know in a command, or nothing."""
        words = words_of(command)
        if words[0].startswith("--"):
            return None if set(words) <= self.options["*"] else f"{words[0]} is no option of the program"
        if words[0] not in self.options:
            return f"there is no command {words[0]}"
        known = self.options[words[0]]
        for word in words[1:]:
            name = word.split("=")[0]
            if name.startswith("--") and name not in known and not ("$keys" in known and name in self.keys):
                return f"{words[0]} has no option {name}"
        return None


def png(path):
    """32 x 32 grey pixels."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    rows = b"".join(b"\0" + bytes((3 * x + y) % 256 for x in range(32)) for y in range(32))
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 32, 32, 8, 0, 0, 0, 0)) +
                     chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def idx(path, sizes, data):
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(bytes([0, 0, 8, len(sizes)]) + struct.pack(f">{len(sizes)}I", *sizes) + data)


class Workplace:
    """A folder with small data and a trained, certified run; and what a command's arguments name, made from it."""

    def __init__(self, program, source, folder):
        self.program, self.source, self.folder = program, source, folder
        for split, count in (("train", 40), ("t10k", 200)):  # 100 of them calibrate conformal sets
            pixels = bytes((i * i // 7) % 256 for i in range(count * 1024))
            idx(folder / "tiny" / f"{split}-images-idx3-ubyte", [count, 32, 32], pixels)
            idx(folder / "tiny" / f"{split}-labels-idx1-ubyte", [count], bytes(i % 10 for i in range(count)))
        shutil.copytree(source / "experiments", folder / "experiments")
        (folder / "base.toml").write_text("[train]\nmethod = 'gaussian'\n")
        for seed in range(3):
            self.must(["train", "base.toml", "--out", f"base{seed}", *TRAINING, f"--seed={seed}"])
        self.must(["certify", "base0", *VOTES])
        for part in (1, 2):
            self.must(["certify", "base0", "--shard", f"{part}/2", "--out", f"part{part}.tsv", *VOTES])

    def run(self, words):
        return subprocess.run([self.program, *words], cwd=self.folder, capture_output=True, text=True, timeout=120)

    def must(self, words):
        done = self.run(words)
        if done.returncode != 0:
            sys.exit(f"{shlex.join(map(str, words))}: {done.stderr}")

    def table(self, path):
        shutil.copy(self.folder / "base0/certificates.tsv", path)
        shutil.copy(self.folder / "base0/certificates.json", path.with_suffix(".json"))

    def make(self, word):
        """Makes the file or folder that a word of a command names, unless it is there or names none."""
        path = self.folder / word.split("=")[-1]
        if word.startswith(("-", "/")) or path.exists() or re.fullmatch(r"[\d./,]+", word) or len(path.name) > 100:
            return
        inside = self.source / path.relative_to(self.folder)
        path.parent.mkdir(parents=True, exist_ok=True)
        top = path.relative_to(self.folder).parts[0]
        if inside.is_dir() and top == "results":
            shutil.copytree(inside, path)
        elif inside.is_file() and inside.suffix == ".toml":
            shutil.copy(inside, path)
        elif path.name in ("noise_0.25", "THEIRS"):
            path.write_text("idx\tlabel\tpredict\tradius\tcorrect\ttime\n" +
                            "".join(f"{i}\t{i % 10}\t{i % 10}\t0.5\t1\t0:00:01\n" for i in range(20)))
        elif path.name == "superclasses.toml":
            path.write_text('low = ["0", "1", "2", "3", "4"]\nhigh = ["5", "6", "7", "8", "9"]\n')
        elif path.name.endswith("conformal.json"):
            model = path.parent if path.name == "conformal.json" else path.with_name("model.safetensors")
            self.must(["conformal", str(model), "--epsilon", "0.25", "--out", str(path), *DATA[:2]])
        elif path.suffix == ".toml" or path.name == "FILE":
            shutil.copy(self.folder / "base.toml", path)
        elif path.suffix == ".png" or path.name == "IMAGE":
            png(path)
        elif top == "runs" or path.name.isupper():
            self.make_run(path.parent if path.suffix in (".tsv", ".safetensors") else path)
        elif path.suffix == ".safetensors":
            shutil.copy(self.base(path.stem) / "model.safetensors", path)
        elif path.suffix == ".tsv":
            self.table(path)

    def base(self, name):
        """One of the three runs: a, b and c are different ones."""
        return self.folder / f"base{ord(name[-1]) % 3}"

    def make_run(self, path):
        shutil.copytree(self.base(path.name), path, dirs_exist_ok=True)
        if not (path / "certificates.tsv").exists():
            self.must(["certify", str(path), *VOTES])

    def try_command(self, command, grammar):
        """None, or what went wrong."""
        words = words_of(command)
        name = words[0]
        for i, word in enumerate(words[1:], 1):
            if words[i - 1] == "--out":
                shutil.rmtree(self.folder / word, ignore_errors=True)
            elif not (name == "sweep" and words[i - 1].startswith("--")):
                self.make(word)
        if name == "train" and "--resume" not in words and "--out" not in words:
            words += ["--out", "fresh"]
            shutil.rmtree(self.folder / "fresh", ignore_errors=True)
        if name == "train" and "--resume" not in words:
            words += TRAINING
        elif name == "sweep":
            if "--out" not in words:
                shutil.rmtree(self.folder / "runs", ignore_errors=True)
            words += [*DATA, "--data.augment=false", "--dry-run"] if "quickstart" not in command else [*TRAINING, *VOTES]
        elif name == "partition":
            words += TRAINING[:-6]
        elif name == "recertify":
            for made in self.folder.rglob("*-against.*"):
                made.unlink()
        elif name == "conformal":
            words += DATA[:2]
            for made in self.folder.rglob("*conformal.json"):
                made.unlink()
        elif name in ("certify", "attack", "predict", "verify") and "$keys" in grammar.options[name]:
            # A model file says nothing of its data: the command has to.
            if name == "verify" or "--data.name" in command or not any(w.endswith(".safetensors") for w in words[1:2]):
                words += ["--data.name=idx", "--data.root=tiny"]
            words += VOTES if name in ("certify", "attack") else []
            if name == "certify" and "--out" not in words and "--resume" not in words:
                words += ["--out", "fresh.tsv"] if not any(word.endswith(".png") or word == "IMAGE" for word in words) else []
                for ending in ("tsv", "json"):
                    (self.folder / f"fresh.{ending}").unlink(missing_ok=True)
        small = {"3072": "1024", "4000": "100", "benign": "3"}  # numbers in an image, images, a class
        words = [small.get(word, word) for word in words]
        words = words[:words.index(">")] if ">" in words else words
        of_ranks = ("--side-by-side",)  # of which there is one here
        words = [word for i, word in enumerate(words) if word not in of_ranks and words[i - 1] not in of_ranks]
        done = self.run(words)
        if done.returncode == 0:
            return None
        return f"ends with {done.returncode} as\n  fedsmooth {shlex.join(words)}\n  {done.stderr.strip()}"


def main():
    program, source = pathlib.Path(sys.argv[1]).absolute(), pathlib.Path(sys.argv[2]).absolute()
    bad = []
    (commands, made), grammar = collect(source, bad), Grammar(program)
    table = pathlib.Path(__file__).with_name("commands_not_run.tsv").read_text().splitlines()
    not_run = dict(line.split("\t") for line in table if line and not line.startswith("#"))
    bad += [f"{path}: `{command}`: there is no target {target}" for command, path in made.items()
            for target in missing_targets(command, source)]
    bad += [f"commands_not_run.tsv: `{command}` occurs nowhere" for command in not_run if command not in commands]
    for command, path in commands.items():
        if not_run.get(command, "").startswith("no command"):
            continue
        if wrong := grammar.wrong(command):
            bad.append(f"{path}: `{command}`: {wrong}")
    tried = 0
    if "--run" in sys.argv:
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
        with tempfile.TemporaryDirectory() as folder:
            workplace = Workplace(program, source, pathlib.Path(folder).resolve())
            for command, path in commands.items():
                # A command's name, alone or with an option without its value, speaks of it.
                words = words_of(command)
                if command in not_run or len(words) < 2 or len(words) == 2 and re.fullmatch("--[a-z-]+", words[1]):
                    continue
                tried += 1
                if wrong := workplace.try_command(command, grammar):
                    bad.append(f"{path}: `{command}` {wrong}")
    print("\n".join(bad) or f"{len(commands)} commands, {len(made)} of make: ok" + (f", {tried} of them run" if tried else ""))
    sys.exit(bool(bad))


main()

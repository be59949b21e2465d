#!/usr/bin/env python3
"""Two ranks against one, one thread each, in training (AlexNet in the paper's setting with few
clients) and in certification, alternately on this machine. Start and data loading are left out.
Prints one line per run, and last the medians and the fastest round and run of each, which other work
on the machine disturbed least."""
import argparse
import json
import os
import pathlib
import statistics
import tempfile

import side_by_side

# More of the paper's setting than this does not fit into a few minutes on one core.
SETTING = ["--data.name=shapes", "--model.name=alexnet"]
AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def launch(ranks, options, *words):
    side_by_side.run(["mpirun", "-q", "-n", str(ranks), "--bind-to", "core", "--oversubscribe",
                      options.program, *map(str, words), "--threads", "1", "--quiet"])


def train(ranks, options, run):
    launch(ranks, options, "train", run.parent / "e.toml", "--out", run, *SETTING,
           f"--train.rounds={options.rounds}", f"--train.clients_per_round={options.clients}")
    rows = [line.split("\t") for line in (run / "rounds.tsv").read_text().splitlines()]
    seconds = [float(row[rows[0].index("seconds")]) for row in rows[1:]]
    return [options.clients * 20 / s for s in seconds]  # steps of a client in a round: 20


def certify(ranks, options, run):
    launch(ranks, options, "certify", run, "--n", options.votes, "--limit", options.images)
    # From its JSON, written before the first image, to its last row.
    table = run / "certificates.tsv"
    seconds = table.stat().st_mtime - table.with_suffix(".json").stat().st_mtime
    return [options.images * (100 + options.votes) / seconds]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", default="build/fedsmooth")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--clients", type=int, default=4, help="of a round")
    parser.add_argument("--images", type=int, default=24)
    parser.add_argument("--votes", type=int, default=5_000, help="of an image")
    options = parser.parse_args()
    os.environ.update(AS_ROOT)
    rates = {}
    for _ in range(options.repeats):
        for ranks in (1, 2):
            with tempfile.TemporaryDirectory() as folder:
                (pathlib.Path(folder) / "e.toml").write_text("")
                run = pathlib.Path(folder) / "run"
                for what, unit in ((train, "client steps"), (certify, "votes")):
                    found = what(ranks, options, run)
                    rates.setdefault((what.__name__, ranks), []).extend(found)
                    shown = ", ".join(f"{rate:,.1f}" for rate in found)
                    print(f"{what.__name__}, ranks {ranks}: {shown} {unit} a second", flush=True)
                traffic = json.loads((run / "provenance.json").read_text())
    rows = [["", "1 rank", "2 ranks", "ratio"]]
    for name, choose in (("median", statistics.median), ("fastest", max)):
        for what in ("train", "certify"):
            one, two = (choose(rates[what, ranks]) for ranks in (1, 2))
            rows.append([f"{what}, {name}", f"{one:,.1f}", f"{two:,.1f}", f"{two / one:.2f}"])
    side_by_side.print_table(rows)
    for way in ("to", "from"):
        size = traffic[f"bytes_{way}_each_rank"] / options.rounds
        print(f"bytes {way} each rank in a round: {size:,.0f}")


if __name__ == "__main__":
    main()

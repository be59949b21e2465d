#!/usr/bin/env python3
"""What several groups cost, beside one network with the same work, on the built-in images.

Training: G groups of c clients a round in one wave, beside a plain run of G c clients a round. Votes: n copies voted on
by G networks, beside G n votes of one of them. The commands run alternately and whole, with start and data. Ratios are of
processor time, which other work on the machine disturbs less than the clock; on a GPU, of the time by the clock."""
import argparse
import os
import pathlib
import resource
import statistics
import tempfile
import time

from side_by_side import run


def spent(command, by_clock):
    """Seconds that the command took."""
    def processor():
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return used.ru_utime + used.ru_stime

    now = time.perf_counter if by_clock else processor
    start = now()
    run(command)
    return now() - start


def compare(name, groups, single, repeats, by_clock):
    """Runs both commands alternately, after once unmeasured, and prints medians and their ratio. A command is made for
    each run by a function of its number."""
    for command in (groups(0), single(0)):
        run(command)
    times = [(spent(groups(i), by_clock), spent(single(i), by_clock)) for i in range(1, repeats + 1)]
    of_groups, of_single = map(statistics.median, zip(*times))
    ratios = sorted(a / b for a, b in times)
    print(f"{name}: groups {of_groups:.2f} s, one network {of_single:.2f} s, "
          f"ratio {statistics.median(ratios):.3f} ({ratios[0]:.3f} to {ratios[-1]:.3f})", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", default="build/fedsmooth")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--model", default="small")
    parser.add_argument("--groups", type=int, default=20)
    parser.add_argument("--clients", type=int, default=5, help="clients of a group in a round")
    parser.add_argument("--rounds", type=int, default=2, help="rounds of a training")
    parser.add_argument("--steps", type=int, default=20, help="local steps of a client")
    parser.add_argument("--n", type=int, default=2000, help="copies of each of four images")
    parser.add_argument("--repeats", type=int, default=5)
    o = parser.parse_args()
    by_clock = o.device == "cuda"
    common = ["--device", o.device, f"--threads={o.threads}", "--quiet"]
    with tempfile.TemporaryDirectory() as folder:
        experiment = pathlib.Path(folder, "groups.toml")
        experiment.write_text(f"data.name = \"shapes\"\nmodel.name = \"{o.model}\"\npartition.clients = {50 * o.groups}\n")

        def train(number, groups):
            return [o.program, "train", experiment, "--out", f"{folder}/{groups}-{number}", f"--groups.count={groups}",
                    f"--train.clients_per_round={o.clients * o.groups // groups}", f"--train.rounds={o.rounds}",
                    f"--train.local.steps={o.steps}", *common]

        def certify(number, run_folder, votes):
            return [o.program, "certify", run_folder, "--certify.limit=4", f"--certify.n={votes * o.n}",
                    f"--certify.n0={votes * 100}", "--out", f"{folder}/{votes}-{number}.tsv", *common]

        compare("training", lambda i: train(i, o.groups), lambda i: train(i, 1), o.repeats, by_clock)
        trained = f"{folder}/{o.groups}-0"
        compare("votes", lambda i: certify(i, trained, 1), lambda i: certify(i, f"{trained}/group-01", o.groups),
                o.repeats, by_clock)


if __name__ == "__main__":
    main()

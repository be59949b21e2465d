#!/usr/bin/env python3
"""What several groups cost, beside one network with the same work, on the built-in images.

Training: G groups of c clients a round in one wave, beside a plain run of G c clients a round. Votes: n copies voted on
by G networks, beside G n votes of one of them. The commands run alternately, each with little and with three times as
much work, so that the difference leaves out the start: reading, checking and writing G networks. Times are of the
processor, which other work on the machine disturbs less than the clock; on a GPU, by the clock."""
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


def compare(name, commands, repeats, by_clock):
    """Runs the commands of groups and of one network alternately, after once unmeasured. Prints the medians of their
    time for work and for the start, and the ratio of work. A command is made of the number of a run and of its work."""
    for command in commands:
        run(command(0, 1))
    works, starts = [], []
    for i in range(1, repeats + 1):
        times = [[spent(command(f"{i}-{work}", work), by_clock) for work in (1, 3)] for command in commands]
        works.append([more - less for less, more in times])
        starts.append([less - (more - less) / 2 for less, more in times])
    work = [statistics.median(column) for column in zip(*works)]
    start = [statistics.median(column) for column in zip(*starts)]
    ratios = sorted(groups / single for groups, single in works)
    print(f"{name}: groups {work[0]:.2f} s after a start of {start[0]:.2f} s, one network {work[1]:.2f} s after "
          f"{start[1]:.2f} s, ratio {statistics.median(ratios):.3f} ({ratios[0]:.3f} to {ratios[-1]:.3f})", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", default="build/fedsmooth")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--model", default="small")
    parser.add_argument("--method", default="smoothadv")
    parser.add_argument("--groups", type=int, default=20)
    parser.add_argument("--clients", type=int, default=5, help="clients of a group in a round")
    parser.add_argument("--rounds", type=int, default=1, help="rounds of the shorter training")
    parser.add_argument("--steps", type=int, default=20, help="local steps of a client")
    parser.add_argument("--n", type=int, default=2000, help="copies of each of four images, at first")
    parser.add_argument("--repeats", type=int, default=5)
    o = parser.parse_args()
    by_clock = o.device == "cuda"
    common = ["--device", o.device, f"--threads={o.threads}", "--quiet"]
    with tempfile.TemporaryDirectory() as folder:
        experiment = pathlib.Path(folder, "groups.toml")
        experiment.write_text(f'data.name = "shapes"\nmodel.name = "{o.model}"\ntrain.method = "{o.method}"\n'
                              f"partition.clients = {50 * o.groups}\n")

        def train(groups):
            return lambda number, work: [
                o.program, "train", experiment, "--out", f"{folder}/{groups}-{number}", f"--groups.count={groups}",
                f"--train.clients_per_round={o.clients * o.groups // groups}", f"--train.rounds={work * o.rounds}",
                f"--train.local.steps={o.steps}", *common]

        def certify(trained, votes):
            return lambda number, work: [
                o.program, "certify", trained, "--certify.limit=4", f"--certify.n={work * votes * o.n}",
                f"--certify.n0={votes * 100}", "--out", f"{folder}/{votes}-{number}.tsv", *common]

        compare("training", (train(o.groups), train(1)), o.repeats, by_clock)
        trained = f"{folder}/{o.groups}-0"
        compare("votes", (certify(trained, 1), certify(f"{trained}/group-01", o.groups)), o.repeats, by_clock)


if __name__ == "__main__":
    main()

"""A campaign: a number of inputs, divided among the targets and some processes."""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from pathlib import Path

from reliability.fuzz import files, records, sql
from reliability.fuzz.harness import Finding, Tally, Target, drawn, run

TARGETS = {target.name: target for target in (*sql.targets(), *records.targets(), *files.targets())}

Part = tuple[str, Tally, list[Finding]]  # a target's name, what it got, and what was found


def main() -> int:
    """Return 0 if every input was accepted or refused with a code; otherwise print the findings and return 1."""
    asked = _arguments()
    if asked.only is not None:
        return _one(TARGETS[asked.targets[0]], asked.only)
    began = time.perf_counter()
    chosen = [TARGETS[name] for name in asked.targets or TARGETS]
    done = [
        part
        for target in chosen
        for part in in_processes(
            run_part,
            target.name,
            parts(target, chosen, asked.inputs, asked.workers, asked.first),
            asked.workers,
        )
    ]
    tallies = {target.name: Tally() for target in chosen}
    for name, tally, _ in done:
        _add(tallies[name], tally)
    findings = [finding for _, _, found in done for finding in found]
    _show(findings)
    for name, tally in tallies.items():
        print(f"{name:12} {tally.inputs:8,} inputs, {tally.refused:8,} refused, slowest {tally.slowest:.2f} s")
    total = sum(tally.inputs for tally in tallies.values())
    print(f"{total:,} inputs, {len(findings)} crashed, hung or without a code; {time.perf_counter() - began:.0f} s")
    return 1 if findings else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m reliability.fuzz")
    parser.add_argument("targets", nargs="*", help=f"of {', '.join(TARGETS)}; default: all", metavar="TARGET")
    parser.add_argument("--inputs", type=int, default=100_000, help="in all")
    parser.add_argument("--first", type=int, default=0, help="the number of the first input of each target")
    parser.add_argument("--only", type=int, help="this input alone, shown")
    parser.add_argument("--workers", type=int, default=2)
    asked = parser.parse_args()
    unknown = [name for name in asked.targets if name not in TARGETS]
    if unknown or (asked.only is not None and len(asked.targets) != 1):
        parser.error(f"no such target: {', '.join(unknown)}" if unknown else "--only goes with one target")
    return asked


def parts(target: Target, chosen: Sequence[Target], inputs: int, workers: int, first: int) -> list[tuple[int, int]]:
    """Return the inputs of a target, from number to number, in parts that the processes take in turn."""
    count = -(-inputs * target.share // sum(one.share for one in chosen))
    size = max(1, -(-count // (4 * workers)))
    return [(first + n, first + min(n + size, count)) for n in range(0, count, size)]


def in_processes(
    feed: Callable[[str, int, int, str], Part], name: str, work: Iterable[tuple[int, int]], workers: int
) -> list[Part]:
    """Return what processes of their own found for a target. If one of them dies, its input is a finding."""
    with tempfile.TemporaryDirectory() as marks, ProcessPoolExecutor(workers, get_context("spawn")) as pool:
        running = [pool.submit(feed, name, *part, marks) for part in work]
        try:
            return [part.result() for part in running]
        except BrokenProcessPool:
            numbers = sorted(int(mark.read_text()) for mark in Path(marks).iterdir() if mark.stat().st_size)
            what = f"one of the inputs {', '.join(map(str, numbers))} ended its process"
            return [(name, Tally(), [Finding(name, numbers[0], what, "See each of them with --only.")])]


def run_part(name: str, first: int, end: int, marks: str) -> Part:
    """Feed some inputs of a target; a file in ``marks`` has the number of the one under way."""
    tally, findings, mark = Tally(), list[Finding](), Path(marks, str(os.getpid()))
    for number in range(first, end):
        mark.write_text(str(number))
        findings.extend(run(TARGETS[name], [number], tally))
    mark.write_text("")
    return name, tally, findings


def _add(tally: Tally, part: Tally) -> None:
    tally.inputs += part.inputs
    tally.refused += part.refused
    tally.slowest = max(tally.slowest, part.slowest)


def _show(findings: Iterable[Finding]) -> None:
    """Print one finding of each kind, and how many there are of it."""
    alike: dict[tuple[str, str], list[Finding]] = {}
    for finding in findings:
        where = [line for line in finding.what.splitlines() if line.startswith("  File ")]
        alike.setdefault((finding.target, "".join(where[-1:])), []).append(finding)
    for found in alike.values():
        print(f"\n{found[0].target} {found[0].number} and {len(found) - 1} more: {found[0].what}\n  {found[0].input}")


def _one(target: Target, number: int) -> int:
    print(repr(drawn(target, number)))
    found = list(run(target, [number], Tally()))
    print(*(finding.what for finding in found), sep="\n")
    return 1 if found else 0

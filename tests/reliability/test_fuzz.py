"""The fuzzer: its input passes, and it finds planted faults."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from reliability.fuzz.campaign import TARGETS, Part, in_processes, parts
from reliability.fuzz.harness import Finding, Tally, Target, drawn, run
from rowtime.core.errors import Problem, refuse

INPUTS = 25  # of each target here; `make fuzz` runs 100,000 in all


@pytest.mark.parametrize("name", sorted(TARGETS))
def test_random_input_is_accepted_or_refused_with_a_code(name: str) -> None:
    tally = Tally()
    found = list(run(TARGETS[name], range(INPUTS), tally))
    assert found == []
    assert tally.inputs == INPUTS


@pytest.mark.parametrize("name", sorted(set(TARGETS) - {"words"}))
def test_some_input_is_accepted_and_some_refused(name: str) -> None:
    tally = Tally()
    numbers = iter(range(1000))
    while not 0 < tally.refused < tally.inputs:
        assert list(run(TARGETS[name], [next(numbers)], tally)) == []


def fed(feed: Callable[[Any], Iterator[Problem]]) -> list[Finding]:
    return list(run(Target("planted", 1, lambda random_: random_.random(), feed), [7], Tally(), seconds=0.2))


def crashes(_: Any) -> Iterator[Problem]:
    raise KeyError("columns")


def hangs(_: Any) -> Iterator[Problem]:
    while True:
        try:
            time.sleep(0.001)
        except Exception:  # noqa: BLE001, S112 - what swallows everything hangs nevertheless
            continue


def has_no_code(_: Any) -> Iterator[Problem]:
    yield Problem("", "something is wrong")


def refuses(_: Any) -> Iterator[Problem]:
    raise refuse("R101", "no")


@pytest.mark.parametrize(
    ("feed", "what"), [(crashes, "KeyError: 'columns'"), (hangs, "more than 0.2 s"), (has_no_code, "without a code")]
)
def test_unexpected_errors_are_found(feed: Callable[[Any], Iterator[Problem]], what: str) -> None:
    (found,) = fed(feed)
    assert what in found.what
    assert found.input == repr(drawn(Target("planted", 1, random.Random.random, feed), found.number))


def test_a_refusal_with_a_code_is_expected() -> None:
    assert fed(refuses) == []


def test_the_parts_of_a_campaign_are_all_its_inputs_once() -> None:
    targets = list(TARGETS.values())
    for target in targets:
        numbers = [n for first, end in parts(target, targets, 1000, 3, first=50) for n in range(first, end)]
        assert numbers == list(range(50, 50 + -(-1000 * target.share // sum(one.share for one in targets))))


def dies_at_seven(name: str, first: int, end: int, marks: str) -> Part:
    for number in range(first, end):
        Path(marks, str(os.getpid())).write_text(str(number))
        if number == 7:
            os.abort()
    return name, Tally(end - first), []


def test_an_input_that_ends_its_process_is_found() -> None:
    assert [tally.inputs for _, tally, _ in in_processes(dies_at_seven, "planted", [(8, 10), (0, 3)], 1)] == [2, 3]
    [(_, _, [found])] = in_processes(dies_at_seven, "planted", [(0, 3), (5, 9)], 1)
    assert (found.number, found.what) == (7, "one of the inputs 7 ended its process")

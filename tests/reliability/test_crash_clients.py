"""The crash harness finds rows of a client that a stream log has lost, changed or stored twice."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

import rowtime as rt
from reliability.crash.client import Call, calls, first_missing, held
from reliability.crash.reader import Reader
from reliability.crash.writers import Client

COUNT = 6


def client_of(folder: Path, order: Sequence[int]) -> Client:
    """A client that got an answer to all calls but the last, over a log that holds the calls of these numbers."""
    Reader(0, folder).make()
    made = calls(3, COUNT)
    client = Client(folder / "home", "w1", made, seed=3)
    at = 0
    for turn, call in enumerate(made[:-1]):
        client.acknowledged[turn] = at
        at += call.size
    with rt.writer("a", home=client.home, writer="w1") as log:
        for turn in order:
            made[turn].make(log)
    return client


@pytest.mark.parametrize("order", [range(COUNT), range(COUNT + 1)], ids=["without the last", "all"])
def test_calls_that_returned_once_are_right(order: Sequence[int], tmp_path: Path) -> None:
    assert client_of(tmp_path, order).wrong() == []


@pytest.mark.parametrize(
    "order",
    [[0, 1, 2, 4, 5], [0, 1, 3, 2, 4, 5], [0, 1, 1, 2, 3, 4, 5], [0, 1, 2, 3, 4, 4, 5], [0, 1, 2, 3, 4, 5, 5]],
    ids=["lost", "out of order", "twice", "twice later on", "twice at the end"],
)
def test_lost_and_repeated_calls_are_found(order: Sequence[int], tmp_path: Path) -> None:
    assert len(client_of(tmp_path, order).wrong()) == 1


def test_what_a_client_made_again_without_asking_may_be_there_twice(tmp_path: Path) -> None:
    client = client_of(tmp_path, [*range(COUNT), COUNT - 1])
    client.again.add(COUNT - 1)
    assert client.wrong() == []


def test_the_log_holds_the_calls_as_they_were_made(tmp_path: Path) -> None:
    client = client_of(tmp_path, range(COUNT + 1))
    assert [call for _, call in held(client.home, "w1")] == calls(3, COUNT)


def test_a_client_that_asks_makes_the_call_that_is_missing() -> None:
    made = [Call(rows=((0, 1), (1, 2))), Call(rows=((2, 3), (3, 4), (4, 5))), Call(bound=9)]
    assert first_missing(made, 1, 2, 2) == 1
    assert first_missing(made, 1, 2, 5) == 2
    with pytest.raises(AssertionError, match="position 4"):
        first_missing(made, 1, 2, 4)

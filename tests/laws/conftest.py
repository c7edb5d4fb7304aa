"""Settings for all laws."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from zlib import crc32

import pytest

from rowtime.runtime.engine import Engine
from rowtime.runtime.executors.executor import InProcess
from rowtime.runtime.executors.tasks import Tasks
from rowtime.state import journal
from rowtime.testing import runner


@pytest.fixture(scope="session", autouse=True)
def _entries_are_large() -> Iterator[None]:
    """Treat small journal entries as large ones, so that the laws also test bases and differences."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(journal, "LARGE", 1_000)
        yield


@pytest.fixture(autouse=True)
def _ticks_go_several_ways(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compute all ticks on the driver, all by Spark, or in turn, depending on the test's name: results are the same."""
    if {"both_ways", "sent"} & {*request.fixturenames}:
        return
    way, running = crc32(request.node.nodeid.encode()) % 3, Engine._running
    way = 2 if "by_spark" in request.fixturenames else way

    def chosen(engine: Engine, *given: Any) -> Any:
        found = running(engine, *given)
        found.local = found.local and (not way or (way == 1 and found.number % 2 == 0))
        return found

    monkeypatch.setattr(Engine, "_running", chosen)


@pytest.fixture
def by_spark() -> None:
    """Spark computes all ticks of the test."""


@pytest.fixture
def sent(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> list[Tasks]:
    """Every engine of the test sends its ticks, in so many parts as the fixture's parameter says."""
    tasks: list[Tasks] = []

    parts = request.param if hasattr(request, "param") else 1

    def engine(*given: Any, **named: Any) -> Engine:
        tasks.append(Tasks(InProcess(parts)))
        return Engine(*given, **(named | {"tasks": tasks[-1]}))

    monkeypatch.setattr(runner, "Engine", engine)
    return tasks

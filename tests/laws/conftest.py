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
from tests.ways import in_tasks


@pytest.fixture(scope="session", autouse=True)
def _entries_are_large() -> Iterator[None]:
    """Treat small journal entries as large ones, so that the laws also test bases and differences."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(journal, "LARGE", 1_000)
        yield


@pytest.fixture(autouse=True)
def _ticks_go_several_ways(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compute all ticks on the driver, in one task or in two, depending on the test's name: results are the same."""
    if not {"both_ways", "sent"} & {*request.fixturenames} and (parts := crc32(request.node.nodeid.encode()) % 3):
        in_tasks(monkeypatch, parts)


@pytest.fixture
def sent(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> list[Tasks]:
    """Every engine of the test sends its ticks, in so many parts as the fixture's parameter says, or as it does."""
    tasks: list[Tasks] = []

    given = request.param if hasattr(request, "param") else 1
    executor = given() if isinstance(given, type) else given if isinstance(given, InProcess) else InProcess(given)

    def engine(*given: Any, **named: Any) -> Engine:
        tasks.append(Tasks(executor))
        return Engine(*given, **(named | {"tasks": tasks[-1]}))

    monkeypatch.setattr(runner, "Engine", engine)
    return tasks

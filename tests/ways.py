"""Where the ticks of a test are computed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rowtime.runtime.engine import Engine
from rowtime.runtime.executors.executor import Executor, InProcess, SparkJob
from rowtime.runtime.executors.steps import no_tap
from rowtime.runtime.executors.tasks import Tasks

if TYPE_CHECKING:
    import pytest


def in_tasks(monkeypatch: pytest.MonkeyPatch, parts: int) -> None:
    """Let every engine send its ticks as to tasks of Spark, in so many parts, which this process computes."""
    _sent(monkeypatch, InProcess(parts))


def in_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let tasks of Spark compute the ticks of every engine, and write its files."""
    _sent(monkeypatch, SparkJob())


def _sent(monkeypatch: pytest.MonkeyPatch, executor: Executor) -> None:
    computed = Engine._computed

    def sent(engine: Engine, *given: Any) -> Any:
        if engine.tasks is None and engine.tap is no_tap:  # a trace computes in its own process
            engine.tasks = Tasks(executor).over(engine.sources.values())
        return computed(engine, *given)

    monkeypatch.setattr(Engine, "_computed", sent)

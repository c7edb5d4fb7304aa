"""Delivery of a tick's rows to sinks: in one thread, except Delta tables in stores, which get theirs in parallel."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from threading import Barrier, current_thread, main_thread
from types import SimpleNamespace
from typing import Any

import pytest

from rowtime.runtime import handing_over
from rowtime.runtime.handing_over import HandingOver

PATIENCE = 10  # seconds


@dataclass
class Stage:
    """``table``: its table in a store, if it has one; the sink calls ``takes`` with the rows."""

    table: str
    takes: Callable[[str], None]

    def publish(self, _spark: object, node: Any, _tick: int, _staged: object) -> None:
        self.takes(node.name)


@pytest.fixture(autouse=True)
def _tables_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handing_over, "_apart", lambda stage: stage.table)


def publish(folder: Path, stages: dict[str, Stage], *, without: tuple[str, ...] = ()) -> None:
    nodes = [SimpleNamespace(name=name, options=(), format="delta") for name in stages]
    entry = {"tick": 3, "outputs": {name: {"count": 1} for name in stages if name not in without}}
    given: Any = (None, SimpleNamespace(folder=folder), stages, nodes)
    HandingOver(*given).publish(entry)


@pytest.mark.parametrize("table", ["", "s3://bucket/one"])
def test_one_table_in_a_store_or_none_needs_no_other_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, table: str
) -> None:
    monkeypatch.setattr(handing_over, "ThreadPoolExecutor", None)
    took: list[str] = []
    publish(tmp_path, {name: Stage(table, took.append) for name in "abc"}, without=("b",))
    assert took == ["a", "c"]
    publish(tmp_path, {"a": Stage(table, took.append)}, without=("a",))
    assert took == ["a", "c"]


def test_tables_in_stores_get_their_rows_concurrently_and_others_in_sequence(tmp_path: Path) -> None:
    together, took = Barrier(3), list[str]()

    def waits(name: str) -> None:
        together.wait(PATIENCE)
        took.append(name)

    def here(name: str) -> None:
        assert current_thread() is main_thread()
        waits(name) if name == "d" else took.append(name)

    tables = {name: Stage(f"s3://bucket/{name}", waits) for name in "ab"}
    publish(tmp_path, {**tables, **{name: Stage("", here) for name in "cde"}})
    assert sorted(took) == [*"abcde"]
    assert [name for name in took if name in "cde"] == [*"cde"]


@pytest.mark.parametrize("failing", ["a", "b", "c"])
def test_a_table_that_fails_does_not_stop_others(tmp_path: Path, failing: str) -> None:
    took: list[str] = []

    def takes(name: str) -> None:
        if name == failing:
            raise ValueError(name)
        took.append(name)

    stages = {name: Stage(f"s3://bucket/{name}" if name != "c" else "", takes) for name in "abc"}
    with pytest.raises(ValueError, match=failing):
        publish(tmp_path, stages)
    assert sorted(took) == sorted({*"abc"} - {failing})

"""Large journals: 100,000 ticks and 10,000 writers. Each view takes less than a second of the console's own time."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rowtime.web.records import MOST, NEWEST, Records, _by_halves, _chosen
from tests.web.conftest import address
from tests.web.generated import Made

if TYPE_CHECKING:
    from starlette.testclient import TestClient

VIEWS = (
    *("graph", "graph.json", "box?box=readings", "held.json?box=sorted", "timeline", "timeline.json"),
    *("timeline.json?tick={old}", "waiting", "rows", "ticks", "durations.json", "rows.json"),
)


def spent(client: TestClient, path: str) -> float:
    """Processor seconds for one answer, without other programs on the machine."""
    began = time.process_time()
    answer = client.get(path)
    assert answer.status_code == 200, answer.text
    return time.process_time() - began


@pytest.mark.slow
@pytest.mark.parametrize(("ticks", "writers"), [(100_000, 3), (127, 10_000)])
def test_no_view_takes_a_second(console: Callable[..., TestClient], home: Path, ticks: int, writers: int) -> None:
    Made(home / "checkpoints" / "large", ticks=ticks, writers=writers, stuck=None).make()
    client = console()
    assert spent(client, "/") < 1
    place = address(client, "large")
    client.get(f"{place}/rows")  # loads Spark's classes, once
    old = ticks // 3 // 32 * 32
    for _ in range(2):
        took = {view: spent(client, f"{place}/{view.format(old=old)}") for view in VIEWS}
        assert max(took.values()) < 1, took


def test_a_long_journal_is_read_little_by_little_and_the_newest_first(tmp_path: Path) -> None:
    records = Records(Made(tmp_path / "home" / "long", ticks=2_000, stuck=None).make())
    records.refresh(budget=0.0)
    assert [moment.tick for moment in records.moments] == [1_999]
    rounds = 0
    while records.read < records.wanted:
        records.refresh(budget=0.05)
        rounds += 1
    assert rounds > 1
    assert [moment.tick for moment in records.moments] == [*range(2_000)]


def test_the_newest_entries_of_a_long_journal_are_read_and_others_evenly() -> None:
    chosen = _chosen(range(100_000))
    assert len(chosen) <= MOST + NEWEST
    assert chosen[-NEWEST:] == [*range(100_000 - NEWEST, 100_000)]
    gaps = {after - before for before, after in pairwise(chosen[:-NEWEST])}
    assert len(gaps) == 1


def test_gaps_are_halved_wherever_reading_stops() -> None:
    order = [*_by_halves(range(64))]
    assert sorted(order) == [*range(64)]
    for read in (2, 4, 8, 16, 32):
        assert sorted(order[:read]) == [*range(0, 64, 64 // read)]


@pytest.fixture
def pruned(tmp_path: Path) -> Records:
    made = Made(tmp_path / "home" / "pruned", ticks=20, stuck=None)
    records = Records(made.make())
    records.refresh(budget=60)
    for tick in range(10):
        (made.folder / "journal" / f"{tick:012d}.json").unlink()
    made.put(20)
    records.refresh(budget=60)
    return records


def test_moments_stay_when_the_driver_removes_their_entries(pruned: Records) -> None:
    assert [moment.tick for moment in pruned.moments] == [*range(21)]
    assert pruned.entry_at(5) is None
    assert pruned.entry_at(15) is not None

"""The cluster harness finds differences from local mode, and ends the processes that it has started."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from reliability.cluster import processes
from reliability.cluster.campaign import _differences
from reliability.cluster.processes import Cluster
from reliability.crash.cases import Case
from reliability.crash.inside import Tally

STATES = [{"log": [], "adds up": True}, {"log": ["a"], "adds up": True}]


def compared(folder: Path, states: Sequence[Any], master: str = "spark://127.0.0.1:1") -> tuple[Counter[str], Tally]:
    counts, tally = Counter[str](), Tally()
    places = folder / "local-0", folder / "shared-0"
    for place, found in zip(places, (STATES, states), strict=True):
        place.with_suffix(".json").write_text(
            json.dumps({"states": found, "failures": [], "master": master, "tasks": {}})
        )
    _differences(Case(0, places[1]), *places, counts, tally)
    return counts, tally


def test_equal_pipelines_are_counted(tmp_path: Path) -> None:
    counts, tally = compared(tmp_path, STATES)
    assert (counts["pipelines"], counts["ticks"], tally.losses) == (1, 1, [])


@pytest.mark.parametrize(
    ("states", "master"),
    [
        ([STATES[0], {"log": ["a", "a"], "adds up": True}], "spark://127.0.0.1:1"),
        (STATES[:1], "spark://127.0.0.1:1"),
        ([STATES[0], {"log": ["a"], "adds up": False, "totals": {}}], "spark://127.0.0.1:1"),
        (STATES, "local[*]"),
    ],
    ids=["a row twice", "a tick less", "a ledger that does not add up", "not on the cluster"],
)
def test_differences_are_reported(tmp_path: Path, states: Sequence[Any], master: str) -> None:
    assert compared(tmp_path, states, master)[1].losses


def test_a_pipeline_that_did_not_end_is_reported(tmp_path: Path) -> None:
    tally = Tally()
    _differences(Case(0, tmp_path / "shared-0"), tmp_path / "local-0", tmp_path / "shared-0", Counter(), tally)
    assert tally.losses


@pytest.mark.slow
def test_nothing_is_left_of_a_cluster(tmp_path: Path) -> None:
    with Cluster(tmp_path, 2) as cluster:
        sessions = set(cluster._sessions)
        assert len(sessions) == 3
        cluster.kill_worker(0)
        assert len(alive(sessions)) == 2
        cluster.revive()
        sessions |= set(cluster._sessions)
        assert len(alive(sessions)) == 3
    assert alive(sessions) == set()


def alive(sessions: set[int]) -> set[int]:
    """The sessions with a live process; a starting process has several."""
    return {session for _, session, lives in processes._processes().values() if session in sessions and lives}

"""Files that a journal entry names are durable, with their names, before the entry exists."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import rowtime as rt
from rowtime.state import files
from rowtime.state.journal import Journal

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCRIPT = """
CREATE STREAM taken (seen TIMESTAMP, shop STRING, cents BIGINT);
CREATE STREAM totals (minute TIMESTAMP, shop STRING, cents BIGINT) USING parquet OPTIONS (path '{out}');
CREATE STREAM copies (shop STRING, cents BIGINT) USING csv OPTIONS (path '{copies}');
CREATE VIEW sorted AS SELECT STREAM seen AS ROWTIME, shop, cents FROM taken ORDER BY seen WITHIN INTERVAL '10' SECOND;
CREATE PUMP sums AS INSERT INTO totals
  SELECT STREAM FLOOR(s.ROWTIME TO MINUTE) AS minute, shop, SUM(cents) AS cents
  FROM sorted AS s GROUP BY FLOOR(s.ROWTIME TO MINUTE), shop;
CREATE PUMP all_of_them AS INSERT INTO copies SELECT STREAM shop, cents FROM sorted;
"""


class Machine:
    """Notes what would survive the loss of power: contents and names that were synced."""

    def __init__(self, patch: pytest.MonkeyPatch, checkpoint: Path) -> None:
        self.durable: set[str] = set()
        self.lost: list[str] = []
        self.entries = 0
        sync, commit = os.fsync, Journal.commit

        def synced(handle: Any) -> None:
            path = Path(f"/proc/self/fd/{handle if isinstance(handle, int) else handle.fileno()}").readlink()
            sync(handle)
            self.durable |= {str(inside) for inside in path.iterdir()} if path.is_dir() else {f"{path} content"}

        def committed(journal: Journal, tick: int, entry: dict[str, Any]) -> None:
            self.entries += 1
            for path in _named(entry, checkpoint):
                if str(path) not in self.durable or f"{path} content" not in self.durable:
                    self.lost.append(str(path))
            commit(journal, tick, entry)

        patch.setattr(os, "fsync", synced)
        patch.setattr(Journal, "commit", committed)


def _named(entry: dict[str, Any], checkpoint: Path) -> set[Path]:
    paths = {checkpoint / row[0] for rows in entry["segments"].values() for row in rows}
    paths |= {checkpoint / path for paths in entry.get("refused", {}).values() for path in paths}
    return paths | {
        checkpoint / staged["folder"] / path for staged in entry["outputs"].values() for path, _ in staged["files"]
    }


def run(spark: SparkSession, folder: Path) -> None:
    pipeline = rt.Pipeline(spark, home=folder / "home").sql(SCRIPT.format(out=folder / "out", copies=folder / "copies"))
    pipeline.run_available(folder / "checkpoint")  # defines the streams
    for tick in range(4):
        rows = [{"seen": f"2026-01-01 10:{tick:02}:{n:02}", "shop": "ab"[n % 2], "cents": n} for n in range(0, 60, 20)]
        late = [{"seen": "2026-01-01 09:00:00", "shop": "late", "cents": 1}] if tick == 2 else []
        with rt.writer("taken", home=folder / "home") as writer:
            writer.insert([*rows, *late])
        pipeline.run_available(folder / "checkpoint")


def test_what_an_entry_names_is_durable_before_it(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = Machine(monkeypatch, tmp_path / "checkpoint")
    run(spark, tmp_path)
    assert machine.lost == []
    assert machine.entries >= 4


@pytest.mark.parametrize("fault", ["nothing is awaited", "no folder is synced"])
def test_a_planted_fault_is_found(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    machine = Machine(monkeypatch, tmp_path / "checkpoint")
    if fault == "nothing is awaited":
        monkeypatch.setattr(files._SYNCS, "begin", lambda *_: None)
    else:
        monkeypatch.setattr(files, "sync", lambda _: None)
    run(spark, tmp_path)
    assert machine.lost


def test_a_file_that_cannot_be_synced_is_in_no_entry(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(spark, tmp_path)
    before = sorted((tmp_path / "checkpoint" / "journal").iterdir())
    sync: Callable[[Any], None] = os.fsync

    def fails(handle: Any) -> None:
        found = Path(f"/proc/self/fd/{handle if isinstance(handle, int) else handle.fileno()}").readlink()
        if "state" in found.parts and found.suffix == ".parquet":
            raise OSError(errno.EIO, os.strerror(errno.EIO), str(found))
        sync(handle)

    with rt.writer("taken", home=tmp_path / "home") as writer:
        writer.insert([{"seen": "2026-01-01 10:09:00", "shop": "a", "cents": 5}])
    pipeline = rt.Pipeline(spark, home=tmp_path / "home")
    pipeline.sql(SCRIPT.format(out=tmp_path / "out", copies=tmp_path / "copies"))
    monkeypatch.setattr(os, "fsync", fails)
    with pytest.raises((OSError, rt.RowtimeError)):
        pipeline.run_available(tmp_path / "checkpoint")
    assert sorted((tmp_path / "checkpoint" / "journal").iterdir()) == before


def test_work_below_another_folder_is_not_awaited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine, others = tmp_path / "a", tmp_path / "ab"
    for folder in (mine, others):
        folder.mkdir()
        (folder / "file").write_bytes(b"x")
    seen: list[str] = []
    sync = os.fsync

    def fails(handle: int) -> None:
        found = Path(f"/proc/self/fd/{handle}").readlink()
        seen.append(found.name)
        if found.parent == others:
            raise OSError(errno.EIO, "broken")
        sync(handle)

    monkeypatch.setattr(os, "fsync", fails)
    files.begin_to_sync(others / "file")
    files.begin_to_sync(mine / "file")
    files.arrived(mine)
    assert "a" in seen, "its names"
    with pytest.raises(OSError, match="broken"):
        files.arrived(others)
    files.arrived(others)

"""Compaction of small files of a Delta table keeps the rows and their order, whatever others do meanwhile."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, Field, write_deltalake
from deltalake import Schema as DeltaSchema
from deltalake.schema import PrimitiveType

from rowtime.runtime.sinks import delta_compaction
from rowtime.runtime.sinks.delta_compaction import LOG, compacted, spare
from rowtime.runtime.sinks.delta_files import whole
from rowtime.runtime.sinks.lake import Conflict
from tests.lakes.foreign_tables import change_log, readers, vector_of_the_first_row

NAMES = ("a", "x y%?", "ä/=", None)


def rows_of(at: int) -> pa.Table:
    return pa.table({"k": NAMES, "day": [date(2026, 1, 1 + at % 2)] * len(NAMES), "v": [at * 10 + n for n in range(4)]})


def filled(folder: Path, times: int = 4, **how: object) -> DeltaTable:
    for at in range(times):
        write_deltalake(str(folder), rows_of(at), mode="append", **how)  # type: ignore[arg-type]
    return DeltaTable(str(folder))


def content(folder: Path) -> list[tuple[object, ...]]:
    found = DeltaTable(str(folder)).to_pyarrow_table()
    columns = [found[name].to_pylist() for name in sorted(found.column_names)]
    return sorted(zip(*columns, strict=True), key=repr)


def log(folder: Path) -> list[dict[str, dict[str, object]]]:
    newest = max((folder / LOG).glob("*.json"))
    return [json.loads(line) for line in newest.read_text().splitlines()]


def test_files_of_a_partition_become_one_and_rows_stay_in_their_order(tmp_path: Path) -> None:
    table = filled(tmp_path, 6, partition_by=["k", "day"])
    before = content(tmp_path)
    assert spare(table) == 24
    assert compacted(table, tmp_path) == 24
    assert content(tmp_path) == before
    after = DeltaTable(str(tmp_path))
    assert spare(after) == compacted(after, tmp_path) == 0
    files = [Path(one) for one in DeltaTable(str(tmp_path)).to_pyarrow_dataset().files]
    assert len(files) == 8, "a file for each partition"
    assert [pq.read_table(tmp_path / one)["v"].to_pylist() for one in files if one.parts[0] == "k=a"] in (
        [[0, 20, 40], [10, 30, 50]],
        [[10, 30, 50], [0, 20, 40]],
    )
    assert not any(action.get(kind, {}).get("dataChange") for action in log(tmp_path) for kind in ("add", "remove"))


def test_columns_that_came_later_are_null_in_the_rows_before_them(tmp_path: Path) -> None:
    filled(tmp_path, 2)
    later = rows_of(2).append_column("w", pa.array([15, None, 25, None]))
    write_deltalake(str(tmp_path), later, mode="append", schema_mode="merge")
    before = content(tmp_path)
    assert compacted(DeltaTable(str(tmp_path)), tmp_path) == 3
    assert content(tmp_path) == before
    [add] = [action["add"] for action in log(tmp_path) if "add" in action]
    known = json.loads(str(add["stats"]))
    assert (known["numRecords"], known["maxValues"]["v"], known["nullCount"]["w"]) == (12, 23, 10)


def test_large_files_and_those_of_tables_that_were_cloned_stay(tmp_path: Path) -> None:
    table = filled(tmp_path / "t", 3, configuration={"delta.targetFileSize": "1"})
    assert spare(table) == compacted(table, tmp_path / "t") == 0
    filled(tmp_path / "elsewhere")
    entry = tmp_path / "elsewhere" / LOG / f"{1:020}.json"
    entry.write_text(entry.read_text().replace('"path":"', f'"path":"file://{tmp_path}/elsewhere/'))
    assert spare(DeltaTable(str(tmp_path / "elsewhere"))) == 3


@pytest.mark.parametrize("features", [("deletionVectors",), ("deletionVectors", "vacuumProtocolCheck")])
def test_a_table_with_rows_that_are_marked_as_deleted_stays(tmp_path: Path, features: tuple[str, ...]) -> None:
    filled(tmp_path, 3)
    change_log(tmp_path, "protocol", readers("deletionVectors"))
    assert spare(DeltaTable(str(tmp_path))) == 3
    change_log(tmp_path, "protocol", readers(*features))
    change_log(tmp_path, "add", vector_of_the_first_row())
    table = DeltaTable(str(tmp_path))
    assert spare(table) == compacted(table, tmp_path) == 0


def test_files_whose_rows_do_not_fit_the_columns_stay(tmp_path: Path) -> None:
    table = filled(tmp_path, 3)
    [first, *_] = sorted(tmp_path.glob("*.parquet"))
    pq.write_table(rows_of(0).set_column(2, "v", pa.array(["a", "b", "c", "d"])), first)
    assert compacted(table, tmp_path) == 0
    assert table.version() == DeltaTable(str(tmp_path)).version()
    assert len(list(tmp_path.glob("*.parquet"))) == 3, "nothing is left behind"


def test_a_file_with_fewer_rows_than_the_log_says_is_an_error(tmp_path: Path) -> None:
    table = filled(tmp_path, 3)
    [first, *_] = sorted(tmp_path.glob("*.parquet"))
    pq.write_table(rows_of(0).slice(0, 2), first)
    with pytest.raises(OSError, match="was to have 4 rows, and has 2"):
        compacted(table, tmp_path)
    assert len(list(tmp_path.glob("*.parquet"))) == 3


@pytest.mark.parametrize("theirs", ["of rowtime", "of deltalake"])
def test_of_two_compactions_at_once_one_gives_up(tmp_path: Path, theirs: str) -> None:
    table = filled(tmp_path, 4, partition_by=["k"])
    before, other = content(tmp_path), DeltaTable(str(tmp_path))
    assert (compacted(other, tmp_path) if theirs == "of rowtime" else other.optimize.compact()["numFilesRemoved"]) == 16
    there = sorted(tmp_path.rglob("*.parquet"))
    with pytest.raises(Conflict):
        compacted(table, tmp_path)
    assert content(tmp_path) == before, "no row is there twice"
    assert sorted(tmp_path.rglob("*.parquet")) == there, "nothing is left behind"
    table.update_incremental()
    assert compacted(table, tmp_path) == 0


def test_rows_that_others_add_or_change_meanwhile_are_kept(tmp_path: Path) -> None:
    table = filled(tmp_path, 3)
    write_deltalake(str(tmp_path), rows_of(7), mode="append")
    write_deltalake(str(tmp_path), rows_of(8), mode="append")
    before = content(tmp_path)
    assert compacted(table, tmp_path) == 3
    assert content(tmp_path) == before
    assert len(DeltaTable(str(tmp_path)).file_uris()) == 3
    table = DeltaTable(str(tmp_path))
    table.delete("v = 71")
    late = DeltaTable(str(tmp_path))
    late.load_as_version(late.version() - 1)
    after = content(tmp_path)
    with pytest.raises(Conflict):
        compacted(late, tmp_path)
    assert content(tmp_path) == after
    assert len(after) == len(before) - 1


def test_a_table_whose_columns_others_change_meanwhile_stays_as_it_is(tmp_path: Path) -> None:
    table = filled(tmp_path, 3)
    DeltaTable(str(tmp_path)).alter.add_columns([Field("w", PrimitiveType("long"))])
    assert isinstance(DeltaTable(str(tmp_path)).schema(), DeltaSchema)
    with pytest.raises(Conflict):
        compacted(table, tmp_path)
    assert len(list(tmp_path.glob("*.parquet"))) == 3


def test_a_writer_that_is_always_slower_gives_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = filled(tmp_path, 3)
    real = delta_compaction.write_new

    def slower(path: Path, data: bytes) -> None:
        write_deltalake(str(tmp_path), rows_of(9), mode="append")
        real(path, data)

    monkeypatch.setattr(delta_compaction, "write_new", slower)
    monkeypatch.setattr(delta_compaction, "_TRIES", 3)
    with pytest.raises(Conflict):
        compacted(table, tmp_path)
    assert len(list(tmp_path.glob("*.parquet"))) == 6


def test_new_files_stay_if_the_log_may_have_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table, real = filled(tmp_path, 3), delta_compaction.write_new
    before = content(tmp_path)

    def unsure(path: Path, data: bytes) -> None:
        real(path, data)
        raise OSError("the answer is lost")

    monkeypatch.setattr(delta_compaction, "write_new", unsure)
    with pytest.raises(OSError, match="lost"):
        compacted(table, tmp_path)
    assert content(tmp_path) == before
    assert len(DeltaTable(str(tmp_path)).file_uris()) == 1


def test_a_compaction_writes_the_checkpoint_of_the_log_if_it_is_due(tmp_path: Path) -> None:
    table = filled(tmp_path, 4, configuration={"delta.checkpointInterval": "5"})
    assert table.version() == 3
    assert not (tmp_path / LOG / "_last_checkpoint").exists()
    compacted(table, tmp_path)
    assert json.loads((tmp_path / LOG / "_last_checkpoint").read_text())["version"] == 4
    assert len(content(tmp_path)) == 16


def test_all_rows_are_those_that_deltalake_reads(tmp_path: Path) -> None:
    """Also for partition columns, which only the folders have, and for files without columns that were added later."""
    moment = datetime(2026, 1, 1, 12, 0, 0, 5, UTC)
    rows = pa.table(
        {
            "s": NAMES,
            "d": [date(2026, 1, 1), None, date(1, 1, 1), None],
            "t": pa.array([moment, None, moment, None], pa.timestamp("us", "UTC")),
            "x": pa.array([Decimal("1.50"), None, Decimal("2.25"), None], pa.decimal128(6, 2)),
            "b": [True, None, False, None],
            "v": [1, 2, 3, 4],
        }
    )
    write_deltalake(str(tmp_path), rows, partition_by=["s", "d", "t", "x", "b"])
    later = rows.append_column("w", pa.array([5, 6, 7, 8]))
    write_deltalake(str(tmp_path), later, mode="append", schema_mode="merge")
    table = DeltaTable(str(tmp_path))
    found, wanted = whole(table, tmp_path), table.to_pyarrow_table()
    assert found is not None
    assert sorted(found.to_pylist(), key=repr) == sorted(wanted.select(found.column_names).to_pylist(), key=repr)
    assert found.num_columns == 7

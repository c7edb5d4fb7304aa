"""Files that are appended to after they have been read: each part is read once, up to its last complete line."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import rowtime as rt
from rowtime.runtime.sources.file_list import end_of_lines
from rowtime.state.checkpoint import Checkpoint
from tests.deaths import Died, dying

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SQL = """
CREATE STREAM log (k STRING, n INT) USING {kind} OPTIONS (path '{at}/in', growing 'true'{more});
CREATE VIEW few AS SELECT STREAM k, n FROM log WHERE n <> 3;
CREATE STREAM o (k VARCHAR(8), n INT) USING json OPTIONS (path '{at}/o', rowtime.column '');
CREATE PUMP p AS INSERT INTO o SELECT STREAM k, n FROM few;
"""
HEADER = ", header 'true'"


def pipeline(spark: SparkSession, at: Path, kind: str, more: str = "") -> rt.Pipeline:
    return rt.Pipeline(spark, home=at / "home").sql(SQL.format(kind=kind, at=at, more=more))


def run(spark: SparkSession, at: Path, kind: str, more: str = "") -> rt.Query:
    return pipeline(spark, at, kind, more).run_available(at / "check")


def append(at: Path, name: str, data: bytes) -> Path:
    (at / "in").mkdir(exist_ok=True)
    with (at / "in" / name).open("ab") as file:
        file.write(data)
    return at / "in" / name


def written(at: Path) -> list[tuple[str, int]]:
    lines = [json.loads(line) for file in sorted((at / "o").glob("part-*")) for line in file.read_text().splitlines()]
    return [(line["k"], line["n"]) for line in lines]


def content(kind: str, count: int) -> tuple[bytes, list[tuple[str, int]]]:
    """A file with a number of rows, one of which is malformed, and the oracle: the rows that a pump gets."""
    rows = [(f"ä{n % 5}", n) for n in range(count)]
    lines = [f"{k},{n}" if kind == "csv" else json.dumps({"k": k, "n": n}, ensure_ascii=False) for k, n in rows]
    lines[7] = "x,no" if kind == "csv" else "no"
    return "".join(f"{line}\n" for line in lines).encode(), [row for row in rows if row[1] not in (3, 7)]


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "more"), [("csv", ""), ("csv", HEADER), ("json", "")])
def test_the_parts_of_a_file_give_the_rows_of_the_whole_file(
    spark: SparkSession, tmp_path: Path, kind: str, more: str
) -> None:
    """With any cut, also within a character and a line; each part is read by a new driver."""
    chance = random.Random(f"{kind}{more}")
    data, rows = content(kind, 20)
    data = b"k,n\n" + data if more else data
    cuts = [0, *sorted(chance.sample(range(1, len(data)), 4)), len(data)]
    for start, end in zip(cuts, cuts[1:], strict=False):
        append(tmp_path, f"a.{kind}", data[start:end])
        query = run(spark, tmp_path, kind, more)
        full = data[:end].count(b"\n") - bool(more)
        assert query.ledger.get("log", {"in": 0})["in"] == max(0, full), "up to the last full line"
    assert written(tmp_path) == rows
    assert query.ledger["log"] == {"in": 20, "accepted": 19, "MALFORMED": 1}
    assert rt.verify(tmp_path / "check", pipeline(spark, tmp_path, kind, more)).equal
    assert not [*(tmp_path / "check" / "sources").rglob("grown/*")], "nothing of them stays"


@pytest.mark.slow
def test_a_crash_at_a_part_repeats_nothing_and_loses_nothing(spark: SparkSession, tmp_path: Path) -> None:
    data, rows = content("csv", 20)
    lines = data.splitlines(keepends=True)
    for number, point in enumerate(("before journal", "after journal")):
        append(tmp_path, "a.csv", b"".join(lines[number * 8 : number * 8 + 8]))
        engine = pipeline(spark, tmp_path, "csv")._engine(tmp_path / "check", rt.Limits(), ends=False)
        engine.hook = dying(point)
        with pytest.raises(Died):
            engine.tick()
        engine.stop()
    append(tmp_path, "a.csv", b"".join(lines[16:]) + b"half a li")
    run(spark, tmp_path, "csv")
    append(tmp_path, "a.csv", b"ne")
    append(tmp_path, "b.csv", b"b,50\n")
    run(spark, tmp_path, "csv")
    assert written(tmp_path) == [*rows, ("b", 50)]
    assert rt.verify(tmp_path / "check", pipeline(spark, tmp_path, "csv")).equal


def test_an_overwritten_file_is_a_new_one(spark: SparkSession, tmp_path: Path) -> None:
    path = append(tmp_path, "a.csv", b"a,1\nb,2\n")
    run(spark, tmp_path, "csv")
    path.write_bytes(b"c,4\nd,5\ne,6\n")
    run(spark, tmp_path, "csv")
    append(tmp_path, "a.csv", b"f,8\n")
    run(spark, tmp_path, "csv")
    assert written(tmp_path) == [("a", 1), ("b", 2), ("c", 4), ("d", 5), ("e", 6), ("f", 8)]
    journaled: Any = Checkpoint(tmp_path / "check").journal.last()
    assert journaled["sources"]["log"]["state"]["counts"] == {"R523": 1}


def test_the_size_of_what_was_read_is_journaled(spark: SparkSession, tmp_path: Path) -> None:
    append(tmp_path, "a.csv", b"a,1\nb,2")
    run(spark, tmp_path, "csv")
    append(tmp_path, "a.csv", b"2\nc,")
    run(spark, tmp_path, "csv")
    lines = (tmp_path / "check" / "sources" / "log" / "files.jsonl").read_text().splitlines()
    found = [json.loads(line) for line in lines]
    assert [(Path(path).name, size, more.get("start", 0)) for path, _, size, more in found] == [
        ("a.csv", 4, 0),
        ("a.csv", 9, 4),
    ]
    assert written(tmp_path) == [("a", 1), ("b", 22)]


def test_a_file_without_a_full_line_is_read_again(spark: SparkSession, tmp_path: Path) -> None:
    append(tmp_path, "a.csv", b"a,")
    append(tmp_path, "b.csv", b"")
    query = run(spark, tmp_path, "csv")
    assert "log" not in query.ledger or query.ledger["log"]["in"] == 0
    append(tmp_path, "a.csv", b"1\n")
    run(spark, tmp_path, "csv")
    assert written(tmp_path) == [("a", 1)]


def test_the_end_of_the_last_full_line_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rowtime.runtime.sources.file_list._BLOCK", 3)
    path = tmp_path / "a"
    path.write_bytes(b"ab\ncdefghij\nk")
    ends = [end_of_lines(str(path), 0, size) for size in range(14)]
    assert ends == [0, 0, 0, *[3] * 9, 12, 12]
    assert end_of_lines(str(path), 3, 11) == 3
    assert os.path.getsize(path) == 13  # noqa: PTH202 - as the source asks

"""LEDGER as a stream: the counts of each gate in each tick, once, whatever dies and whatever reads it."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from deltalake import DeltaTable
from pyiceberg.catalog import load_catalog

import rowtime as rt
from rowtime.api.verification import verify
from rowtime.core.errors import Failure, Refused
from rowtime.core.stores import place_of
from rowtime.runtime.sources import ledger
from tests.deaths import Died, dying

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

START = datetime(2024, 1, 1, tzinfo=UTC)
COLUMNS = """tick BIGINT, committed_at TIMESTAMP, gate STRING, streams STRING, rows_in BIGINT, accepted BIGINT,
  refused BIGINT, late BIGINT, early BIGINT, out_of_order BIGINT, null_rowtime BIGINT, malformed BIGINT,
  broken_order BIGINT, unmatched_edge BIGINT, no_pane BIGINT, no_permit BIGINT, adjusted BIGINT, bound TIMESTAMP"""
SQL = """CREATE STREAM a (n BIGINT, at TIMESTAMP);
CREATE STREAM o (n INT) USING parquet OPTIONS (path '{folder}/out');
CREATE STREAM audit ({columns}) USING {kind};
CREATE STREAM hours (gate STRING, n BIGINT, late BIGINT) USING parquet OPTIONS (path '{folder}/hours');
CREATE VIEW sorted AS SELECT STREAM at AS ROWTIME, n FROM a ORDER BY at WITHIN INTERVAL '1' MINUTE;
CREATE PUMP p AS INSERT INTO o SELECT STREAM n FROM sorted;
CREATE PUMP told AS INSERT INTO audit SELECT STREAM * FROM LEDGER;
CREATE PUMP summed AS INSERT INTO hours SELECT STREAM gate, SUM(rows_in) AS n, SUM(late) AS late
  FROM ledger GROUP BY FLOOR(ledger.ROWTIME TO HOUR), gate;"""
ICEBERG = """iceberg OPTIONS (catalog 'c', table 'db.audit', catalog.type 'sql',
  catalog.uri 'sqlite:///{folder}/c.db', catalog.warehouse 'file://{folder}/lake')"""
DELTA = "delta OPTIONS (path '{folder}/audit')"


class Run:
    """A pipeline with its home, its checkpoint and its outputs in a folder."""

    def __init__(self, spark: SparkSession, folder: Path, kind: str = DELTA) -> None:
        self.spark, self.folder = spark, folder
        self.sql = SQL.format(folder=folder, columns=COLUMNS, kind=kind.format(folder=folder))
        self.ticks = 0
        for stream in self.pipeline.compile().defines:
            self.pipeline.home.define(stream.name, stream.as_json())

    @property
    def pipeline(self) -> rt.Pipeline:
        return rt.Pipeline(self.spark, home=self.folder / "home").sql(self.sql)

    def send(self, minutes: list[int], n: int = 1) -> None:
        with rt.writer("a", home=self.folder / "home") as log:
            log.insert([{"n": n, "at": START + timedelta(minutes=minute)} for minute in minutes])

    def go(self) -> rt.Query:
        return self.pipeline.run_available(self.folder / "check")

    def engine(self) -> Any:
        return self.pipeline._engine(self.folder / "check", rt.Limits(), ends=False)

    def written(self) -> list[dict[str, Any]]:
        rows = DeltaTable(str(self.folder / "audit")).to_pyarrow_table().to_pylist()
        return sorted(rows, key=lambda row: (row["tick"], row["gate"]))


def of_iceberg(folder: Path) -> list[dict[str, Any]]:
    found = load_catalog("c", type="sql", uri=f"sqlite:///{folder}/c.db", warehouse=f"file://{folder}/lake")
    rows: list[dict[str, Any]] = found.load_table("db.audit").scan().to_arrow().to_pylist()
    return rows


def sums(rows: list[dict[str, Any]]) -> dict[str, Counter[str]]:
    """The total counts of a ledger by gate."""
    found: dict[str, Counter[str]] = {}
    for row in rows:
        counts = {name: row[name] for name in ("accepted", "late", "malformed") if row[name]}
        found.setdefault(row["gate"], Counter()).update({"in": row["rows_in"], **counts})
    return found


@pytest.mark.slow
def test_each_tick_of_each_gate_has_a_row_in_a_delta_table(spark: SparkSession, tmp_path: Path) -> None:
    run = Run(spark, tmp_path)
    run.send([0, 10, 5])  # one is late
    run.go()
    run.send([20, 30], n=1 << 40)  # too large for the INT of o
    query = run.go()
    query = run.go()
    rows = run.written()
    assert {row["gate"] for row in rows} == {"a", "sorted", "p"}
    first = {row["gate"]: row for row in rows if row["tick"] == 0}
    late = first["sorted"]
    assert (late["rows_in"], late["accepted"], late["refused"], late["late"]) == (3, 2, 1, 1)
    assert (late["streams"], late["bound"]) == ("a", START + timedelta(minutes=9))
    assert first["a"]["committed_at"] == first["a"]["rowtime"]
    ours = ("audit", "told", "ledger", "hours", "summed")
    totals = {gate: counts for gate, counts in query.ledger.items() if gate.split(".")[0] not in ours}
    assert {gate: dict(counts) for gate, counts in sums(rows).items()} == {
        gate: {name.lower(): count for name, count in counts.items() if count} for gate, counts in totals.items()
    }
    assert all(row["rows_in"] == row["accepted"] + row["refused"] for row in rows)
    held = [str(wait.release) for wait in query.waiting() if "summed" in wait.operator]
    assert held == ["the ledger gets a row with each tick that counts rows: send a row to another stream"]


def test_ticks_that_read_nothing_but_the_ledger_make_no_others(spark: SparkSession, tmp_path: Path) -> None:
    run = Run(spark, tmp_path)
    run.send([0, 10])
    engine = run.engine()
    found = [engine.tick() for _ in range(4)]
    assert [report is not None for report in found] == [True, True, False, False]
    assert set(found[1].ledger) <= {"ledger", "audit", "told", "hours", "summed"}
    engine.stop()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_a_driver_that_dies_at_any_point_writes_each_row_of_the_ledger_once(
    spark: SparkSession, tmp_path: Path, kind: str
) -> None:
    run = Run(spark, tmp_path, {"delta": DELTA, "iceberg": ICEBERG}[kind])
    for number, point in enumerate(("before journal", "after journal", "before state", "after output")):
        minute = 20 * number
        run.send([minute, minute + 5, minute + 1])
        engine = run.engine()
        engine.hook = dying(point)
        with pytest.raises(Died):
            engine.tick()
        engine.stop()
        run.send([minute + 10])
        engine = run.engine()
        engine.tick()  # of a's rows
        engine.hook = dying(point)
        with pytest.raises(Died):
            engine.tick()  # of its ledger, at least
        engine.stop()
    query = run.go()
    rows = run.written() if kind == "delta" else of_iceberg(tmp_path)
    assert len({(row["tick"], row["gate"]) for row in rows}) == len(rows), "none is there twice"
    told = sums(rows)
    assert {gate: counts["in"] for gate, counts in told.items()} == {
        gate: counts["in"] for gate, counts in query.ledger.items() if gate in ("a", "sorted", "p")
    }
    assert told["sorted"] == Counter({"in": 16, "accepted": 12, "late": 4})
    again = verify(tmp_path / "check", spark=spark, home=tmp_path / "home")
    assert again.equal, again


@pytest.mark.slow
def test_sums_of_the_ledger_are_the_same_however_ticks_were_cut(spark: SparkSession, tmp_path: Path) -> None:
    found = []
    for name, cuts in (("one", [6]), ("three", [2, 4, 6])):
        (tmp_path / name).mkdir()
        run, minutes = Run(spark, tmp_path / name), [0, 10, 5, 20, 1, 30]
        for first, end in zip([0, *cuts], cuts, strict=False):
            run.send(minutes[first:end])
            run.go()
        rows = run.written()
        found.append((sums(rows), len({row["tick"] for row in rows})))
        again = verify(run.folder / "check", spark=spark, home=run.folder / "home")
        assert again.equal, again
        assert any(one.name == "told.sink" and one.rows == len(rows) for one in again.outputs)
    assert found[0][0] == found[1][0]
    assert [ticks for _, ticks in found] == [1, 3]


@pytest.mark.slow
def test_a_ledger_that_is_read_later_begins_with_the_ticks_that_the_journal_has_or_from_now(
    spark: SparkSession, tmp_path: Path
) -> None:
    parts = [f"{part};" for part in SQL.split(";") if part.strip()]
    for number, now in enumerate(("", " FROM NOW")):
        (tmp_path / str(number)).mkdir()
        run = Run(spark, tmp_path / str(number))
        whole = run.sql
        run.sql = "".join(parts[n] for n in (0, 1, 4, 5)).format(folder=run.folder)
        for minute in (0, 10):
            run.send([minute])
            run.go()
        run.sql = "".join(f"{part};" for part in whole.split(";")[:7]).replace("LEDGER", f"LEDGER{now}")
        for stream in run.pipeline.compile().defines:
            run.pipeline.home.define(stream.name, stream.as_json(), replace=True)
        run.go()
        run.send([20])
        run.go()
        ticks = sorted({row["tick"] for row in run.written()})
        assert len(ticks) == (1 if now else 3), ticks
        assert ticks[:2] == [0, 1] or now


@pytest.mark.parametrize("where", ["disk", "store"])
def test_the_content_of_a_book_is_checked_and_its_files_have_a_bounded_length(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    monkeypatch.setattr(ledger, "LINES", 3)
    folder = place_of(f"memory://{tmp_path.name}/book" if where == "store" else tmp_path)
    lines, at = [f"{n}".encode() for n in range(8)], (0, 0)
    for first, end in ((0, 2), (2, 7), (7, 8)):
        ledger.LedgerBook(folder).add(*at, [b"of a tick that did not commit"])
        book = ledger.LedgerBook(folder)
        at = book.add(*at, lines[first:end])
    assert [*book.read(*at)] == lines
    assert [*ledger.LedgerBook(folder).read(*at)] == lines
    assert len([*folder.iterdir()]) == 3
    (folder / "ledger-000001.jsonl").write_text("3\n4\n6\n")
    with pytest.raises(Failure, match=r"R406 .*the book of a ledger"):
        _ = [*book.read(*at)]
    (folder / "ledger-000002.jsonl").unlink()
    with pytest.raises(Failure, match=r"R406 .*has 0 of the 2 lines"):
        ledger.LedgerBook(folder).add(*at, [b"9"])


def test_a_stream_of_the_user_may_have_the_name_and_nobody_writes_to_the_ledger(tmp_path: Path) -> None:
    def compiled(text: str) -> Any:
        return rt.Pipeline(home=tmp_path / "home").sql(text).compile()

    made = compiled("CREATE STREAM ledger (n INT); SELECT STREAM n FROM ledger;")
    assert made.streams[0].source[0] == "log"
    with pytest.raises(Refused, match="R103 there is no stream or view ledger"):
        compiled("CREATE STREAM a (n INT); CREATE PUMP p AS INSERT INTO ledger SELECT STREAM n FROM a;")

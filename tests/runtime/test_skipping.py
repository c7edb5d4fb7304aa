"""A row that a target refused after the commit was a dead end: every start failed, and no script could skip it."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import rowtime as rt
from rowtime.cli.main import app
from rowtime.client.home import Home
from rowtime.client.log_items import Rows
from rowtime.client.stream_log import scan
from rowtime.core.errors import Failure, Problem, Refused
from rowtime.runtime.sinks.directory import DirectorySink
from rowtime.runtime.sinks.stream_log import StreamLogSink
from rowtime.runtime.skipping import skip
from rowtime.state.checkpoint import Checkpoint

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SQL = """
CREATE STREAM a (n BIGINT); CREATE STREAM o (n BIGINT);
CREATE STREAM f (n BIGINT) USING parquet OPTIONS (path '{at}/out');
CREATE PUMP before AS INSERT INTO f SELECT STREAM n FROM a;
CREATE PUMP p AS INSERT INTO mine SELECT STREAM n FROM a;
CREATE PUMP behind AS INSERT INTO o SELECT STREAM n FROM a;
"""
LOG = """
CREATE STREAM a (n BIGINT); CREATE STREAM o (n BIGINT);
CREATE PUMP behind AS INSERT INTO o SELECT STREAM n FROM a;
"""


class Mine:
    """A function that refuses rows with 3, and stores the others by their numbers."""

    def __init__(self) -> None:
        self.rows: dict[int, int] = {}
        self.tables: list[pa.Table] = []

    def __call__(self, batch: rt.Batch) -> None:
        if not batch.count:
            return
        numbers = batch.table()["n"].to_pylist()
        if 3 in numbers:
            raise ValueError("3 does not fit")
        self.rows |= dict(enumerate(numbers, batch.first))
        self.tables.append(batch.table())


def send(folder: Path, *numbers: int) -> None:
    with rt.writer("a", home=folder / "home") as log:
        log.insert([{"n": n, "rowtime": n} for n in numbers])


def pipeline(spark: SparkSession, folder: Path, mine: Mine) -> rt.Pipeline:
    return rt.Pipeline(spark, home=folder / "home").sql(SQL.format(at=folder)).sink("mine", mine)


def start(spark: SparkSession, folder: Path, mine: Mine) -> rt.Query:
    return pipeline(spark, folder, mine).run_available(folder / "check")


def written(folder: Path) -> tuple[list[int], list[int]]:
    log = folder / "home" / "logs" / "o"
    entries = [entry for entry in scan(log, {}).get("pump.behind", []) if isinstance(entry, Rows)]
    files = sorted((folder / "out").glob("part-*.parquet"))
    paths = [log / entry.path for entry in entries], files
    return tuple([n for path in part for n in pq.read_table(path)["n"].to_pylist()] for part in paths)  # type: ignore[return-value]


def command(text: str) -> list[str]:
    return next(line for line in text.splitlines() if "rowtime skip" in line).split("rowtime skip ")[1].split()


@pytest.mark.slow
def test_rows_that_a_target_refuses_ended_a_pipeline_for_ever(spark: SparkSession, tmp_path: Path) -> None:
    made = rt.Pipeline(home=tmp_path / "home").sql(SQL.format(at=tmp_path)).sink("mine", print)
    for stream in made.compile().defines:
        made.home.define(stream.name, stream.as_json(), replace=True)
    mine = Mine()
    send(tmp_path, 0, 1)
    start(spark, tmp_path, mine)
    send(tmp_path, 2, 3)
    for _ in range(2):
        with pytest.raises(Failure, match=r"R509 .* 3 does not fit") as failed:
            start(spark, tmp_path, mine)
    asked = command(str(failed.value))
    assert asked == [str(tmp_path / "check"), "p", "1"]
    with pytest.raises(Refused, match=r"R445 no rows of tick 0 of the pump p wait.*\n.*tick 1 of p"):
        skip(tmp_path / "check", "p", 0, home=tmp_path / "home")

    said = CliRunner().invoke(app, ["skip", *asked, "--home", str(tmp_path / "home")])
    assert said.exit_code == 0, said.output
    assert "2 rows of tick 1 of p are set aside" in said.output
    with pytest.raises(Refused, match="R445"):
        skip(tmp_path / "check", "p", 1, home=tmp_path / "home")

    send(tmp_path, 4)
    query = start(spark, tmp_path, mine)
    assert mine.rows == {0: 0, 1: 1, 4: 4}, "numbers go on behind the rows that were set aside"
    assert written(tmp_path) == ([0, 1, 2, 3, 4], [0, 1, 2, 3, 4]), "the other pumps got theirs"
    assert query.ledger["p"] == {"in": 2, "accepted": 0, "SKIPPED": 2}
    [file] = query.rejected("p")
    kept = pq.read_table(file).to_pylist()
    assert [(row["n"], row["reason"], row["position"], row["refused_time"].microsecond) for row in kept] == [
        (2, "SKIPPED", 2, 2),
        (3, "SKIPPED", 3, 3),
    ]
    journaled: Any = Checkpoint(tmp_path / "check").journal.last()
    assert [(one["pump"], one["tick"]) for one in journaled["skipped"]] == [("p", 1)]
    found = rt.verify(
        tmp_path / "check",
        pipeline(spark, tmp_path, mine),
        received={"p.sink": pa.concat_tables(mine.tables)},
    )
    assert found.equal, found


@pytest.mark.slow
def test_a_log_continues_after_rows_that_were_set_aside(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sql, home = LOG, tmp_path / "home"
    made = rt.Pipeline(home=home).sql(sql)
    for stream in made.compile().defines:
        made.home.define(stream.name, stream.as_json(), replace=True)

    def go() -> None:
        rt.Pipeline(spark, home=home).sql(sql).run_available(tmp_path / "check")

    send(tmp_path, 0, 1)
    go()
    send(tmp_path, 2, 3)
    with monkeypatch.context() as broken:

        def refused(*_given: object) -> None:
            raise Failure(Problem("R501", "the log takes no rows"))

        broken.setattr(StreamLogSink, "publish", refused)
        with pytest.raises(Failure, match=r"R501 behind: the log takes no rows\n.*rowtime skip .*check behind 1"):
            go()
    assert skip(tmp_path / "check", "behind", 1, home=home).rows == 2
    for number in (4, 5):
        send(tmp_path, number)
        go()
        # As after a crash between the delivery and its note: nothing is repeated.
        (tmp_path / "check" / "published").write_text("1")
        go()
    assert written(tmp_path)[0] == [0, 1, 4, 5]
    assert rt.verify(tmp_path / "check", spark=spark, home=home).equal


def test_rows_that_a_log_has_are_not_set_aside(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The driver died after the rows were in the log and before it recorded that."""
    sql = LOG
    made = rt.Pipeline(home=tmp_path / "home").sql(sql)
    for stream in made.compile().defines:
        made.home.define(stream.name, stream.as_json(), replace=True)
    send(tmp_path, 0, 1)
    with monkeypatch.context() as broken:
        unlink = Path.unlink

        def dies(path: Path, **options: bool) -> None:
            if "handover" in path.parts:
                raise OSError("dead")
            unlink(path, **options)

        broken.setattr(Path, "unlink", dies)
        with pytest.raises(Failure):
            rt.Pipeline(spark, home=tmp_path / "home").sql(sql).run_available(tmp_path / "check")
    assert written(tmp_path)[0] == [0, 1]
    with pytest.raises(Refused, match="R445"):
        skip(tmp_path / "check", "behind", 0, home=tmp_path / "home")


KINDS = """
CREATE STREAM a (n BIGINT, k STRING);
CREATE STREAM j (m TINYINT, label VARCHAR(9)) USING json OPTIONS (path '{at}/j');
CREATE STREAM c (m TINYINT, label STRING) USING csv OPTIONS (path '{at}/c', header 'true');
CREATE STREAM o (label STRING, m TINYINT);
CREATE STREAM b (p STRING, n BIGINT, k STRING, r STRING, at BIGINT, raw STRING) USING parquet OPTIONS (path '{at}/b');
CREATE PUMP pj AS INSERT INTO j SELECT STREAM n, k FROM a;
CREATE PUMP pc AS INSERT INTO c SELECT STREAM n, k FROM a;
CREATE PUMP po AS INSERT INTO o (m, label) SELECT STREAM n, k FROM a;
CREATE PUMP bj AS INSERT INTO b SELECT STREAM 'j', n, k, reason, "position", raw_record FROM pj.rejected;
CREATE PUMP bc AS INSERT INTO b SELECT STREAM 'c', n, k, reason, "position", raw_record FROM pc.rejected;
CREATE PUMP bo AS INSERT INTO b SELECT STREAM 'o', n, k, reason, "position", raw_record FROM po.rejected;
"""
NAMES = ("k", "two\nlines")
SKIPPED = [
    ("c", None, None, 2, "1970-01-01T00:00:00.000003Z,2,k"),
    ("c", None, None, 3, '1970-01-01T00:00:00.000004Z,3,"two\nlines"'),
    ("j", None, None, 2, '{"rowtime":"1970-01-01T00:00:00.000003Z","m":2,"label":"k"}'),
    ("j", None, None, 3, '{"rowtime":"1970-01-01T00:00:00.000004Z","m":3,"label":"two\\nlines"}'),
    ("o", 2, "k", 2, None),
    ("o", 3, "two\nlines", 3, None),
]


@pytest.mark.slow
def test_rows_of_text_could_not_be_set_aside_and_no_query_saw_skipped_rows(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def made() -> rt.Pipeline:
        return rt.Pipeline(spark, home=tmp_path / "home").sql(KINDS.format(at=tmp_path))

    def go() -> rt.Query:
        return made().run_available(tmp_path / "check")

    def insert(*numbers: int) -> None:
        with rt.writer("a", home=tmp_path / "home") as log:
            log.insert([{"n": n, "k": NAMES[n % 2], "rowtime": next(times)} for n in numbers])

    def seen() -> list[dict[str, Any]]:
        files = sorted((tmp_path / "b").glob("part-*.parquet"))
        return [row for file in files for row in pq.read_table(file).to_pylist()]

    times = count()
    Home(tmp_path / "home").define("a", made().compile().defines[0].as_json())
    insert(0, 1, 200)
    go()
    insert(2, 3)
    with monkeypatch.context() as broken:
        for kind in (DirectorySink, StreamLogSink):

            def refuses(sink: Any, spark: Any, node: Any, batch: rt.Batch, to: Any = kind.publish) -> None:
                if batch.count and node.name in ("pj.sink", "pc.sink", "po.sink"):
                    raise Failure(Problem("R501", f"{node.name} takes no rows"))
                to(sink, spark, node, batch)

            broken.setattr(kind, "publish", refuses)
        for pump in ("pj", "pc", "po"):
            with pytest.raises(Failure, match=f"rowtime skip .* {pump} 1"):
                go()
            assert skip(tmp_path / "check", pump, 1, home=tmp_path / "home").rows == 2
    assert {row["r"] for row in seen()} == {"MALFORMED"}
    query = go()
    assert query.ledger["pj"] == {"in": 5, "accepted": 2, "MALFORMED": 1, "SKIPPED": 2}
    insert(300, 4)
    go()
    rows = [row for row in seen() if row["r"] == "SKIPPED"]
    assert sorted((row["p"], row["n"], row["k"], row["at"], row["raw"]) for row in rows) == SKIPPED, "each comes once"
    for pump in "jco":  # each has files of its own
        rowtimes = [row["rowtime"] for row in seen() if row["p"] == pump]
        assert len(rowtimes) == 4
        assert rowtimes == sorted(rowtimes), "what queries see of them is in stream order"
    lines = [line for file in sorted((tmp_path / "c").glob("part-*.csv")) for line in file.read_text().split("\n")[1:]]
    assert [line.split(",")[1] for line in lines if "," in line] == ["0", "1", "4"]
    found = rt.verify(tmp_path / "check", made())
    assert found.equal, found
    assert {one.name: one.rows for one in found.outputs}["pc.sink"] == 7
    told = query.trace({"n": 2, "p": "o"}, sink="bo")
    assert [item.columns["position"] for item in told.of("po.rejected") if item.kind == "row"] == [2]

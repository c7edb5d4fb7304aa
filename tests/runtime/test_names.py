"""Any name is refused with a code or works, from end to end, and nothing is written outside the folders."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rowtime as rt
from rowtime.cli.status import as_lines, status_of
from rowtime.core.errors import Refused
from rowtime.runtime.sinks.database import JdbcSink
from rowtime.runtime.sinks.ownership import tag_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.sampled(8)

NAMES = {
    "a path": "../x",
    "two parts": "a/b",
    "a backslash": "a\\b",
    "a quote": "a'b",
    "a double quote": 'a"b',
    "a backtick": "a`b",
    "statements": "a'; DROP TABLE x; --",
    "a shell": "$(touch x)",
    "a shell's pattern": "{a,b}[c]*?",
    "percent": "%2e%2e%2fx",
    "a dollar": "a$1\\0",
    "lines": "a\nb\tc",
    "control characters": "\x02f\x7f\u202e",
    "unicode": "é日本 😀",
    "capitals beyond ASCII": "İSTANBUL ß",
    "one dot": ".",
    "two dots": "..",
    "dots inside": "a.b.select",
    "an option": "-rf",
    "a comment": "/*x*/--",
    "a keyword": "select",
    "a word of ours": "rejected",
    "a colon": "a:b=c",
    "fairly long": "x" * 150,
}
SQL = """
CREATE STREAM {s} ({c} INT, at TIMESTAMP);
CREATE STREAM {files} ({c} INT) USING json OPTIONS (path '{path}/in');
CREATE TABLE {table} ({c} INT, known INT) USING csv OPTIONS (path '{path}/table.csv', header 'true');
CREATE STREAM {out} ({c} BIGINT, n BIGINT) USING parquet OPTIONS (path '{path}/out');
CREATE STREAM {log} ({c} INT, known INT);
CREATE STREAM {late} ({c} INT, writer STRING) USING parquet OPTIONS (path '{path}/late');
CREATE VIEW {v} AS SELECT STREAM at AS ROWTIME, {c} FROM {s} ORDER BY at WITHIN INTERVAL '1' SECOND;
CREATE PUMP {p} AS INSERT INTO {out} SELECT STREAM SUM(x.{c}) AS {c}, COUNT(*) AS n FROM {v} AS x
  GROUP BY FLOOR(x.ROWTIME TO MINUTE);
CREATE PUMP {q} AS INSERT INTO {log} SELECT STREAM x.{c} AS {c}, t.known FROM {v} AS x
  JOIN {table} AS t ON x.{c} = t.{c};
CREATE PUMP {r} AS INSERT INTO {late} SELECT STREAM {c}, writer FROM {v}.rejected;
SELECT STREAM {c} FROM {files};
SELECT STREAM y.{c}, SUM(y.{c}) OVER (PARTITION BY y.{c} ORDER BY y.ROWTIME RANGE INTERVAL '1' MINUTE PRECEDING) AS {v}
  FROM {v} AS y;
"""
THINGS = ("s", "files", "table", "out", "log", "late", "v", "p", "q", "r")
START = 1_704_103_200_000_000


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def named(name: str, spark: SparkSession | None, folder: Path) -> rt.Pipeline:
    """A pipeline in which everything has this name, with a suffix where the name is already used."""
    things = {thing: quoted(name if thing == "s" else name + thing) for thing in THINGS}
    return rt.Pipeline(spark, home=folder / "home").sql(SQL.format(path=folder, c=quoted(name), **things))


def prepared(name: str, spark: SparkSession, folder: Path) -> rt.Pipeline:
    """Two rows in a table, one in a file and three of a stream, the second of which is late."""
    made = named(name, spark, folder)
    for stream in made.compile().defines:
        made.home.define(stream.name, stream.as_json())
    column = name.lower()
    (folder / "in").mkdir()
    (folder / "in" / "1.json").write_text(json.dumps({name: 7}) + "\n")  # as Spark, exactly
    with (folder / "table.csv").open("w", newline="") as file:
        csv.writer(file).writerows([[column, "known"], [1, 10], [3, 30]])
    with rt.writer(name, home=folder / "home", writer=name) as writer:
        seconds = (30, 0, 120)
        writer.insert([{name: n, "at": START + second * 1_000_000} for n, second in enumerate(seconds, 1)])
        writer.end()
    return made


def rows(folder: Path) -> list[dict[str, Any]]:
    """The rows of a directory or a log, without their times."""
    parts = [pq.read_table(path, partitioning=None) for path in sorted(folder.rglob("[pr]*.parquet"))]
    found = [row for part in parts for row in lowered(part)]
    return [{key: value for key, value in row.items() if key != "rowtime" and key[:2] != "__"} for row in found]


def lowered(table: pa.Table) -> list[dict[str, Any]]:
    """The rows by names in lower case: a column has the name of its declaration or select list."""
    return [{key.lower(): value for key, value in row.items()} for row in table.to_pylist()]


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_any_name_works_everywhere_and_never_leaves_its_folder(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    folder = tmp_path / "one" / "two"
    folder.mkdir(parents=True)
    monkeypatch.chdir(folder)
    made = prepared(name, spark, folder)
    received: list[dict[str, Any]] = []
    made.sink("result", lambda batch: received.extend(lowered(batch.table())))
    query = made.run_available(folder / "check", end=True)
    c = name.lower()
    assert rows(folder / "out") == [{c: 1, "n": 1}, {c: 3, "n": 1}]
    assert rows(folder / "late") == [{c: 2, "writer": name}]
    assert rows(made.home.log_path(name + "log")) == [{c: 1, "known": 10}, {c: 3, "known": 30}]
    assert sorted(row[c] for row in received) == [1, 3, 7]
    assert [row[c] for path in query.rejected(f"{c}v") for row in lowered(pq.read_table(path, partitioning=None))] == [
        2
    ]
    assert f"{c}: clock +∞" in "\n".join(as_lines(status_of(folder / "check")))
    verified = rt.verify(folder / "check", spark=spark, home=folder / "home")
    assert verified.equal, [output.first for output in verified.outputs]
    traced = query.trace({name: 3}, sink=f"{c}p.sink")
    assert [next(iter(item.columns.values())) for item in traced.of(c) if item.kind == "row"] == [3]
    assert {path.name for path in folder.iterdir()} == {"home", "check", "in", "out", "late", "table.csv"}
    assert sorted(path.name for path in tmp_path.rglob("*") if not path.is_relative_to(folder)) == ["one"]


@pytest.mark.parametrize("name", ["", "x" * 201, "日" * 67, "\ud800", "__t"])
def test_invalid_names_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(Refused) as caught:
        named(name, None, tmp_path).compile()
    assert {problem.code for problem in caught.value.problems} & {"R207", "R209"}
    assert list(tmp_path.iterdir()) == []


def test_views_and_columns_may_have_long_names(spark: SparkSession, tmp_path: Path) -> None:
    long = "x" * 300
    made = rt.Pipeline(spark, home=tmp_path / "home").sql(f"""CREATE STREAM s ({long} INT, at TIMESTAMP);
      CREATE STREAM o ({long} INT) USING parquet OPTIONS (path '{tmp_path / "out"}');
      CREATE VIEW {long}v AS SELECT STREAM at AS ROWTIME, {long} FROM s ORDER BY at WITHIN INTERVAL '1' SECOND;
      CREATE PUMP {long[:200]} AS INSERT INTO o SELECT STREAM {long} FROM {long}v;
      SELECT STREAM {long} FROM {long}v.rejected""")
    received: list[int] = []
    made.sink("result", lambda batch: received.extend(batch.table()[long].to_pylist()))
    for stream in made.compile().defines:
        made.home.define(stream.name, stream.as_json())
    with rt.writer("s", home=tmp_path / "home") as writer:
        writer.insert([{long: n, "at": START - n * 2_000_000} for n in range(2)])
        writer.end()
    query = made.run_available(tmp_path / "check", end=True)
    assert rows(tmp_path / "out") == [{long: 0}]
    assert received == [1]
    assert len(query.rejected(f"{long}v")) == 1


@pytest.mark.parametrize("target", ["", "USING parquet OPTIONS (path '{path}')"])
def test_the_name_of_a_pump_must_fit_a_file_as_it_is_a_writer_and_owns_a_folder(tmp_path: Path, target: str) -> None:
    made = rt.Pipeline(home=tmp_path / "home").sql(
        f"""CREATE STREAM s (v INT); CREATE STREAM o (v INT) {target.format(path=tmp_path / "out")};
        CREATE PUMP {"x" * 300} AS INSERT INTO o SELECT STREAM v FROM s"""
    )
    with pytest.raises(Refused) as caught:
        made.compile()
    assert [problem.code for problem in caught.value.problems] == ["R207"]


def test_the_name_of_a_pump_never_becomes_sql_of_a_database(tmp_path: Path) -> None:
    name = "p'; DROP TABLE o; --"
    made = rt.Pipeline(home=tmp_path / "home").sql(f"""CREATE STREAM s (v INT);
      CREATE STREAM o (v INT) USING jdbc OPTIONS (url 'jdbc:postgresql:x', dbtable 'o');
      CREATE PUMP {quoted(name)} AS INSERT INTO o SELECT STREAM v FROM s""")
    sink = JdbcSink(made.compile().sinks[0])
    assert sink.folder(tmp_path / "check").parent == tmp_path / "check" / "handover"
    assert tag_of("the checkpoint", sink._row).isalnum()  # otherwise the name is a parameter

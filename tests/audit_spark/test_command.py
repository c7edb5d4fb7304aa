"""``rowtime audit-spark``: its report, its files, its status, and its errors."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from datetime import datetime, timedelta
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import pyarrow as pa
import pytest

import rowtime as rt
from examples.audit_spark.__main__ import arguments
from rowtime.audit_spark.audited import Audit, CutResult, Difference, Dropped, Loss
from rowtime.audit_spark.cuts import cuts_of, rows_of
from rowtime.audit_spark.jobs import of_target
from rowtime.audit_spark.operators import Operator
from rowtime.audit_spark.rewriting import Rewritten
from rowtime.audit_spark.texts import as_page, as_text
from tests.audit_spark.conftest import write
from tests.docs.page_blocks import blocks_of
from tests.docs.shell import Shell, met

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from typer.testing import Result

Rowtime = Callable[..., "Result"]
PAGE = Path(__file__).parents[2] / "docs" / "audit-spark.md"
START = datetime(2026, 1, 1, 10)  # noqa: DTZ001 - UTC
FILES = [[(START + timedelta(minutes=n + 3 * m), "a")] for m in range(2) for n in (1, 0)]
NUMBER, TEXT = {"type": ["integer", "null"]}, {"type": "string"}


def fields(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": [*properties], "additionalProperties": False}


def array(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


COUNT = {"type": "integer"}
SCHEMA = fields(
    job=TEXT,
    mode=TEXT,
    agrees={"type": "boolean"},
    inputs=array(fields(name=TEXT, place=TEXT, files=COUNT)),
    batch=fields(rows=NUMBER, reason=TEXT),
    cuts=array(
        fields(
            name=TEXT,
            batches=COUNT,
            restarts={"type": "boolean"},
            rows=COUNT,
            missing=NUMBER,
            added=NUMBER,
            losses=array(
                fields(
                    operator=TEXT,
                    rows=NUMBER,
                    spark=NUMBER,
                    examples=array(fields(file=TEXT, row=TEXT, time=TEXT, watermark=TEXT)),
                )
            ),
            seconds={"type": "number"},
        )
    ),
    differing=COUNT,
    columns=array(TEXT),
    differences=array(fields(row={"type": "array"}, batch=NUMBER, cuts=array(COUNT))),
    operators=array(fields(name=TEXT, compares=TEXT, reason=TEXT)),
    watermarks=array(
        fields(input=TEXT, column=TEXT, delay=TEXT, rows=COUNT, all=COUNT, most=COUNT, late=COUNT)
    ),
    rowtime=fields(sql=TEXT, reason=TEXT),
)  # fmt: skip


def test_a_job_that_loses_nothing_succeeds(spark: SparkSession, rowtime: Rowtime, tmp_path: Path) -> None:
    write(tmp_path / "in", FILES[:2])
    (tmp_path / "kept.py").write_text("def kept(spark, rows):\n    return rows.where('key <> \"b\"')\n")
    result = rowtime("audit-spark", "kept.py:kept", "--input", "in", "--random", "0", "--json", "a.json")
    assert result.exit_code == 0, result.output
    assert "All cuts, and the batch give the same rows, and no row was dropped." in result.stdout
    report = json.loads((tmp_path / "a.json").read_text())
    jsonschema.validate(report, SCHEMA)
    assert (report["agrees"], report["operators"], report["batch"]["rows"]) == (True, [], 2)
    assert [cut["batches"] for cut in report["cuts"]] == [1, 2, 2]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "operators", "losses"),
    [
        ("windows", ["aggregation by window"], [[0], [0], [2], [0]]),
        ("payments", ["join"], [[0], [2], [0], [0]]),
        ("duplicates", ["aggregation", "dropDuplicates"], [[None, 0], [None, 0], [None, 2], [None, 0]]),
    ],
)
def test_the_examples_show_what_they_lose(
    spark: SparkSession, rowtime: Rowtime, tmp_path: Path, name: str, operators: list[str], losses: list[list[int]]
) -> None:
    result = rowtime(*arguments(name), "--json", "a.json", "--html", "a.html")
    assert result.exit_code == 1, result.output
    report = json.loads((tmp_path / "a.json").read_text())
    jsonschema.validate(report, SCHEMA)
    assert [one["name"] for one in report["operators"]] == operators
    assert [[loss["rows"] for loss in cut["losses"]] for cut in report["cuts"]] == losses
    assert report["differing"] > 0
    assert "<script" not in (tmp_path / "a.html").read_text()
    query = report["rowtime"]["sql"]
    assert bool(query) == (name == "windows")
    if query:
        *definitions, select, _ = re.split(r";\n?", query)
        pipeline = rt.Pipeline(spark, home=str(tmp_path / "home")).sql(";\n".join(definitions))
        rows = pipeline.preview(select, rows=100, end=True).select(report["columns"])
        batch = {tuple(one["row"]) for one in report["differences"] if one["batch"]}
        assert batch <= {tuple(row) for row in rows_of(rows)}
        assert rows.num_rows == report["batch"]["rows"]


@pytest.mark.slow
def test_a_query_over_one_file_is_split(spark: SparkSession, rowtime: Rowtime, tmp_path: Path) -> None:
    write(tmp_path / "s", [[row for file in FILES for row in file]])
    query = """SELECT session_window.end, key, COUNT(*) AS n FROM s WHERE key <> 'b'
        GROUP BY session_window(at, '1 minute'), key"""
    given = ("audit-spark", "--table", query, "--input", "s=s", "--watermark", "s.at=1 minute", "--random", "0")
    refused = rowtime(*given)
    assert (refused.exit_code, refused.stderr.splitlines()[-2][:4]) == (1, "R633"), refused.output
    result = rowtime(*given, "--rows-per-file", "2", "--json", "a.json")
    report = json.loads((tmp_path / "a.json").read_text())
    assert report["inputs"][0]["files"] == 2
    assert report["watermarks"][0]["all"] == 60_000_000
    assert "session_window(ROWTIME, '1 minute')" in report["rowtime"]["sql"], result.output


def test_what_cannot_be_audited_is_refused_with_a_code(spark: SparkSession, rowtime: Rowtime, tmp_path: Path) -> None:
    write(tmp_path / "in", FILES[:2])
    (tmp_path / "mixed").mkdir()
    for name in ("a.csv", "b.json"):
        (tmp_path / "mixed" / name).write_text("{}\n")
    modules = {
        "none.py": "x = 1",
        "left.py": "import sys\nsys.exit(3)",
        "fails.py": "def job(spark, rows):\n    raise ValueError(7)",
        "leaves.py": "def job(spark, rows):\n    raise SystemExit(7)",
        "static.py": "def job(spark, rows):\n    return spark.range(3)",
        "text.py": "def job(spark, rows):\n    return 'rows'",
        "starts.py": "def job(spark, rows):\n    return rows.writeStream.format('parquet')."
        "option('checkpointLocation', 'c').start('sink')",
        "into.py": "def job(spark, rows):\n    return rows.writeStream.toTable('sink')",
        "two.py": "def job(spark, a, b):\n    return a.union(b)",
        "groups.py": "def job(spark, rows):\n    return rows.groupBy('key').count()",
    }
    for name, text in modules.items():
        (tmp_path / name).write_text(text)
    refusals = {
        ("nothing.py", "in"): "R630",
        ("none.py", "in"): "R630",
        ("left.py", "in"): "R630",
        ("no.module:job", "in"): "R630",
        ("two.py", "in"): "R631",
        ("fails.py", "rows=nowhere"): "R631",
        ("fails.py", "rows=mixed"): "R631",
        ("fails.py", "in"): "R632",
        ("leaves.py", "in"): "R632",
        ("static.py", "in"): "R632",
        ("text.py", "in"): "R632",
        ("starts.py", "in"): "R632",
        ("into.py", "in"): "R632",
        ("fails.py", "in/0.csv"): "R633",
        ("groups.py", "in"): "R634",
    }
    for (job, place), code in refusals.items():
        result = rowtime("audit-spark", job, "--input", place)
        assert result.exit_code == (3 if code == "R634" else 1), (job, result.output)
        assert re.search(rf"^(Failed: )?{code} ", result.stderr, re.MULTILINE), (job, place, result.output)
    assert not (tmp_path / "sink").exists()
    assert not (tmp_path / "c").exists()
    for wrong in ([], ["fails.py", "--table", "SELECT 1"], ["fails.py", "--mode", "some"]):
        assert rowtime("audit-spark", *wrong, "--input", "in").exit_code == 2


@pytest.mark.slow
def test_the_commands_of_the_page_say_what_it_shows(tmp_path: Path) -> None:
    shell, output = Shell(tmp_path), list[str]()
    for block in blocks_of(PAGE.read_text(encoding="utf-8")):
        if block.kind == "sh":
            output = shell(block.text)
        elif block.kind == "text":
            met(block.text, output)


def test_a_job_of_a_module_is_called_with_its_inputs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = "def late(spark, a, *, b, c=1):\n    ...\ndef every(spark, **inputs):\n    ...\n"
    (tmp_path / "jobs_of_ours.py").write_text(text)
    assert of_target("jobs_of_ours:late").inputs == ["a", "b"]
    assert of_target("jobs_of_ours.py:every").inputs is None
    sys.modules.pop("jobs_of_ours")


def test_each_cut_has_each_file_once_and_in_order() -> None:
    for files in (2, 3, 10):
        for cut in cuts_of(files, 4, 7):
            assert [number for batch in cut.batches for number in batch] == [*range(files)]
            assert all(cut.batches)
    assert [*cuts_of(9, 3, 7)] == [*cuts_of(9, 3, 7)]


def test_rows_are_compared_as_a_multiset_of_values() -> None:
    table = pa.table({"a": [0.1 + 0.2, 0.3, float("nan")], "b": [[1], [1], None], "c": [{"x": 1}, {"x": 1}, None]})
    assert [*rows_of(table).values()] == [2, 1]
    assert rows_of(table) == rows_of(table.take([2, 1, 0]))


EVIL = "</td><script>alert(1)</script>&"


def invented() -> Audit:
    examples = [Dropped(EVIL, EVIL, "2026-01-01", "2026-01-01")]
    losses = [Loss("join", 1, 2, examples), Loss(EVIL, None, None, ())]
    cut = CutResult("all at once", 1, restarts=False, rows=3, missing=1, added=1, losses=losses, seconds=0.1)
    differences = [Difference((EVIL, 1), 0, [2])]
    operators = [Operator("join"), Operator(EVIL, reason=EVIL)]
    query = Rewritten(f"CREATE STREAM {EVIL};\n", f"SELECT {EVIL}")
    given = [{"name": EVIL, "place": EVIL, "files": 1}]
    return Audit(EVIL, "append", given, [EVIL, "n"], 3, "", [cut], 30, differences, operators, [], query)


def test_the_page_shows_values_as_text_and_loads_nothing() -> None:
    page = as_page(invented())
    assert "<script" not in page
    assert page.count("&lt;script&gt;") >= 8
    assert re.findall(r"(?:src|href)=|url\(|@import|https?:", page) == []
    tags: list[str] = []
    parser = HTMLParser()
    parser.handle_starttag = lambda tag, _: tags.append(tag)  # type: ignore[method-assign]
    parser.feed(page)
    assert {"script", "link", "img", "iframe"} & {*tags} == set()


def test_the_text_shows_how_often_each_side_has_a_row() -> None:
    text = as_text(invented())
    assert f"{EVIL} {EVIL}, n 1: 2 times in all at once; not in batch" in text
    assert "  and 29 more" in text
    assert not invented().agrees

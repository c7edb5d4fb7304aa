"""Expressions whose value depends on the release of Spark: each is in a list, and on a page (semantics 15)."""

from __future__ import annotations

import json
import os
import re
import subprocess
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyspark
import pytest

from benchmarks.other_spark import installed
from rowtime.runtime.session import derive
from rowtime.sql.generate import to_spark
from rowtime.sql.script import parse_expression
from tests.docs.page_blocks import ROOT
from tests.queries import evaluated
from tests.queries.edges import edge_expressions
from tests.queries.evaluated import ERROR, REFUSED, all_evaluated
from tests.queries.spark_examples import examples
from tests.queries.test_spark_examples import CLOCK

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OLDEST, NEWEST = "4.0.5", "4.3.0"
KINDS: Final[list[dict[str, Any]]] = json.loads((Path(__file__).parent / "spark_differences.json").read_text("utf-8"))
"""What differs: as the page shows it, and the values by expression and release."""
VALUES: Final[dict[str, dict[str, str]]] = {text: by for kind in KINDS for text, by in kind["values"].items()}
NAMES: Final = re.compile(r"(?<=`)\w+(?=`)")
PAGE: Final = ROOT / "docs" / "semantics.md"


def release(version: str) -> str:
    return ".".join(version.split(".")[:2])


def test_this_spark_gives_the_values_of_its_release(spark: SparkSession) -> None:
    mine = release(pyspark.__version__)
    assert all_evaluated(derive(spark), VALUES) == {text: by[mine] for text, by in VALUES.items()}


def test_rowtime_has_the_meaning_of_the_newest_spark(spark: SparkSession) -> None:
    ours = {text: by for kind in KINDS if "ours" in kind for text, by in kind["values"].items()}
    written = {text: to_spark(parse_expression(text)) for text in ours}
    values = all_evaluated(derive(spark), written.values())
    assert {text: values[written[text]] for text in ours} == {text: by[release(NEWEST)] for text, by in ours.items()}


@pytest.mark.parametrize("call", ["FLOOR(x)", "CEIL(x)"])
def test_rounded_numbers_within_bigint_are_as_in_spark(spark: SparkSession, call: str) -> None:
    """Also those next to its ends, and decimals beyond it."""
    decimals = (
        "9223372036854775807.5",
        "9223372036854775806.5",
        "-9223372036854775808.5",
        "-9223372036854775807.5",
        "1e30",
    )
    doubles = ("-9.223372036854775808E18D", "9.2233720368547748E18D", "DOUBLE('NaN')", "CAST(NULL AS DOUBLE)", "-2.5D")
    values = [f"CAST('{text}' AS DECIMAL(38, 1))" for text in decimals]
    values += [
        *doubles,
        "9223372036854775807",
        "-9223372036854775807 - 1",
        "FLOAT('2.5')",
        "'2.5'",
        "CAST(3 AS TINYINT)",
    ]
    text, session = to_spark(parse_expression(call)), derive(spark)
    for value in values:
        rows = session.sql(f"SELECT {value} AS x").selectExpr(f"{text} AS a", f"{call} AS b")
        assert rows.schema["a"].dataType == rows.schema["b"].dataType, value
        assert rows.collect()[0]["a"] == rows.collect()[0]["b"], value


@pytest.mark.parametrize("kind", [kind for kind in KINDS if "ours" not in kind], ids=lambda kind: kind["shown"])
def test_the_page_names_what_differs(kind: dict[str, Any]) -> None:
    page = PAGE.read_text(encoding="utf-8").partition("\n## 15. ")[2]
    assert f"| {kind['shown']} | {kind['since']} | {kind['before']} | {kind['after']} |" in page
    for by in kind["values"].values():
        assert {new for old, new in pairwise(by) if by[old] != by[new]} == {kind["since"]}


@pytest.mark.slow
def test_no_other_value_differs_between_the_oldest_and_the_newest_spark(spark: SparkSession, tmp_path: Path) -> None:
    listed = (ROOT / "docs" / "sql-functions.md").read_text(encoding="utf-8").partition("| refused |")[0]
    known = set(NAMES.findall(listed))
    given = [
        one
        for one in examples(derive(spark))
        if one.function in known and (one.source or not any(name in one.text.lower() for name in CLOCK))
    ]
    texts = list(dict.fromkeys([*edge_expressions(given), *VALUES]))
    assert len(texts) > 3900
    old, new = of_version(OLDEST, texts, tmp_path), of_version(NEWEST, texts, tmp_path)
    found = {text: (old[text], new[text]) for text in texts if REFUSED not in (old[text], new[text])}
    assert len(found) > 3000
    differing = {text: both for text, both in found.items() if both[0] != both[1]}
    assert differing == {text: (by[release(OLDEST)], by[release(NEWEST)]) for text, by in VALUES.items()}


def of_version(version: str, texts: list[str], folder: Path) -> dict[str, str]:
    """The values in another Spark, in an environment of its own."""
    python = installed(version, ()) / "bin/python"
    given, results = folder / "texts.json", folder / f"{version}.json"
    given.write_text(json.dumps(texts), encoding="utf-8")
    ours = {"PYTHONPATH", "PYSPARK_DRIVER_PYTHON", "SPARK_HOME"}
    environment = {name: value for name, value in os.environ.items() if name not in ours}
    environment["PYSPARK_PYTHON"] = str(python)
    command = [str(python), str(evaluated.__file__), str(given), str(results)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    values: dict[str, str] = json.loads(results.read_text(encoding="utf-8"))
    assert ERROR in values.values()
    return values

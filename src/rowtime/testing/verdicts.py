"""Case files without a stream: orders of expressions, statements to accept or refuse, values.

The kind of a file follows from its keys: ``cases`` (with ``columns``), ``statements`` (with ``catalog``), ``values``.
The first two need no Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from rowtime.core.errors import RowtimeError
from rowtime.plan.check import check, proof_of
from rowtime.sql.generate import to_spark
from rowtime.sql.script import parse_expression
from rowtime.testing.transcripts import Safe

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Judge = Callable[[Mapping[str, Any], "SparkSession"], list[str]]


def judge_of(path: Path) -> tuple[Judge, Mapping[str, Any]] | None:
    """Return how to judge a file, and its content; ``None`` for a transcript, and for a file that is not YAML."""
    try:
        case = yaml.load(path.read_text(encoding="utf-8"), Loader=Safe)  # noqa: S506 - a safe loader
    except (OSError, ValueError, yaml.YAMLError):
        return None
    if not isinstance(case, dict):
        return None
    of_case = next((judge for key, judge in _JUDGES.items() if key in case and "input" not in case), None)
    return (of_case, case) if of_case else None


def orders(case: Mapping[str, Any], _spark: SparkSession | None = None) -> list[str]:
    """Return expressions whose order is not the expected one; a weaker one is accepted if the file says so."""
    columns = {c["name"]: _definition(c) for c in case["columns"] if c["name"].lower() != "rowtime"}
    differences = []
    for entry in case["cases"]:
        proof = proof_of(entry["expression"], columns)
        got, wanted = proof.order.value.replace(" ", "_"), entry["expect"]
        weaker = got in ("none", wanted.removeprefix("strictly_"))
        if got != wanted and not (weaker and entry.get("weaker_ok")):
            why = proof.failure()
            differences.append(f"{entry['expression']} is {got}, expected {wanted}: {why.text}: {why.rule}")
    return differences


def _definition(column: Mapping[str, Any]) -> str:
    order = "" if column["order"] == "none" else column["order"].replace("_", " ").upper()
    sign = f"CHECK ({column['name']} {column['sign'].removeprefix('always ')})" if "sign" in column else ""
    return f"{column['type']} {order} {sign}".strip()


def statements(case: Mapping[str, Any], _spark: SparkSession | None = None) -> list[str]:
    """Return statements whose verdict differs from the file's."""
    catalog = "".join(f"{statement};\n" for statement in case["catalog"])
    differences = []
    for entry in case["statements"]:
        problems = check(catalog + entry["sql"])
        if any(not problem.warns for problem in problems) != (entry["verdict"] == "refuse"):
            codes = ", ".join(f"{problem.code} {problem.message}" for problem in problems) or "accepted"
            differences.append(f"{entry['sql']}: {codes}; expected: {entry['verdict']} {entry['reason']}".rstrip())
    return differences


def values(case: Mapping[str, Any], spark: SparkSession) -> list[str]:
    """Return scalar expressions with another value in Spark; timestamps as text."""
    differences = []
    for entry in case["values"]:
        try:
            frame = spark.sql(f"SELECT {to_spark(parse_expression(entry['expression']))} AS v")
            if frame.schema["v"].dataType.typeName() == "timestamp":
                frame = frame.selectExpr("CAST(v AS STRING) AS v")
            got: Any = frame.collect()[0]["v"]
        except RowtimeError as refused:
            got = str(refused)
        if got != entry["value"]:
            differences.append(f"{entry['expression']} is {got!r}, expected {entry['value']!r}")
    return differences


_JUDGES: dict[str, Judge] = {"cases": orders, "statements": statements, "values": values}

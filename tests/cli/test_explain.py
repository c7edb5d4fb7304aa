"""``rowtime explain``: the description of operators, as text and as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from rowtime.operators.contract import Operator
from rowtime.plan.explain import explain
from rowtime.plan.program import compile_script

if TYPE_CHECKING:
    from typer.testing import Result

SCRIPT = """\
CREATE STREAM clicks (page STRING, at TIMESTAMP);
CREATE VIEW sorted AS
  SELECT STREAM c.at AS ROWTIME, page FROM clicks c ORDER BY at WITHIN INTERVAL '10' SECOND;
SELECT STREAM FLOOR(s.ROWTIME TO MINUTE) AS m, page, COUNT(*) AS c
FROM sorted s
GROUP BY FLOOR(s.ROWTIME TO MINUTE), page;
"""
GOLDEN = Path(__file__).with_name("explain.txt")


def test_the_plan_reads_as_the_golden_text(rowtime: Callable[..., Result], tmp_path: Path) -> None:
    (tmp_path / "visits.sql").write_text(SCRIPT)
    result = rowtime("explain", "visits.sql")
    assert result.exit_code == 0, result.stderr
    assert result.stdout == GOLDEN.read_text(encoding="utf-8")


def test_the_orders_of_columns_and_keys(rowtime: Callable[..., Result], tmp_path: Path) -> None:
    (tmp_path / "visits.sql").write_text(SCRIPT)
    result = rowtime("explain", "visits.sql", "--monotonicity")
    assert (
        """\
query.group: group by
    ROWTIME  ascending
    m        ascending
    page     no order is known
    c        no order is known
    GROUP BY FLOOR(ROWTIME TO MINUTE): ascending, closes groups
    GROUP BY page: no order is known
"""
        in result.stdout
    )


def test_json_says_the_same_inputs_first(rowtime: Callable[..., Result], tmp_path: Path) -> None:
    (tmp_path / "visits.sql").write_text(SCRIPT)
    operators = json.loads(rowtime("explain", "visits.sql", "--json").stdout)["operators"]
    known: set[str] = set()
    for operator in operators:
        assert known >= set(operator["inputs"])
        known.add(operator["name"])
    group = next(operator for operator in operators if operator["kind"] == "group by")
    assert group["groups"][0] == {"key": "FLOOR(ROWTIME TO MINUTE)", "order": "ascending", "closes": True}
    assert group["emits"]["columns"][0]["order"] == "ascending"
    assert group["promises"]["reason"]


def test_a_promise_without_a_reason_is_that_of_the_input() -> None:
    def reasons(node: Operator) -> str:
        return node.reason

    program = compile_script(SCRIPT)
    entries = {entry["name"]: entry for entry in explain(program)}
    for node in program.operators:
        bound = entries[node.name]["promises"]["bound"]
        assert (bound == node.promise) == bool(reasons(node))


def test_a_shared_operator_is_explained_once(rowtime: Callable[..., Result], tmp_path: Path) -> None:
    twice = "SELECT STREAM page FROM sorted UNION ALL SELECT STREAM page FROM sorted;"
    (tmp_path / "twice.sql").write_text(SCRIPT.split("SELECT STREAM FLOOR", maxsplit=1)[0] + twice)
    text = rowtime("explain", "twice.sql").stdout
    assert text.count("sorted: t-sort\n") == 1
    assert text.count("sorted: t-sort, as above\n") == 1


def test_explain_statements_are_answered(rowtime: Callable[..., Result], tmp_path: Path) -> None:
    script = "CREATE STREAM s (a INT); EXPLAIN SELECT STREAM a FROM s; EXPLAIN MONOTONICITY SELECT STREAM a FROM s;"
    (tmp_path / "explains.sql").write_text(script)
    for command in ("explain", "run"):
        text = rowtime(command, "explains.sql").stdout
        assert "EXPLAIN PLAN\nexplained.select: select\n" in text
        assert "EXPLAIN MONOTONICITY\ns: stream\n    ROWTIME  ascending\n    a        no order is known\n" in text


def test_secrets_in_options_are_not_shown(rowtime: Callable[..., Result], tmp_path: Path) -> None:
    (tmp_path / "kafka.sql").write_text(
        "CREATE STREAM k (a INT) USING kafka OPTIONS (kafka.bootstrap.servers 'h:1', subscribe 'visits', "
        "'kafka.sasl.jaas.config' 'hunter2');"
        "SELECT STREAM a FROM k;"
    )
    text = rowtime("explain", "kafka.sql").stdout
    assert "subscribe 'visits'" in text
    assert "hunter2" not in text


def test_a_script_with_problems_is_refused(rowtime: Callable[..., Result], tmp_path: Path) -> None:
    (tmp_path / "bad.sql").write_text("SELECT STREAM a FROM nothing;")
    result = rowtime("explain", "bad.sql")
    assert result.exit_code == 1
    assert "R103" in result.stderr
    refused = rowtime("explain", "bad.sql", "--json")
    assert json.loads(refused.stdout)["problems"][0]["code"] == "R103"

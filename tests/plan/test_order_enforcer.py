"""The merge, which holds rows until their turn, is planned only if an operator below needs the order."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from rowtime.cli.main import app
from rowtime.operators.order.merge import Merge
from rowtime.plan.program import compile_script

DECLARED = """CREATE STREAM s (ev TIMESTAMP, k INT, v INT);
CREATE STREAM s2 (ev TIMESTAMP, k INT, v INT);
CREATE VIEW f AS SELECT STREAM ev AS ROWTIME, k, v FROM s ORDER BY ev WITHIN INTERVAL '10' SECOND;
CREATE VIEW g AS SELECT STREAM ev AS ROWTIME, k, v FROM s2
  ORDER BY ev WITHIN INTERVAL '10' SECOND EARLY BEYOND INTERVAL '1' HOUR RESYNC AFTER 2 ROWS;
CREATE STREAM files (k INT, v INT) USING parquet OPTIONS (path '/tmp/files', ordered 'false');
"""
MINUTE = "GROUP BY FLOOR({}.ROWTIME TO MINUTE)"
UNION = "SELECT STREAM k FROM f UNION ALL SELECT STREAM k FROM g"
CASES = [
    # A sink in order, a window, and a T-sort's further keys need the order.
    ("SELECT STREAM v FROM f", 1),
    ("SELECT STREAM SUM(v) OVER (ROWS 2 PRECEDING) AS w FROM f", 1),
    (UNION, 1),
    # The bound completes groups in any order of rows; counts, joins and files need no order either.
    (f"SELECT STREAM COUNT(*) AS c, SUM(v) AS s FROM f {MINUTE.format('f')}", 0),
    (f"SELECT STREAM COUNT(*) AS c FROM g {MINUTE.format('g')}", 0),
    ("SELECT STREAM k, COUNT(*) AS c FROM s GROUP BY FLOOR(ev TO MINUTE) WITHIN INTERVAL '30' SECOND, k", 0),
    (f"SELECT STREAM COUNT(*) AS c FROM ({UNION}) AS u {MINUTE.format('u')}", 0),
    ("INSERT INTO files SELECT STREAM k, v FROM f", 0),
]  # fmt: skip


@pytest.mark.parametrize(("query", "merges"), CASES, ids=[query for query, _ in CASES])
def test_rows_are_held_only_where_order_is_needed(query: str, merges: int) -> None:
    operators = compile_script(f"{DECLARED}{query};").operators
    assert sum(isinstance(node, Merge) for node in operators) == merges


def test_explain_shows_that_no_order_is_kept(tmp_path: Path) -> None:
    with_groups = _explained(tmp_path, f"SELECT STREAM COUNT(*) AS c FROM f {MINUTE.format('f')}")
    with_rows = _explained(tmp_path, "SELECT STREAM v FROM f")
    assert "f: t-sort\n" in with_groups
    assert ": merge\n" not in with_groups
    assert ": merge\n" in with_rows


def _explained(folder: Path, query: str) -> str:
    script = folder / "query.sql"
    script.write_text(f"{DECLARED}{query};")
    found = CliRunner().invoke(app, ["explain", str(script), "--home", str(folder / "home")])
    assert found.exit_code == 0, found.output
    return found.output

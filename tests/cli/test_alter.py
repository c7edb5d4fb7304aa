"""``rowtime alter``: its output, and that of ``rowtime status`` afterwards; without Spark."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rowtime.core.errors import Problem
from rowtime.plan.program import compile_script
from rowtime.plan.pump_orders import Order
from rowtime.state import pump_orders
from rowtime.state.checkpoint import Checkpoint

if TYPE_CHECKING:
    from typer.testing import Result

SCRIPT = """\
CREATE STREAM s (v INT);
CREATE STREAM kept (v INT) USING parquet OPTIONS (path '/tmp/nowhere');
CREATE STREAM more (v INT) USING parquet OPTIONS (path '/tmp/nowhere else');
CREATE PUMP app.keep STOPPED AS INSERT INTO kept SELECT STREAM v FROM s;
CREATE PUMP app.more AS INSERT INTO more SELECT STREAM v FROM s;
"""


@pytest.fixture
def checkpoint(tmp_path: Path) -> Checkpoint:
    made = Checkpoint(tmp_path / "check")
    made.folder.mkdir()
    made.bind(compile_script(SCRIPT).described())
    return made


def test_an_order_says_what_it_does_and_waits(rowtime: Callable[..., Result], checkpoint: Checkpoint) -> None:
    (checkpoint.folder.parent / "later.sql").write_text("ALTER PUMP app.* START;\n", encoding="utf-8")
    result = rowtime("alter", "later.sql", "--checkpoint", "check")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.splitlines() == [
        "app.keep: started",
        "app.more: already started",
        "the pipeline carries this out at its next start",
    ]
    lines = rowtime("status", "check").stdout.splitlines()
    assert lines[2:4] == ["pumps", "  app.keep: stopped in the script"]
    assert lines[4].startswith("  waits: ALTER PUMP app.* START of 2")
    assert lines[4].endswith(" UTC; it is carried out at the next start")


def test_statements_are_given_in_the_command_as_well(rowtime: Callable[..., Result], checkpoint: Checkpoint) -> None:
    result = rowtime("alter", "--checkpoint", "check", "-e", "ALTER PUMP app.more STOP", "--json")
    said = json.loads(result.stdout)
    assert (said["pumps"], said["unchanged"], said["running"]) == ({"app.more": False}, [], False)
    [order] = pump_orders.waiting(checkpoint.folder, checkpoint.plan.orders)  # type: ignore[union-attr]
    pump_orders.refuse(checkpoint.folder, order, [Problem("R401", "it does not fit")])
    found = json.loads(rowtime("status", "check", "--json").stdout)
    assert found["pumps"] == [{"pump": "app.keep", "runs": False, "by": None}]
    assert found["orders"]["waiting"] == []
    assert found["orders"]["refused"]["problems"][0]["code"] == "R401"
    assert rowtime("status", "check").stdout.splitlines()[-1].endswith(" UTC: R401 it does not fit")


def test_what_is_in_force_is_shown_with_its_order(rowtime: Callable[..., Result], checkpoint: Checkpoint) -> None:
    plan = compile_script(SCRIPT).orders.after(Order({"app.keep": True, "app.more": False}, "ALTER PUMP …", 0))
    checkpoint.bind(compile_script(SCRIPT, orders=plan).described())
    assert rowtime("status", "check").stdout.splitlines()[2:] == [
        "pumps",
        "  app.keep: started by ALTER PUMP … of 1970-01-01 00:00:00 UTC",
        "  app.more: stopped by ALTER PUMP … of 1970-01-01 00:00:00 UTC",
    ]


def test_a_file_or_statements_and_a_checkpoint_are_needed(rowtime: Callable[..., Result], tmp_path: Path) -> None:
    (tmp_path / "later.sql").write_text("ALTER PUMP p START", encoding="utf-8")
    both = rowtime("alter", "later.sql", "--checkpoint", "check", "-e", "ALTER PUMP p START")
    assert [one.exit_code for one in (both, rowtime("alter", "--checkpoint", "x"), rowtime("alter", "later.sql"))] == [
        2
    ] * 3
    refused = rowtime("alter", "later.sql", "--checkpoint", "check")
    assert (refused.exit_code, refused.stderr[:4]) == (1, "R405")

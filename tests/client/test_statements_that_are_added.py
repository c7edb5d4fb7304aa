"""A statement that is added to a script after the first start is refused; it was ignored without a message."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from typer.testing import CliRunner

import rowtime as rt
from rowtime.cli.main import app
from rowtime.client.home import Home
from rowtime.client.log_items import Bound, Rows
from rowtime.client.stream_log import scan
from rowtime.core.time import END

if TYPE_CHECKING:
    import pytest
    from pyspark.sql import SparkSession

DEFINED = "CREATE STREAM s (k INT, t TIMESTAMP);\n"
FIRST = "INSERT INTO s (ROWTIME, k) VALUES (TIMESTAMP '2024-01-01 10:00:00', 1), ('2024-01-01 10:00:01', 2);\n"
AGAIN = "insert into S (ROWTIME, k) values ('2024-01-01 10:00:00', 1),  ('2024-01-01 10:00:01', 2); -- as it was\n"
BOUND = "ALTER STREAM s SET ROWTIME BOUND TIMESTAMP '2024-01-01 11:00:00';\n"
THE_END = "ALTER STREAM s END;\n"


def ran(script: str, name: str = "check") -> tuple[int, str]:
    Path("s.sql").write_text(DEFINED + script)
    result = CliRunner().invoke(app, ["run", "s.sql", "--home", "home", "--checkpoint", name])
    return result.exit_code, result.stderr


def logged() -> tuple[int, list[int]]:
    """The number of rows in the stream's log, and the bounds for all writers."""
    found = [entry for entries in scan(Path("home/logs/s"), {}).values() for entry in entries]
    bounds = [entry.at for entry in found if isinstance(entry, Bound)]
    return sum(entry.count for entry in found if isinstance(entry, Rows)), bounds


def test_rows_are_refused_and_bounds_take_effect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert ran(FIRST)[0] == 0
    before = logged()
    assert before[0] == 2
    for same in (FIRST, AGAIN, ""):
        assert ran(same)[0] == 0
        assert logged() == before
    for more in (FIRST + FIRST, FIRST.replace("2)", "3)"), FIRST + "INSERT INTO s (k) VALUES (3);"):
        status, told = ran(more + THE_END)
        assert (status, "R145" in told, "rowtime insert" in told) == (1, True, True)
        assert logged() == before

    status, told = ran("DROP STREAM IF EXISTS other;" + FIRST)
    assert (status, "R145 DROP STREAM other" in told) == (1, True)
    assert logged() == before

    # The statement that the refusal offers.
    assert ran("INSERT INTO s (k) VALUES (3);", "another")[0] == 0
    assert logged()[0] == 3
    Path("row.json").write_text('{"k": 4}')
    assert CliRunner().invoke(app, ["insert", "s", "row.json", "--home", "home"]).exit_code == 0
    before = logged()
    assert before[0] == 4

    assert ran(AGAIN + BOUND)[0] == 0
    assert logged()[1][-1] < END
    assert len(logged()[1]) == len(before[1]) + 1
    assert ran(BOUND + THE_END)[0] == 0
    assert logged()[1][-1] == END
    ended = logged()
    assert ran(FIRST + THE_END + BOUND)[0] == 0
    assert logged() == ended
    assert ended[0] == 4
    Path("drop.sql").write_text("DROP STREAM s;")
    assert CliRunner().invoke(app, ["run", "drop.sql", "--home", "home", "--checkpoint", "third"]).exit_code == 0
    assert not Path("home/logs/s").exists()


def test_a_schema_is_dropped_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    old = "CREATE STREAM app.a (x INT); CREATE STREAM app.b (x INT); INSERT INTO app.a VALUES (1);\n"
    new = "CREATE STREAM app.a (x STRING); INSERT INTO app.a VALUES ('new');\n"
    assert ran(old, "before")[0] == 0
    for name in ("check", "check", "other"):  # the drop of another script removes the rows that exist then
        assert ran("DROP SCHEMA app CASCADE;\n" + new, name)[0] == 0
        assert sorted(Home("home").names()) == ["app.a", "s"]
        kept = scan(Home("home").log_path("app.a"), {}).values()
        assert [entry.count for entries in kept for entry in entries if isinstance(entry, Rows)] == [1]
    status, told = ran("DROP SCHEMA app CASCADE; DROP SCHEMA IF EXISTS b CASCADE;\n" + new)
    assert (status, "R145 DROP SCHEMA b" in told) == (1, True)


def test_an_end_that_waiting_offers_was_ignored_in_the_script_that_waits(spark: SparkSession, tmp_path: Path) -> None:
    script = DEFINED + FIRST + "{}SELECT STREAM COUNT(*) AS n FROM s GROUP BY FLOOR(s.ROWTIME TO MINUTE);"
    got: list[int] = []
    for more in ("", THE_END):
        made = rt.Pipeline(spark, home=tmp_path / "home").sql(script.format(more))
        made.sink("result", lambda batch: got.extend(row["n"] for row in batch.table().to_pylist()))
        made.run_available(tmp_path / "check")
        assert got == ([2] if more else [])

"""``rowtime status`` reads a plan and a journal entry, without Spark."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from rowtime.core.time import to_micros
from rowtime.plan.program import compile_script
from rowtime.state.checkpoint import Checkpoint

if TYPE_CHECKING:
    from typer.testing import Result

SCRIPT = """\
CREATE STREAM clicks (page STRING);
SELECT STREAM FLOOR(c.ROWTIME TO MINUTE) AS m, COUNT(*) AS n FROM clicks c GROUP BY FLOOR(c.ROWTIME TO MINUTE);
"""
AT = to_micros("2024-01-01 00:01:30")
ENTRY: dict[str, Any] = {
    "at": to_micros("2024-06-01"),
    "control": {"query.result": {"sequence": 7, "bound": to_micros("2024-01-01 00:02:00")}},
    "segments": {},
    "rejected": {},
    "outputs": {},
    "totals": {"clicks": {"in": 12, "accepted": 10, "OUT_OF_ORDER": 2}},
    "clocks": {"clicks": {"fast": AT + 60_000_000, "slow": AT}, "query.group": {"": AT}, "query.result": {"": AT}},
    "held": {"query.group/state": 3},
    "sources": {"clicks": {"offsets": {"fast": 8, "slow": 4, "old": 2}, "state": {}, "away": {"old": "idle"}}},
}


@pytest.fixture
def checkpoint(tmp_path: Path) -> Checkpoint:
    made = Checkpoint(tmp_path / "checkpoint")
    made.folder.mkdir()
    made.bind(compile_script(SCRIPT).described())
    return made


def test_status_shows_everything_in_a_journal_entry(rowtime: Callable[..., Result], checkpoint: Checkpoint) -> None:
    checkpoint.journal.commit(41, ENTRY)
    result = rowtime("status", "checkpoint")
    assert result.exit_code == 0, result.stderr
    lines = result.stdout.splitlines()
    assert lines[1].startswith("  tick 41, at 2024-06-01 00:00:00 UTC, ")
    assert lines[2:] == [
        "streams",
        "  clicks: clock 2024-01-01 00:01:30",
        "    fast: clock 2024-01-01 00:02:30, offset 8",
        "    old: no clock, offset 2, set aside: idle",
        "    slow: clock 2024-01-01 00:01:30, offset 4",
        "ledger",
        "  clicks: 12 in, 10 accepted, 2 refused (2 OUT_OF_ORDER)",
        "held",
        "  query.group/state: 3",
        "waiting",
        lines[12],
        "outputs",
        "  query.result: 7 rows, up to 2024-01-01 00:02:00",
    ]
    assert "waits for writer 'slow' of clicks" in lines[12]


def test_if_an_entry_is_damaged_the_one_before_it_is_shown(
    rowtime: Callable[..., Result], checkpoint: Checkpoint
) -> None:
    checkpoint.journal.commit(0, ENTRY)
    checkpoint.journal.commit(1, ENTRY)
    newest = max((checkpoint.folder / "journal").glob("*.json"))
    newest.write_bytes(newest.read_bytes()[:-30])
    result = rowtime("status", "checkpoint")
    assert result.exit_code == 3
    assert result.stdout.splitlines()[1].startswith("  tick 0, at 2024-06-01")
    assert result.stderr.startswith("R406 ")
    assert newest.name in result.stderr
    assert "as it was after tick 0" in result.stderr
    assert "Restore the file" in result.stderr
    told = rowtime("status", "checkpoint", "--json")
    assert told.exit_code == 3
    found = json.loads(told.stdout)
    assert (found["tick"], [problem["code"] for problem in found["problems"]]) == (0, ["R406"])
    waits = rowtime("status", "checkpoint", "--waiting", "--json")
    assert (waits.exit_code, json.loads(waits.stdout)[0]["operator"]) == (3, "query.group")
    assert waits.stderr.startswith("R406 ")
    (checkpoint.folder / "journal" / "000000000000.json").write_bytes(b"{")
    none = rowtime("status", "checkpoint")
    assert (none.exit_code, none.stdout) == (3, "")
    assert "R406" in none.stderr


def test_waiting_says_what_holds_and_what_to_type(rowtime: Callable[..., Result], checkpoint: Checkpoint) -> None:
    checkpoint.journal.commit(0, ENTRY)
    text = rowtime("status", "checkpoint", "--waiting").stdout
    assert text.startswith("query.group holds 3 open groups")
    assert "rowtime bound clicks '<time>'" in text
    (wait,) = json.loads(rowtime("status", "checkpoint", "--waiting", "--json").stdout)
    assert (wait["operator"], wait["held"], wait["writer"]) == ("query.group", 3, "slow")


PANES = """\
CREATE STREAM a (n INT, t TIMESTAMP) EVENT TIME (t, LAG INTERVAL '10' SECOND);
CREATE STREAM b (n INT, t TIMESTAMP);
CREATE VIEW v EVENT TIME (t, MODE MANUAL) AS SELECT STREAM * FROM b;
CREATE VIEW u AS SELECT STREAM * FROM a UNION ALL SELECT STREAM * FROM v;
SELECT STREAM COUNT(*) AS c FROM u GROUP BY PANES(t, DURATION INTERVAL '1' HOUR);
"""


@pytest.mark.parametrize(
    ("regions", "stream", "said"),
    [
        (
            [AT, AT + 1],
            "a",
            "of its event time t, of a, has stopped there: send a row whose t is later by more than the lag",
        ),
        (
            [AT + 1, AT],
            "b",
            "has stopped there: type rowtime bound v '<time>' --checkpoint DIR, or end it for good: ALTER STREAM b",
        ),
    ],
)
def test_panes_wait_for_the_bound_of_their_event_time(
    rowtime: Callable[..., Result], tmp_path: Path, regions: list[int], stream: str, said: str
) -> None:
    made = Checkpoint(tmp_path / "panes")
    made.folder.mkdir()
    made.bind(compile_script(PANES).described())
    clocks = {name: {"": AT + 60_000_000} for name in compile_script(PANES).described().operators}
    control = {"u.union.event_time": {"bound": AT, "regions": regions}}
    made.journal.commit(0, {**ENTRY, "control": control, "clocks": clocks, "held": {"query/state": 2}, "sources": {}})
    (wait,) = json.loads(rowtime("status", "panes", "--waiting", "--json").stdout)
    assert (wait["operator"], wait["bound"], wait["stream"]) == ("query", "2024-01-01 00:01:30", stream)
    assert said in wait["release"]
    text = rowtime("status", "panes", "--waiting").stdout
    assert text.startswith("query holds 2 open groups at 2024-01-01 00:01:30: waits for ")


def test_without_held_rows_nothing_waits(rowtime: Callable[..., Result], checkpoint: Checkpoint) -> None:
    checkpoint.journal.commit(0, {**ENTRY, "held": {}})
    assert rowtime("status", "checkpoint", "--waiting").stdout == "nothing waits\n"


def test_json_has_the_same_in_plain_values(rowtime: Callable[..., Result], checkpoint: Checkpoint) -> None:
    checkpoint.journal.commit(3, ENTRY)
    found = json.loads(rowtime("status", "checkpoint", "--json").stdout)
    assert found["tick"] == 3
    assert found["ledger"] == ENTRY["totals"]
    assert found["outputs"] == [{"sink": "query.result", "rows": 7, "bound": "2024-01-01 00:02:00"}]
    assert found["streams"][0]["writers"][1] == {"writer": "old", "clock": None, "offset": 2, "set_aside": "idle"}


def test_before_the_first_tick_the_status_is_short(rowtime: Callable[..., Result], checkpoint: Checkpoint) -> None:
    result = rowtime("status", "checkpoint")
    assert (result.exit_code, result.stdout) == (0, "checkpoint\n  no tick yet\n")
    assert rowtime("status", "checkpoint", "--json").exit_code == 0


def test_a_folder_that_is_no_checkpoint_is_refused(rowtime: Callable[..., Result], tmp_path: Path) -> None:
    result = rowtime("status", "nowhere")
    assert result.exit_code == 1
    assert "nowhere is not a checkpoint" in result.stderr
    assert not (tmp_path / "nowhere").exists()


def test_a_checkpoint_of_a_newer_format_is_refused(rowtime: Callable[..., Result], checkpoint: Checkpoint) -> None:
    checkpoint.journal.commit(0, ENTRY)
    path = next((checkpoint.folder / "journal").iterdir())
    path.write_text(json.dumps({**json.loads(path.read_text()), "format": 99}))
    result = rowtime("status", "checkpoint")
    assert result.exit_code == 1
    assert "R402" in result.stderr


def test_status_imports_no_spark(process: Callable[..., Any], checkpoint: Checkpoint) -> None:
    checkpoint.journal.commit(0, ENTRY)
    code = "import sys; from rowtime.cli.status import status_of; from pathlib import Path\n"
    code += "status_of(Path(sys.argv[1])); sys.exit('pyspark' in sys.modules)"
    assert process(code, str(checkpoint.folder)).returncode == 0, sys.executable


@pytest.mark.parametrize(
    ("using", "said"),
    [
        ("csv OPTIONS (path '/in')", "r: clock 2024-01-01 00:01:30 (when its newest file was changed, not a time"),
        ("csv OPTIONS (path '/in', rowtime.column 't')", "r: clock 2024-01-01 00:01:30\n"),
        ("kafka OPTIONS (kafka.bootstrap.servers 'h:1', subscribe 'r')", "(the timestamps of its records, not a time"),
    ],
    ids=["files", "a column", "records"],
)
def test_whose_time_a_clock_is(rowtime: Callable[..., Result], tmp_path: Path, using: str, said: str) -> None:
    script = f"CREATE STREAM r (t TIMESTAMP, n INT) USING {using};\n"
    script += "SELECT STREAM COUNT(*) AS c FROM r GROUP BY FLOOR(r.ROWTIME TO MINUTE);"
    made = Checkpoint(tmp_path / "checkpoint")
    made.folder.mkdir()
    made.bind(compile_script(script).described())
    clocks = {"r": {"files": AT}, "query.group": {"": AT}, "query.result": {"": AT}}
    sources = {"r": {"offsets": {"files": 8}, "state": {}, "away": {}}}
    made.journal.commit(0, {**ENTRY, "totals": {}, "clocks": clocks, "sources": sources})
    text = rowtime("status", "checkpoint").stdout
    assert said in text
    waits = "waits for the next file of r, in /in; it may have earlier rows: add a file with a later row"
    assert (waits in text) == using.startswith("csv")

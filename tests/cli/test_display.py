"""The displays of a run: figures, lines and the screen, without Spark."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import Any

import pytest
from rich.console import Console

from rowtime.cli.display import Display, Lines, Snapshot, _left, screen
from rowtime.cli.figures import Figures, Reached
from rowtime.plan.waiting import Wait

WAIT = Wait("query.group", "group by", 3, "2024-01-01 00:01:30", "clicks", "main", "type rowtime bound clicks '<time>'")


def progress(tick: int, rows: int, out: int = 0, late: int = 0) -> dict[str, Any]:
    ledger = {"sorted": {"in": rows, "accepted": rows - late, "LATE": late}}
    return {
        "batchId": tick,
        "batchDuration": 500,
        "numInputRows": rows,
        "sources": [{"description": "clicks (log)", "numInputRows": rows, "clock": f"2024-01-01 00:00:0{tick}"}],
        "sink": {"description": "query.result (console)", "numOutputRows": out},
        "observedMetrics": ledger,
    }


def seen(figures: Figures, now: float, *waits: Wait) -> Snapshot:
    return Snapshot(figures, waits, [("query.result", 5, "2024-01-01 00:01:00")], now)


def test_figures_add_up_over_ticks() -> None:
    figures = Figures(began=0.0)
    figures.take(progress(0, 100, out=5, late=2), now=1.0)
    figures.take(progress(1, 50, late=1), now=2.0)
    assert figures.summary(3.0) == {
        "ticks": 2,
        "rows_in": 150,
        "rows_out": 5,
        "rows_refused": 3,
        "refused": {"sorted": {"LATE": 3}},
        "clocks": {"clicks": "2024-01-01 00:00:01"},
        "seconds": 3.0,
    }


def test_the_rate_is_that_of_the_last_seconds() -> None:
    figures = Figures(began=0.0)
    figures.take(progress(0, 1_000_000), now=1.0)
    figures.take(progress(1, 300), now=10.0)
    assert figures.rate(10.0) == 300 / 0.5
    assert figures.rate(12.5) == 300 / 3.0
    assert figures.rate(100.0) == 300 / 90.5


def test_the_rate_does_not_fall_to_zero_while_a_long_tick_computes() -> None:
    figures = Figures(began=0.0)
    assert figures.rate(1.0) == 0.0
    figures.take(progress(0, 1_000), now=1.0)
    rates = [figures.rate(float(now)) for now in range(1, 60)]
    assert rates == sorted(rates, reverse=True)
    assert rates[-1] > 10


def test_a_tick_without_rows_does_not_turn_the_rate_to_zero() -> None:
    figures = Figures(began=0.0)
    figures.take(progress(0, 1_000), now=1.0)
    figures.take(progress(1, 0), now=20.0)
    assert figures.rate(20.0) == 1_000 / 19.5


def test_a_table_is_counted_in_versions_until_all_of_them_are_known() -> None:
    figures = Figures(began=0.0)
    figures.take(with_backlog(0, 1, 4, "versions"), now=1.0)
    assert seen(figures, 1.0).share == "20 %"
    assert _left(figures.reached["clicks"]) == "4 versions left"
    ahead = figures.ahead({"clicks": {"unit": "versions", "taken": 3, "left": 1}})
    assert ahead["clicks"] == Reached("versions", 1, 4)
    figures.take(with_backlog(1, 1_000, 3_000, "bytes"), now=2.0)
    assert figures.reached["clicks"] == Reached("bytes", 1_000, 3_000), "versions and bytes are not added up"
    assert figures.ahead({"clicks": {"unit": "rows", "taken": 3, "left": 1}})["clicks"] == Reached("rows", 0, 4)


def with_backlog(tick: int, taken: int, left: int, unit: str = "rows") -> dict[str, Any]:
    found = progress(tick, taken)
    found["sources"][0]["backlog"] = {"unit": unit, "taken": taken, "left": left}
    return found


def test_the_progress_towards_a_known_end_is_reported() -> None:
    figures, file = Figures(began=0.0), io.StringIO()
    lines = Lines(file)
    assert seen(figures, 0.5).share == ""
    figures.take(with_backlog(0, 100, 300), now=1.0)
    lines.show(seen(figures, 1.0))
    figures.take(with_backlog(1, 299, 1), now=3.0)
    lines.show(seen(figures, 3.0))
    figures.take(with_backlog(2, 1, 0), now=5.0)
    lines.show(seen(figures, 5.0))
    shares = [line.split("  ")[2] for line in file.getvalue().splitlines()]
    assert shares == ["25 %", "99 %", "100 %"], "100 % only once nothing is left"


def test_the_input_of_the_current_tick_counts_as_unread() -> None:
    figures = Figures(began=0.0)
    figures.take(with_backlog(0, 1_000, 3_000, "bytes"), now=1.0)
    snapshot = replace(seen(figures, 2.0), backlogs={"clicks": {"unit": "bytes", "taken": 2_000, "left": 5_000}})
    assert snapshot.share == "12 %"
    console = Console(file=io.StringIO(), width=160)
    console.print(screen(replace(snapshot, doing="tick 1: clock pass, 8 rows, for 12 s")))
    text = " ".join(console.file.getvalue().split())  # type: ignore[attr-defined]
    assert "tick 0 12 % 1,000 rows" in text
    assert "now tick 1: clock pass, 8 rows, for 12 s" in text
    assert "1,000 rows 7.0 kB left" in text


def test_a_line_says_now_and_then_what_a_slow_tick_does() -> None:
    figures, file = Figures(began=0.0), io.StringIO()
    lines = Lines(file)
    for now in range(1, 30):
        lines.show(replace(seen(figures, float(now)), doing=f"tick 0: planning, for {now} s"))
    assert file.getvalue().splitlines() == [f"tick 0: planning, for {now} s" for now in (4, 14, 24)]
    lines.show(seen(figures, 31.0, WAIT))
    assert file.getvalue().splitlines()[-1] == f"waiting  {WAIT}", "while it computes, nothing waits for input"


def test_lines_come_at_most_once_a_second_and_none_is_lost() -> None:
    figures, file = Figures(began=0.0), io.StringIO()
    lines = Lines(file)
    for tick in range(5):
        figures.take(progress(tick, 10, out=1), now=tick / 10)
        lines.show(seen(figures, tick / 10))
    assert file.getvalue().count("\n") == 1
    lines.finish(seen(figures, 0.5))
    first, last = file.getvalue().splitlines()
    assert first.startswith("tick 0  +10 rows")
    assert last.startswith("tick 4  +40 rows")
    assert last.endswith("out 5  clicks at 2024-01-01 00:00:04")


def test_a_line_says_what_waits_without_output() -> None:
    figures, file = Figures(began=0.0), io.StringIO()
    lines = Lines(file)
    figures.take(progress(0, 10), now=0.5)
    for now in (1.0, 2.0, 4.0, 4.5, 5.0, 40.0):
        lines.show(seen(figures, now, WAIT))
    waiting = [line for line in file.getvalue().splitlines() if line.startswith("waiting")]
    assert waiting == [f"waiting  {WAIT}"] * 2
    assert "waits for writer 'main' of clicks; type rowtime bound clicks '<time>'" in waiting[0]


def test_a_failing_tick_is_reported_each_time_and_forgotten_once_it_succeeds() -> None:
    figures, file = Figures(began=0.0), io.StringIO()
    lines = Lines(file)
    for failures in (1, 2):
        figures.take({"failure": "no broker", "failures": failures}, now=0.1)
        lines.show(seen(figures, 0.1))
        lines.show(seen(figures, 0.1))
    figures.take(progress(0, 10), now=0.2)
    lines.show(seen(figures, 0.2))
    assert file.getvalue().splitlines()[:2] == [
        "tick failed (try 1), trying again: no broker",
        "tick failed (try 2), trying again: no broker",
    ]
    assert figures.failure == ""


def test_the_screen_shows_clocks_ledger_outputs_and_waits() -> None:
    figures = Figures(began=0.0)
    figures.take(progress(3, 1234, late=2), now=1.0)
    console = Console(file=io.StringIO(), width=160)
    console.print(screen(seen(figures, 1.0, WAIT)))
    text = " ".join(console.file.getvalue().split())  # type: ignore[attr-defined]
    for part in (
        "tick 3 1,234 rows",
        "clicks clock 2024-01-01 00:00:03 1,234 rows",
        "at sorted 1,234 in, 1,232 accepted, 2 refused (2 LATE)",
        "to query.result 5 rows, up to 2024-01-01 00:01:00",
        "query.group holds 3 open groups",
    ):
        assert part in text


def test_a_display_without_a_query_shows_what_ticks_say() -> None:
    file = io.StringIO()
    with Display(file=file) as display:
        display.listener(progress(0, 10, out=2, late=1))
    lines = file.getvalue().splitlines()
    assert lines[0].startswith("tick 0  +10 rows")
    assert lines[1].startswith("done: 10 rows in, 2 out, 1 refused, in 1 tick")
    assert lines[2] == "refused at sorted: 1 LATE"


def test_after_an_error_there_is_no_summary() -> None:
    file = io.StringIO()
    with pytest.raises(ZeroDivisionError), Display(file=file):
        divmod(1, 0)
    assert file.getvalue() == ""


def test_a_file_that_is_set_aside_is_reported_at_once() -> None:
    file = io.StringIO()
    tick = progress(0, 0)
    tick["sources"][0]["files"] = [{"file": "/in/a.csv", "code": "R520", "why": "it is empty"}]
    Display(plain=True, file=file).listener(tick)
    assert file.getvalue() == "R520 /in/a.csv: it is empty\n"

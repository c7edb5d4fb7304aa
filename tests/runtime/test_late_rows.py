"""How late the late rows are, in `status` and at the end of a run; the advice is followed."""

from __future__ import annotations

import json
import re
from datetime import datetime, timedelta
from html import unescape
from typing import TYPE_CHECKING, Any

import pytest

import rowtime as rt
from rowtime.cli.status import as_lines
from rowtime.plan.lateness import LateRows, late_rows
from rowtime.plan.waiting import waiting
from rowtime.state.checkpoint import Checkpoint

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession

START = datetime(2026, 1, 1)  # noqa: DTZ001 - UTC, as in the files
SORTED = "SELECT STREAM t AS ROWTIME, n FROM s ORDER BY t WITHIN INTERVAL '2' SECOND{guard}"
GROUPED = "SELECT STREAM COUNT(*) AS c FROM s GROUP BY FLOOR(t TO SECOND) WITHIN INTERVAL '1' SECOND{guard}"


def _run(
    spark: SparkSession, folder: Path, query: str, seconds: Sequence[int], cuts: Sequence[int] = ()
) -> tuple[Checkpoint, dict[str, int]]:
    """Read rows at these times from one file per tick; return the checkpoint and the counts of the gate."""
    (folder / "in").mkdir(parents=True)
    edges = [0, *cuts, len(seconds)]
    for number, (start, stop) in enumerate(zip(edges, edges[1:], strict=False)):
        lines = (f"{START + timedelta(seconds=seconds[n])},{n}\n" for n in range(start, stop))
        (folder / f"in/{number}.csv").write_text("".join(lines))
    sql = f"CREATE STREAM s (t TIMESTAMP, n INT) USING csv OPTIONS (path '{folder / 'in'}'); {query}"
    pipeline = rt.Pipeline(spark, home=folder / "home").sql(sql).sink("result", lambda _: None)
    ran = pipeline.run_available(folder / "ck", end=True, limits=rt.Limits(files=1))
    place = Checkpoint(folder / "ck")
    counts: dict[str, int] = next(c for name, c in ran.ledger.items() if name != "s")
    return place, counts


def _late(place: Checkpoint) -> list[LateRows]:
    assert place.plan is not None
    return late_rows(place.plan, place.journal.last() or {})


def _blamed(place: Checkpoint) -> list[Any]:
    assert place.plan is not None
    return [one for one in waiting(place.plan, place.journal.last() or {}, 0) if one.kind == "poisoned clock"]


DISORDER = [n - (4 if n % 2 else 0) for n in range(100)]  # every second row is 3 s late; the tolerance is 2 s
ONCE = [n - (40 if n % 100 == 99 else 4 if n % 2 else 0) for n in range(600)]


@pytest.mark.parametrize("times", [DISORDER, ONCE], ids=["one lateness", "a few that are far later"])
@pytest.mark.parametrize("cuts", [(), (3, 4, 50)], ids=str)
@pytest.mark.parametrize("query", [SORTED, GROUPED], ids=["order by", "group by"])
def test_the_advised_tolerance_accepts_99_of_100_late_rows(
    spark: SparkSession, tmp_path: Path, query: str, cuts: Sequence[int], times: Sequence[int]
) -> None:
    place, counts = _run(spark, tmp_path / "first", query.format(guard=""), times, cuts)
    (late,) = _late(place)
    assert late.rows == counts["LATE"] > 40
    assert _blamed(place) == [], "no single row is to blame"
    assert f"{'GROUP' if query is GROUPED else 'ORDER'} BY … WITHIN INTERVAL '" in str(late)
    found = re.search(r"WITHIN (INTERVAL '\d+' SECOND) would have accepted 99 % of them", str(late))
    assert found
    wider = re.sub(r"INTERVAL '\d' SECOND", found[1], query).format(guard="")
    _, then = _run(spark, tmp_path / "then", wider, times, cuts)
    assert then.get("LATE", 0) <= counts["LATE"] * 0.01, "the advice is followed"
    short = re.sub(r"INTERVAL '\d' SECOND", "INTERVAL '2' SECOND", query).format(guard="")
    assert short != wider, "and less would not do"


def test_status_says_how_late_rows_are(spark: SparkSession, tmp_path: Path) -> None:
    from starlette.testclient import TestClient
    from typer.testing import CliRunner

    from rowtime.cli.main import app
    from rowtime.client.home import Home
    from rowtime.observe.metrics import LATENESS, values_of
    from rowtime.web.guard import Access
    from rowtime.web.server import Console
    from rowtime.web.watched import Watched

    place, _ = _run(spark, tmp_path, SORTED.format(guard=""), DISORDER)
    (late,) = _late(place)
    assert (late.median, late.greatest, late.within) == (3_000_000, 3_000_000, 3_000_000)
    told = CliRunner().invoke(app, ["status", str(tmp_path / "ck"), "--json"])
    status = json.loads(told.stdout)
    text = (
        "query: 50 of 100 rows (50 %) were late, half of them by at most 3 s, the latest by 3 s; "
        "ORDER BY … WITHIN INTERVAL '3' SECOND would have accepted 99 % of them"
    )
    assert [one["text"] for one in status["late"]] == [text]
    assert f"  {text}" in list(as_lines(status))
    page = TestClient(Console(Watched(Home(tmp_path / "home"), [str(tmp_path / "ck")]), Access(port=8642)).app)
    page.base_url = "http://127.0.0.1:8642"
    link = re.search(r'href="(/p/[^"]*)/graph"', page.get("/").text)
    assert link
    assert f"<p>{text}.</p>" in unescape(page.get(f"{link[1]}/waiting").text)
    assert place.plan is not None
    values = values_of(place.plan, place.journal.last() or {}, 0)
    assert {value.labels[1]: value.value for value in values if value.family is LATENESS} == {
        "0.5": 3, "0.99": 3, "1": 3
    }  # fmt: skip


@pytest.mark.parametrize("first", [True, False], ids=["first", "later"])
@pytest.mark.parametrize("ahead", [30, 10**9], ids=["half a minute", "decades"])
def test_a_row_that_is_to_blame_is_named_and_the_guard_in_the_advice_refuses_it(
    spark: SparkSession, tmp_path: Path, ahead: int, first: bool
) -> None:
    times = [*([] if first else [0, 1, 2]), ahead, *range(3, 30)]
    place, counts = _run(spark, tmp_path / "first", SORTED.format(guard=""), times)
    assert counts["LATE"] >= 20
    (blamed,) = _blamed(place)
    (late,) = _late(place)
    assert late.advice == "", "no tolerance is advised if a single row is to blame"
    found = re.search(
        r"write ORDER BY … WITHIN …( EARLY BEYOND INTERVAL '[\d.]+' \w+(?: RESYNC AFTER \d+ ROWS)?)", str(blamed)
    )
    assert found
    place, then = _run(spark, tmp_path / "then", SORTED.format(guard=found[1]), times)
    assert then == {"in": len(times), "accepted": len(times) - 1, "EARLY": 1}, "the advice is followed"
    assert _late(place) == []


def test_the_lateness_is_the_same_in_large_ticks(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small, _ = _run(spark, tmp_path / "small", SORTED.format(guard=""), ONCE, (10, 400))
    large, _ = _run(spark, tmp_path / "large", SORTED.format(guard=""), ONCE)
    controls = [(place.journal.last() or {})["control"]["query"] for place in (small, large)]
    assert controls[0]["lateness"] == controls[1]["lateness"]
    raised = [[[*row[1:]] for row in control["raised"].values()] for control in controls]
    assert raised[0] == raised[1]


PANES = (
    "CREATE VIEW e EVENT TIME (t) AS SELECT STREAM t, n FROM s; SELECT STREAM COUNT(*) AS c FROM e "
    "GROUP BY PANES(t, DURATION INTERVAL '1' SECOND, DISCARD AGE INTERVAL '{age}' SECOND)"
)


def test_panes_advise_a_discard_age_that_accepts_the_late_rows(spark: SparkSession, tmp_path: Path) -> None:
    place, _ = _run(spark, tmp_path / "first", PANES.format(age=2), DISORDER, (30,))
    (late,) = _late(place)
    assert (late.rows, late.median, late.greatest) == (50, 3_000_000, 3_000_000)
    assert late.advice == "DISCARD AGE INTERVAL '3' SECOND"
    assert _blamed(place) == [], "no single row is to blame"
    place, _ = _run(spark, tmp_path / "then", PANES.format(age=3), DISORDER)
    assert _late(place) == [], "the advice is followed"


def _events(spark: SparkSession, folder: Path, sql: str, seconds: Sequence[int], per_file: int) -> Checkpoint:
    """Read rows at these times by a script with the folder of its files as ``{0}``; they last 10 s, or are starts."""
    lasting = "EDGE" not in sql
    for name in ("in", "other"):
        (folder / name).mkdir(parents=True)
    for number in range(0, len(seconds), per_file):
        times = (
            (START + timedelta(seconds=at), START + timedelta(seconds=at + 10)) for at in seconds[number:][:per_file]
        )
        (folder / f"in/{number:03}.csv").write_text(
            "".join(f"{start},{stop if lasting else ''},1\n" for start, stop in times)
        )
    pipeline = rt.Pipeline(spark, home=folder / "home").sql(sql.format(folder)).sink("result", lambda _: None)
    pipeline.run_available(folder / "ck", limits=rt.Limits(files=1))
    return Checkpoint(folder / "ck")


STREAM = "CREATE STREAM s (t TIMESTAMP, u TIMESTAMP, n INT) {} USING csv OPTIONS (path '{{0}}/in')"
DELAYED = "EVENT SHAPE {} BOUND EVERY {} DELAY INTERVAL '{{1}}' SECOND"
VIEW = STREAM.format("").replace(" s ", " r ") + "; CREATE VIEW s AS SELECT STREAM t, u, n FROM r "
SHAPES = {
    "points": STREAM.format(DELAYED.format("POINT (t)", "1 ROW")),
    "intervals": STREAM.format(DELAYED.format("INTERVAL (t, u)", "INTERVAL '2' SECOND")),
    "edges": STREAM.format(DELAYED.format("EDGE (t, u)", "3 ROWS")),
    "a view": VIEW + DELAYED.format("POINT (t)", "1 ROW"),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_events_advise_a_delay_that_accepts_the_late_ones_however_ticks_cut_them(
    spark: SparkSession, tmp_path: Path, shape: str
) -> None:
    sql = SHAPES[shape].replace("{1}", "2") + "; SELECT STREAM n FROM s"
    (whole,), (cut,) = (_late(_events(spark, tmp_path / str(n), sql, DISORDER, n)) for n in (200, 7))
    assert whole == cut
    assert whole.rows > 15
    found = re.fullmatch(r"BOUND EVERY … DELAY (INTERVAL '\d' SECOND)", whole.advice)
    assert found
    wider = re.sub(r"DELAY INTERVAL '\d' SECOND", f"DELAY {found[1]}", sql)
    assert wider != sql
    assert _late(_events(spark, tmp_path / "then", wider, DISORDER, 7)) == [], "the advice is followed"


def test_a_source_says_how_far_rows_are_out_of_order(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    lines = (f"{START + timedelta(seconds=second)},{n}\n" for n, second in enumerate(DISORDER))
    (tmp_path / "in/1.csv").write_text("".join(lines))
    sql = f"CREATE STREAM s (t TIMESTAMP, n INT) USING csv OPTIONS (path '{tmp_path / 'in'}', rowtime.column 't');"
    pipeline = rt.Pipeline(spark, home=tmp_path / "home").sql(f"{sql} SELECT STREAM n FROM s")
    ran = pipeline.sink("result", lambda _: None).run_available(tmp_path / "ck", end=True)
    assert ran.ledger["s"]["OUT_OF_ORDER"] == 50
    (late,) = _late(Checkpoint(tmp_path / "ck"))
    assert (late.gate, late.rows, late.greatest) == ("s", 50, 3_000_000)
    assert "ORDER BY … WITHIN INTERVAL '3' SECOND" in late.advice

"""How late events are below imported bounds and bounds that writers give, and late end edges: status and metrics."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

import rowtime as rt
from rowtime.cli.main import app
from rowtime.observe.metrics import LATENESS, values_of
from rowtime.plan.lateness import LateRows, late_rows
from rowtime.state.checkpoint import Checkpoint
from tests.runtime.test_imported_bounds import Played, _bound, _point, _price

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.sampled(8)

Item = tuple[str, dict[str, Any] | int]  # the writer, and a row or a bound (µs)
MICRO = 1e-6


def _late(folder: Path) -> list[LateRows]:
    place = Checkpoint(folder)
    assert place.plan is not None
    return late_rows(place.plan, place.journal.last() or {})


def _said(folder: Path) -> list[str]:
    """What `rowtime status` says of late rows, as text and as JSON."""
    shown = CliRunner().invoke(app, ["status", str(folder)]).stdout
    texts = [
        one["text"] for one in json.loads(CliRunner().invoke(app, ["status", str(folder), "--json"]).stdout)["late"]
    ]
    assert all(text in shown for text in texts)
    return texts


def _metrics(folder: Path) -> dict[tuple[str, ...], float]:
    place = Checkpoint(folder)
    assert place.plan is not None
    values = values_of(place.plan, place.journal.last() or {}, 0)
    return {value.labels: round(value.value / MICRO) for value in values if value.family is LATENESS}


def _cuts(items: Sequence[Any], *lengths: int) -> list[list[Sequence[Any]]]:
    return [[items[n : n + length] for n in range(0, len(items), length)] for length in lengths]


# Prices since 97, 95 and 90 come when the bound of 100 has been there.
IMPORTED = [_price(0, 1), _point(5), _bound(100), _price(97, 2), _price(95, 3), _price(90, 4), _point(101)]
IN_WORDS = "{late} of {of} rows ({share} %) were late, half of them by at most 0.005 ms, the latest by 0.01 ms"


@pytest.mark.parametrize("delay", [0, 3])
def test_events_below_imported_bounds_say_which_delay_of_these_accepts_them(
    spark: SparkSession, tmp_path: Path, delay: int
) -> None:
    told = {"late": "DROP", "delay": f" DELAY INTERVAL '{delay}' MICROSECOND" if delay else ""}
    late = 2 if delay else 3  # the others were as late as without a DELAY
    for number, pieces in enumerate(_cuts(IMPORTED, 1, 3, len(IMPORTED))):
        played = Played(spark, tmp_path / str(number), **told).play(*pieces)
        assert played.query.ledger["prices.events"]["LATE"] == late
        (text,) = _said(played.checkpoint)
        words = IN_WORDS.format(late=late, of=4, share=f"{25 * late}")
        assert text == (
            f"prices.events: {words}; BOUND FROM data DELAY INTERVAL '0.000010' SECOND would have accepted 99 % of them"
        )
        assert _metrics(played.checkpoint) == {
            ("prices.events", "0.5"): 5, ("prices.events", "0.99"): 10, ("prices.events", "1"): 10
        }  # fmt: skip
    followed = Played(spark, tmp_path / "then", late="DROP", delay=" DELAY INTERVAL '0.000010' SECOND").play(IMPORTED)
    assert followed.query.ledger["prices.events"] == {"in": 4, "accepted": 4}
    assert _said(followed.checkpoint) == []


EVENTS = "CREATE STREAM s (t TIMESTAMP, u TIMESTAMP, n INT) EVENT SHAPE {}; SELECT STREAM n FROM s"


def _run(
    spark: SparkSession, folder: Path, shape: str, pieces: Sequence[Sequence[Item]]
) -> tuple[Path, dict[str, int]]:
    """Send rows and bounds to s, in one run for each piece; return the checkpoint and what its gate counts."""
    pipeline = rt.Pipeline(spark, home=folder / "home").sql(EVENTS.format(shape)).sink("result", lambda _: None)
    query = pipeline.run_available(folder / "ck")
    for piece in pieces:
        for name, what in piece:
            with rt.writer("s", home=folder / "home", writer=name) as writer:
                if isinstance(what, int):
                    writer.set_rowtime_bound(what)
                else:
                    writer.insert([what])
        query = pipeline.run_available(folder / "ck")
    return folder / "ck", query.ledger["s"]


def _event(t: int, u: int | None = None, *, writer: str = "x") -> Item:
    return writer, {"t": t, "u": u, "n": 1}


GIVEN = [_event(5), _event(7, writer="y"), ("x", 100), _event(97), _event(95), _event(90), _event(60, writer="y")]


def test_events_below_bounds_that_their_writer_gave_say_how_much_later_to_give_these(
    spark: SparkSession, tmp_path: Path
) -> None:
    for number, pieces in enumerate(_cuts(GIVEN, 1, 4, len(GIVEN))):
        folder, counts = _run(spark, tmp_path / str(number), "POINT (t) ON LATE DROP", pieces)
        assert counts == {"in": 6, "accepted": 3, "LATE": 3}, "y has given no bound, so 60 is in time"
        (text,) = _said(folder)
        advice = "bounds that its writers give INTERVAL '0.000010' SECOND later would have accepted 99 % of them"
        assert text == f"s: {IN_WORDS.format(late=3, of=6, share=50)}; {advice}"
        assert _metrics(folder) == {("s", "0.5"): 5, ("s", "0.99"): 10, ("s", "1"): 10}
    later = [(who, 90 if what == 100 else what) for who, what in GIVEN]
    folder, counts = _run(spark, tmp_path / "then", "POINT (t) ON LATE DROP", [later])
    assert (counts, _said(folder)) == ({"in": 6, "accepted": 6}, [])


def test_a_bound_that_a_script_sets_counts_for_what_the_writers_send_after_it(
    spark: SparkSession, tmp_path: Path
) -> None:
    shape = "POINT (t) ON LATE DROP"
    _run(spark, tmp_path, shape, [[_event(5_000_000)]])
    stream, query = EVENTS.format(shape).split("; ")
    sql = f"{stream}; ALTER STREAM s SET ROWTIME BOUND TIMESTAMP '1970-01-01 00:00:10'; {query}"
    pipeline = rt.Pipeline(spark, home=tmp_path / "home").sql(sql).sink("result", lambda _: None)
    pipeline.run_available(tmp_path / "ck")
    with rt.writer("s", home=tmp_path / "home", writer="x") as writer:
        writer.insert([{"t": 6_000_000, "u": None, "n": 2}, {"t": 12_000_000, "u": None, "n": 3}])
    assert pipeline.run_available(tmp_path / "ck").ledger["s"] == {"in": 3, "accepted": 2, "LATE": 1}
    assert _said(tmp_path / "ck") == [
        "s: 1 of 3 rows was 4 s late; bounds that its writers give INTERVAL '4' SECOND later would have accepted it"
    ]


def test_a_late_end_edge_is_as_late_as_the_end_that_it_gives(spark: SparkSession, tmp_path: Path) -> None:
    items = [_event(5), ("x", 20), _event(5, 12), _event(30), _event(30, 40)]
    for number, pieces in enumerate(_cuts(items, 1, 2, len(items))):
        folder, counts = _run(spark, tmp_path / str(number), "EDGE (t, u) ON LATE DROP", pieces)
        assert counts == {"in": 4, "accepted": 3, "LATE": 1}
        (text,) = _said(folder)
        advice = "bounds that its writers give INTERVAL '0.000010' SECOND later would have accepted it"
        assert text == f"s: 1 of 4 rows was 0.008 ms late; {advice}"
        assert _metrics(folder) == {("s", "0.5"): 10, ("s", "0.99"): 10, ("s", "1"): 8}


def test_late_end_edges_below_generated_bounds_advise_a_delay_that_accepts_them(
    spark: SparkSession, tmp_path: Path
) -> None:
    shape = "EDGE (t, u) ON LATE DROP BOUND EVERY 1 ROW DELAY INTERVAL '{}' MICROSECOND"
    items = [_event(5), _event(8), _event(30), _event(5, 12), _event(8, 29), _event(40), _event(30, 25)]
    for number, pieces in enumerate(_cuts(items, 1, 4, len(items))):
        folder, counts = _run(spark, tmp_path / str(number), shape.format(2), pieces)
        assert counts["LATE"] == 1  # the last one ends before it has begun
        assert [(late.rows, late.greatest, late.within) for late in _late(folder)] == [(1, 18, 20)]
        assert "BOUND EVERY … DELAY INTERVAL '0.000020' SECOND would have accepted it" in _said(folder)[0]
    folder, counts = _run(spark, tmp_path / "then", shape.format(20), [items])
    assert counts.get("LATE", 0) == 0
    assert _said(folder) == []

"""Timeline: the clocks after each tick, and the reason for waiting."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from rowtime.core.time import BEGINNING, END, MINUTE, SECOND, to_micros
from rowtime.state.costs import KEY
from rowtime.web.moments import Moment
from rowtime.web.views.timeline import BARS, Window, _axis, _density, _joined, _near
from tests.web.conftest import address
from tests.web.generated import Made

if TYPE_CHECKING:
    from starlette.testclient import TestClient

Shown = Callable[..., dict[str, Any]]


@pytest.fixture
def shown(console: Callable[..., TestClient]) -> Shown:
    client = console()
    place = address(client, "factory")

    def ask(**asked: int) -> dict[str, Any]:
        found: dict[str, Any] = client.get(f"{place}/timeline.json", params=asked).json()
        return found

    return ask


def lane(found: dict[str, Any], name: str) -> dict[str, Any]:
    (one,) = (one for one in found["lanes"] if one["name"] == name)
    return dict(one)


def test_everything_with_a_clock_or_held_rows_has_a_lane_sources_first(shown: Shown) -> None:
    names = [one["name"] for one in shown()["lanes"]]
    assert names == ["readings", "sorted", "doors", "per_minute.group", "per_minute", "per_minute.sink"]


def test_a_lane_has_its_bound_its_held_and_its_refused_rows(shown: Shown) -> None:
    group, sort = lane(shown(), "per_minute.group"), lane(shown(), "sorted")
    assert group["bound"]["text"] == "2026-03-02 09:13:00"
    assert [bar["rows"] for bar in group["bars"]] == [3] * 7
    assert group["bars"][0]["text"] == "2026-03-02 09:13:00 to 2026-03-02 09:14:00"
    assert sort["refused"] == {"LATE": 22}
    window = {"from": to_micros("2026-03-02 08:50"), "to": to_micros("2026-03-02 09:20")}
    sort = lane(shown(**window), "sorted")
    assert sum(mark["count"] for mark in sort["marks"]) == 22
    assert {(mark["reason"], mark["outside"]) for mark in sort["marks"]} == {("LATE", False)}
    later = {"from": to_micros("2026-03-03 08:50"), "to": to_micros("2026-03-03 09:20")}
    marks = lane(shown(**later), "sorted")["marks"]
    assert marks == [{"place": 0.0, "count": 22, "reason": "LATE", "outside": True}], "none is left out"


def test_the_scrubber_goes_back_tick_by_tick(shown: Shown) -> None:
    steps = shown()["steps"]
    assert steps == [*range(60)]
    window = {"from": to_micros("2026-03-02"), "to": to_micros("2026-03-03")}
    bounds = [lane(shown(tick=tick, **window), "sorted") for tick in (10, 11, 12)]
    places = [one["bound"]["place"] for one in bounds]
    assert all(a < b for a, b in pairwise(places))
    assert lane(shown(tick=10), "sorted")["refused"] == {"LATE": 4}


def test_a_stream_whose_times_are_arrivals_does_not_squeeze_the_others_together(
    console: Callable[..., TestClient], home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    year = 365 * 24 * 3_600 * SECOND
    plain = Made.entry

    def arrivals(made: Made, tick: int) -> dict[str, Any]:
        found = plain(made, tick)
        clocks = {name: {who: at + year for who, at in found["clocks"][name].items()} for name in ("readings",)}
        return {**found, "clocks": {**found["clocks"], **clocks}}

    monkeypatch.setattr(Made, "entry", arrivals)
    Made(home / "checkpoints" / "arrivals").make()
    client = console()
    found = client.get(f"{address(client, 'arrivals')}/timeline.json").json()
    assert found["window"]["high"] < "2026-03-02 10:00"
    assert len(found["walls"]) > 5
    away, sort = lane(found, "readings")["bound"], lane(found, "sorted")["bound"]
    assert (away["outside"], away["beyond"], away["text"]) == (True, True, "2027-03-02 09:19:58")
    assert (sort["outside"], sort["place"] is None) == (False, False)


class Ended(Made):
    """A pipeline whose streams end with the last tick."""

    def entry(self, tick: int) -> dict[str, Any]:
        found = super().entry(tick)
        ends = tick == self.ticks - 1
        at = self.began + tick * SECOND
        cost = {**found["cost"], "times": {"readings": [at, at + MINUTE]}}
        return {**found, "cost": cost, **({"clocks": {name: {"": END} for name in found["clocks"]}} if ends else {})}


@pytest.mark.parametrize("ticks", [60, 1])
def test_a_pipeline_that_has_ended_is_shown_where_its_rows_were(
    console: Callable[..., TestClient], home: Path, ticks: int
) -> None:
    made = Ended(home / "checkpoints" / "ended", ticks=ticks, stuck=None)
    made.make()
    client = console()
    found = client.get(f"{address(client, 'ended')}/timeline.json").json()
    low, high = made.began, made.began + MINUTE * (20 if ticks > 1 else 1)
    assert found["window"]["from"] <= low
    assert high - 3 * MINUTE <= found["window"]["to"] <= high + 3 * MINUTE
    assert lane(found, "readings")["density"]
    assert lane(found, "readings")["bound"]["text"] == "+∞"


def test_instants_near_the_outputs_are_shown_with_them() -> None:
    hour = 60 * MINUTE
    assert _near([], [1, 2 * hour]) == [1, 2 * hour], "before the first output everything is shown"
    assert _near([BEGINNING, END], [5]) == [5]
    began = time.process_time()
    assert len(_near([0], [*range(100_000)])) == 100_001
    assert time.process_time() - began < 1
    assert sorted(_near([0, hour], [50 * hour, 90 * hour, 10_000 * hour])) == [0, hour, 50 * hour, 90 * hour]


def test_a_tick_that_the_journal_has_lost_is_reported(console: Callable[..., TestClient], home: Path) -> None:
    client = console()
    answer = client.get(f"{address(client, 'factory')}/timeline.json", params={"tick": 99})
    assert (answer.status_code, "R704" in answer.text) == (422, True)
    assert "R704" in client.get(f"{address(client, 'factory')}/timeline.json", params={"tick": "x"}).text


def test_it_says_which_line_has_not_crossed_an_instant_and_who_holds_it(shown: Shown) -> None:
    found = shown(at=to_micros("2026-03-02 09:15:00"))
    assert not found["why"]["out"]
    assert found["why"]["lines"] == [
        (
            "2026-03-02 09:15:00 is not out of per_minute, which stands at 2026-03-02 09:13:00: "
            "writer door-00002 of doors stands at 2026-03-02 09:13:40."
        )
    ]
    assert [one["name"] for one in found["lanes"] if one["behind"]] == [
        "doors",
        "per_minute.group",
        "per_minute",
        "per_minute.sink",
    ]
    assert shown(at=to_micros("2026-03-02 09:10:00"))["why"]["out"]


def test_accepted_rows_are_drawn_where_the_clock_moved(shown: Shown) -> None:
    found = lane(shown(), "doors")["density"]
    stuck = lane(shown(), "doors")["bound"]["place"]
    assert found
    assert max(place for place, _ in found) <= stuck
    assert {0 < share <= 1 for _, share in found} == {True}


def test_accepted_rows_of_a_still_clock_are_drawn_at_their_times() -> None:
    """A silent writer holds the clock; rows of the others are drawn all the same, each tick over its own times."""
    window = Window(0, 240)
    past = [
        Moment(
            tick, tick, {"s": 10}, {"s": {"accepted": 100 * (tick + 1)}}, {}, {}, stored={KEY: {"times": {"s": times}}}
        )
        for tick, times in enumerate(([0, 9, 5], [100, 119, 110], [200, 239, 220]))
    ]
    drawn = dict(_density("s", past, window))
    assert {round(place * 240) for place in drawn} == {*range(10), *range(100, 120), *range(200, 240)}
    assert drawn[round(105 / 240, 5)] == pytest.approx(2 * drawn[round(205 / 240, 5)], rel=0.01)
    missing = [past[0], past[2]]  # one tick is missing, so the rows between are not known
    assert {round(place * 240) for place, _ in _density("s", missing, window)} == {*range(11)}


def test_the_second_axis_says_after_which_tick_and_when(shown: Shown) -> None:
    walls = shown()["walls"]
    assert walls[0]["tick"] == 0
    assert [one["place"] for one in walls] == sorted(one["place"] for one in walls)
    assert walls[0]["text"] == "09:00:00"


def test_ten_thousand_writers_are_counted_and_the_slowest_named(console: Callable[..., TestClient], home: Path) -> None:
    Made(home / "checkpoints" / "many", ticks=3, writers=10_000).make()
    client = console()
    found = client.get(f"{address(client, 'many')}/timeline.json").json()
    writers = lane(found, "readings")["writers"]
    assert writers["count"] == 10_000
    assert sum(count for _, count in writers["places"]) == 10_000
    assert len(writers["places"]) <= 7
    assert len(writers["slowest"]) == 3


@pytest.mark.parametrize("span", [3, 90 * SECOND, 45 * MINUTE, 10**13, 4 * 10**16])
def test_the_axis_has_round_instants_and_never_too_many(span: int) -> None:
    marks = _axis(Window(to_micros("2026-03-02 09:07:13"), to_micros("2026-03-02 09:07:13") + span))
    assert 1 <= len(marks) <= 10


def test_many_bars_become_few_with_the_same_rows() -> None:
    parts = [(n * 10, n * 10 + 5, 2) for n in range(1_000)]
    joined = _joined(parts)
    assert len(joined) <= BARS
    assert sum(rows for _, _, rows in joined) == 2_000
    assert (joined[0][0], joined[-1][1]) == (0, 9_995)

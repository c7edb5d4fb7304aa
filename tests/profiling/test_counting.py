"""What tasks count and the driver chains is what a loop over all rows gives, however the rows are cut."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from rowtime.core.time import BEGINNING, HOUR, MINUTE, SECOND
from rowtime.operators.contract.lateness import LADDER
from rowtime.profiling import stretches
from rowtime.profiling.chained import Chain, UnsettledError, chained
from rowtime.profiling.counts import Durations, Hours
from rowtime.profiling.samples import MOST, HashSample, duplicates
from rowtime.profiling.stretches import Counted, Reading, counted

BITS = 40
START = 1_700_000_000 * SECOND


def rows_of(seed: int, many: int = 400) -> list[dict]:
    """Return rows in order: several files, devices that are late in different ways, and a few odd times."""
    rng = random.Random(seed)
    rows, now, file, row = [], START, 0, 0
    for _ in range(many):
        if rng.random() < 0.02:
            file, row = file + 1, 0
        now += rng.choice([0, 1, SECOND, 3 * SECOND, 20 * SECOND])
        device = rng.choice("abc")
        behind = {"a": 0, "b": rng.randrange(60) * SECOND, "c": HOUR}[device] * (rng.random() < 0.6)
        time = now - behind
        if rng.random() < 0.02:
            time = None
        elif rng.random() < 0.01:
            time += rng.randrange(1, 50) * HOUR
        rows.append({"p": (file << BITS) + row, "t": time, "k": device, "a": now + rng.randrange(3) * SECOND})
        row += 1
    return rows


def by_loop(rows: list[dict], key: str) -> dict:
    """Return how late each row is, and by how far it raised the mark, from one loop over all rows."""
    marks: dict[str, int] = {}
    late: dict[str, list[int]] = defaultdict(list)
    leaps: list[int] = []
    seen: Counter[str] = Counter()
    for row in rows:
        if row["t"] is None:
            continue
        name = {"all": "", "k": row["k"], "file": str(row["p"] >> BITS)}[key]
        mark, seen[name] = marks.get(name, BEGINNING), seen[name] + 1
        if mark > BEGINNING and row["t"] < mark:
            late[name].append(mark - row["t"])
        elif mark > BEGINNING and row["t"] > mark:
            leaps.append(row["t"] - mark)
        marks[name] = max(mark, row["t"])
    return {"late": late, "leaps": leaps, "marks": marks, "seen": seen}


def table(rows: list[dict], names: str) -> pa.Table:
    """Return rows as a task reads them."""
    kinds = {"p": pa.int64(), "t": pa.int64(), "k": pa.string(), "a": pa.int64()}
    return pa.table({name: pa.array([row[name] for row in rows], kinds[name]) for name in names})


def cut(rows: list[dict], rng: random.Random, names: str, reading: Reading) -> list[Counted]:
    """Return what tasks count: the rows in random parts, each of random batches, the tasks in any order."""
    edges = sorted({0, len(rows), *(rng.randrange(len(rows)) for _ in range(rng.randrange(6)))})
    tasks = []
    for start, stop in zip(edges, edges[1:], strict=False):
        part, batches = rows[start:stop], []
        while part:
            many = rng.randrange(1, 100)
            batches, part = [*batches, table(part[:many], names)], part[many:]
        tasks.append(counted(batches, reading))
    rng.shuffle(tasks)
    return tasks


def in_order(tasks: list[Counted]) -> list[stretches.Stretch]:
    return sorted((one for task in tasks for one in task.stretches), key=lambda one: one.first)


def own(parts: list[stretches.Stretch]) -> Chain:
    return chained((list(one.names), one.own) for one in parts if one.own is not None)


def assert_same(chain: Chain, truth: dict) -> None:
    expected = {name: Durations() for name in truth["seen"]}
    for name, late in truth["late"].items():
        expected[name].add(np.array(late, np.int64))
    for name, durations in expected.items():
        mine = chain.late(name)
        assert (mine.bins.tolist(), mine.greatest) == (durations.bins.tolist(), durations.greatest), name
        at = chain.places[name]
        assert chain.facts.marks[at] == truth["marks"][name]
        assert chain.facts.seen[at] == truth["seen"][name]
    leaps = Durations()
    leaps.add(np.array(truth["leaps"], np.int64))
    assert (chain.clock.leaps.bins.tolist(), chain.clock.leaps.greatest) == (leaps.bins.tolist(), leaps.greatest)
    every = [late for some in truth["late"].values() for late in some]
    hours = Hours()
    hours.add(np.array(every, np.int64))
    assert chain.clock.hours.near.tolist() == hours.near.tolist()
    for edge in LADDER:
        assert chain.clock.late.beyond(edge) == sum(late > edge for late in every)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("free", [0, 7, 1000])
def test_the_chain_of_tasks_is_one_loop(seed: int, free: int) -> None:
    rows, rng = rows_of(seed), random.Random(seed)
    for names, key in (("ptk", "k"), ("pta", "file")):
        reading = Reading("files", BITS, gapless=rng.random() < 0.5, free=free)
        parts = in_order(cut(rows, rng, names, reading))
        settled = 0
        for truth, chain in (
            (by_loop(rows, "all"), lambda: chained(([""], one.clock) for one in parts)),  # noqa: B023
            (by_loop(rows, key), lambda: own(parts)),  # noqa: B023
        ):
            try:
                result = chain()
            except UnsettledError:
                continue
            settled += 1
            assert_same(result, truth)
        assert settled == 2 or free < 1000
        ordered = counted([table(rows, names)], replace(reading, ordered=True)).stretches
        assert len(ordered) == 1
        assert_same(chained([([""], ordered[0].clock)]), by_loop(rows, "all"))
        assert_same(own(ordered), by_loop(rows, key))


@pytest.mark.parametrize("seed", range(10))
def test_rows_without_a_time_ties_and_arrivals_are_counted(seed: int) -> None:
    rows = rows_of(seed)
    parts = in_order(cut(rows, random.Random(seed), "pta", Reading("files", BITS, gapless=True)))
    times = [row["t"] for row in rows if row["t"] is not None]
    assert sum(one.rows for one in parts) == len(rows)
    assert sum(one.nulls for one in parts) == len(rows) - len(times)
    between = sum(a.times[1] == b.times[0] for a, b in zip(parts, parts[1:], strict=False) if a.times and b.times)
    assert sum(one.ties for one in parts) + between == sum(a == b for a, b in zip(times, times[1:], strict=False))
    ahead = [row["t"] - row["a"] for row in rows if row["t"] is not None and row["t"] > row["a"]]
    assert sum(one.ahead.rows for one in parts) == len(ahead)
    assert max(one.ahead.greatest for one in parts) == max(ahead, default=0)


@pytest.mark.parametrize("seed", range(10))
def test_the_guard_is_a_loop(seed: int) -> None:
    rows, early = rows_of(seed), 2 * HOUR
    one = counted([table(rows[:100], "pt"), table(rows[100:], "pt")], Reading("w", early=early, ordered=True))
    mark, refused, late = BEGINNING, 0, Durations()
    for row in rows:
        if row["t"] is None:
            continue
        if mark > BEGINNING and row["t"] > mark + early:
            refused += 1
            continue
        if row["t"] < mark:
            late.add(np.array([mark - row["t"]]))
        mark = max(mark, row["t"])
    (stretch,) = one.stretches
    assert stretch.early == refused
    assert stretch.clock.late.bins.tolist() == late.bins.tolist()
    assert stretch.clock.late.greatest == late.greatest


def test_a_row_from_the_future_is_lone_and_a_pause_is_not() -> None:
    times = [START + n * SECOND for n in range(50)]
    times[20] = START + 300 * 24 * HOUR
    times += [START + HOUR * 24 * 400 + n * SECOND for n in range(50)]  # a pause, longer than the leap
    task = counted(
        [table([{"p": n, "t": at} for n, at in enumerate(times[i : i + 7], i)], "pt") for i in range(0, 100, 7)],
        Reading("w"),
    )
    (stretch,) = task.stretches
    assert [(leap.position, leap.is_lone) for leap in stretch.lone.leaps] == [(20, True), (50, False)]


def test_rows_that_are_late_by_whole_hours_are_a_peak() -> None:
    rng = random.Random(1)
    spread = np.array([rng.randrange(1, 5 * HOUR) for _ in range(2000)], np.int64)
    hours = Hours()
    hours.add(spread)
    assert hours.peaks == {}
    hours.add(np.array([2 * HOUR + rng.randrange(MINUTE) for _ in range(300)], np.int64))
    assert list(hours.peaks) == [2]
    assert hours.peaks[2] >= 300


def test_duplicates_are_exact_up_to_a_number_of_rows_and_estimated_beyond() -> None:
    rng = np.random.default_rng(5)
    hashes = rng.integers(-(2**62), 2**62, 100_000)
    copies = np.concatenate((hashes, hashes[:1234]))
    few = HashSample()
    few.add(copies[:60_000])
    more = HashSample()
    more.add(copies[60_000:])
    assert duplicates([few, more]) == (1234, True)
    many = rng.integers(-(2**62), 2**62, 2_000_000)
    large = HashSample()
    for part in np.split(np.concatenate((many, many[:200_000])), 20):
        large.add(part)
    assert sum(map(len, large.hashes)) <= MOST
    number, exact = duplicates([large, few])
    assert not exact
    assert abs(number - 200_000) < 12_000


def test_a_column_with_too_many_values_names_no_clocks() -> None:
    many = stretches.MOST_KEYS + 1
    columns = {"p": range(many), "t": range(many), "k": [str(n) for n in range(many)]}
    assert counted([pa.table(columns)], Reading("w")).crowded

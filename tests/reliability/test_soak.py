"""The soak tests distinguish growth from noise, and find planted leaks and lost rows."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from reliability.soak.answer import Found, answer
from reliability.soak.campaign import Soak
from reliability.soak.growth import Tolerance, Trend, growing, trends
from reliability.soak.processors import Processors
from reliability.soak.written import differences
from rowtime.state.journal import Journal

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

GAUGES = {"size": Tolerance(" MiB", 0.1, 10)}


def judged(size: Callable[[int], float], samples: int = 60) -> Trend:
    chance = random.Random(samples)
    values = [{"size": size(n) * chance.uniform(0.9, 1.1)} for n in range(samples)]
    return trends(values, GAUGES)[0]


def test_what_keeps_its_size_does_not_grow() -> None:
    assert not judged(lambda _: 200).grows
    assert not judged(lambda n: 200 * min(1.0, 0.5 + n / 24)).grows, "the first fifth is warm-up"
    assert not judged(lambda n: 200 + 10 * (n % 10)).grows, "what comes and goes"
    assert not judged(lambda n: 300 - n).grows


def test_a_disturbance_anywhere_is_not_growth() -> None:
    for fifth in range(5):
        assert not judged(lambda n, at=fifth: 600 if at * 12 <= n < at * 12 + 11 else 200).grows


def test_what_grows_is_found_in_long_and_short_runs() -> None:
    assert judged(lambda n: 200 + 2 * n).grows
    assert judged(lambda n: 200 + 10 * n, 12).grows
    assert judged(lambda n: 200 if n < 24 else 300).grows, "a step"


@pytest.mark.parametrize(
    ("clock", "left", "grows"),
    [
        (lambda n: 100 + 2 * n, lambda _: 1.0, True),  # alone
        (lambda n: 300 + 6 * n, lambda _: 0.3, True),  # always beside other programs
        (lambda n: 100 if n < 30 else 300, lambda n: 1.0 if n < 30 else 0.3, False),  # others start
        (lambda n: 300 if n < 30 else 140, lambda n: 0.3 if n < 30 else 1.0, False),  # others end
    ],
)
def test_other_programs_that_come_or_go_do_not_let_ticks_grow(
    clock: Callable[[int], float], left: Callable[[int], float], *, grows: bool
) -> None:
    values = [{"tick": clock(n), "without others": clock(n) * left(n), "size": 9.0 * n} for n in range(60)]
    gauges = {name: Tolerance("", 0.3, 9) for name in values[0]}
    found = [trend.gauge for trend in growing(trends(values, gauges), ("tick", "without others"))]
    assert found == ["tick", "without others"] * grows + ["size"]


def test_too_few_samples_give_no_answer() -> None:
    with pytest.raises(ValueError, match="9 samples are too few"):
        judged(lambda _: 1, 9)


def test_rows_that_are_missing_or_too_many_are_reported() -> None:
    assert differences(answer(12), answer(12)) == []
    found = answer(12)
    found.pairs.subtract([next(iter(found.pairs))])
    found.late[0, 0] += 1
    found.gates["payments"]["accepted"] -= 1
    told = differences(answer(12), found)
    begin = (
        "pairs: 1 rows missing, 0 too many",
        "late: 0 rows missing, 1 too many",
        "the ledger is",
        "the ledger of pay",
    )
    assert len(told) == len(begin)
    assert all(line.startswith(text) for line, text in zip(told, begin, strict=True)), told


def test_the_answer_holds_every_kind_of_row() -> None:
    found = answer(40)
    assert found.gates["orders"]["in"] == sum(found.gates["sorted_orders"][name] for name in ("accepted", "LATE"))
    assert sum(count for _, _, count, _ in found.groups.elements()) == found.gates["sorted_orders"]["accepted"]
    assert min(found.late.total(), found.pairs.total(), found.gates["payments"]["OUT_OF_ORDER"]) > 0
    assert Found().groups == Counter()


class Leaks:
    """Leaks 16 MiB per process and a few files per tick, and drops results."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.folder, self.kept, self.ticks = folder, [bytearray()], 0
        self.java: Any = spark._jvm.java
        self.list = self.java.util.ArrayList()

    def __call__(self, _progress: object) -> None:
        self.ticks += 1
        self.kept.append(bytearray(b"x") * (16 << 20))
        self.list.add(self.java.nio.ByteBuffer.allocate(16 << 20))
        kept = self.folder / "checkpoint" / "state" / "kept" / str(self.ticks)
        kept.mkdir(parents=True)
        for number in range(8):
            (kept / str(number)).touch()
        results = sorted((self.folder / "out" / "groups").glob("*.parquet"))
        if results and self.ticks > 5:
            results[0].unlink()


@pytest.mark.slow
def test_planted_leaks_and_lost_rows_are_found(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    leaks = Leaks(spark, tmp_path)
    commit = Journal.commit

    def delayed(journal: Journal, tick: int, entry: dict[str, Any]) -> None:
        time.sleep(leaks.ticks)
        commit(journal, tick, entry)

    monkeypatch.setattr(Journal, "commit", delayed)
    monkeypatch.setattr(Processors, "left", lambda _self: 1.0)  # a sleep takes the same time on a busy machine
    line, wrong = Soak(tmp_path, spark, tmp_path / "spark", leaks).run(3.0)
    for gauge in ("tick", "Python", "heap after GC", "files of state"):
        assert any(text.startswith(f"grows: {gauge} ") for text in wrong), (gauge, line)
    assert any(text.startswith("groups: ") and "rows missing, 0 too many" in text for text in wrong), wrong

"""How late rows are: a fixed number of counters, which do not depend on the cut."""

from __future__ import annotations

import random

import numpy as np
import pytest

from rowtime.operators.contract.lateness import LADDER, Lateness, added, at_most, in_words, interval


def test_the_counters_are_few_and_in_order() -> None:
    assert list(LADDER) == sorted(set(LADDER))
    assert len(LADDER) < 80


@pytest.mark.parametrize("seed", range(20))
def test_the_counters_are_the_same_in_any_cut_and_cover_what_they_say(seed: int) -> None:
    chance = random.Random(seed)
    late = np.array([int(10 ** chance.uniform(0, 14)) for _ in range(chance.randint(1, 500))], np.int64)
    whole, parts = Lateness.of(late), {}
    for part in np.array_split(late, chance.randint(1, 9)):
        parts = added(parts, Lateness.of(part))
    assert Lateness.stored(parts) == whole
    assert whole.rows == len(late)
    assert whole.greatest == late.max()
    for share in (0.5, 0.99, 1.0):
        covered = whole.covering(share)
        assert (late <= covered).sum() >= share * len(late)
        less = [edge for edge in LADDER if edge < covered]
        assert covered > LADDER[-1] or not less or (late <= less[-1]).sum() < share * len(late), "none shorter does"


def test_no_rows_are_not_stored() -> None:
    assert Lateness().as_json() == {}
    assert added({}, Lateness()) == {}


def test_durations_are_written_as_people_write_them() -> None:
    assert interval(3_000_000) == "INTERVAL '3' SECOND"
    assert interval(90_000_000) == "INTERVAL '90' SECOND"
    assert interval(7_200_000_000) == "INTERVAL '2' HOUR"
    assert interval(500) == "INTERVAL '0.000500' SECOND"
    assert (in_words(1_500_000), in_words(20_000), in_words(90_000_000)) == ("1.5 s", "20 ms", "0:01:30")
    assert at_most(3_599_000_000) == 3_000_000_000
    assert at_most(0) == 1

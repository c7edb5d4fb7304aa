"""Whether a row fails depends on its values and the text of the query, not on how often an expression stands in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import product
from typing import TYPE_CHECKING, Any

import pytest

from rowtime.runtime.session import derive
from rowtime.testing.runner import Outcome, play
from tests.laws.shared_failures import BAD, EXPRESSIONS, PLACES, ROWS, STREAMS, Place, query, transcript
from tests.ways import in_tasks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAMES = tuple(EXPRESSIONS)
OPTIMIZER = "org.apache.spark.sql.catalyst.optimizer"
ALWAYS = ("between", "where and select list")
"""The places of the default run."""
ONCE = ("map", "pattern", "step", "format", "overflow with a literal")
"""Expressions that are also tried in the select list."""
CASES = [(place, name) for place in PLACES if place.name == "select list" for name in ONCE] + [
    (place, NAMES[(3 * at + more) % len(NAMES)]) for at, place in enumerate(PLACES) for more in (0, 5)
]
CUTS: Sequence[Sequence[int]] = ([len(transcript("").items)], [len(STREAMS) * n for n in (3, 7, ROWS + 1)])
"""All at once, and so that bad rows that follow each other come in different ticks."""
PARTS = (0, 1, 2)
"""On the driver, in one task, and in two."""


def told(outcome: Outcome) -> tuple[list[Any], list[str]]:
    refused = ({name: value for name, value in row.items() if not name.startswith("__")} for row in outcome.refused)
    return [row for _, row in outcome.rows], sorted(str(sorted(row.items())) for row in refused)


@pytest.fixture
def both_ways() -> None:
    """Replaces the choice of the laws: each test here goes both ways."""


def with_jobs(spark: SparkSession) -> SparkSession:
    """A session in which Spark generates code for each row; otherwise it computes few rows while it plans."""
    session = derive(spark)
    session.conf.set("spark.sql.execution.arrow.localRelationThreshold", "0")
    excluded = session.conf.get("spark.sql.optimizer.excludedRules")
    session.conf.set("spark.sql.optimizer.excludedRules", f"{excluded},{OPTIMIZER}.ConvertToLocalRelation")
    return session


def marks_of(place: Place, name: str) -> list[pytest.MarkDecorator]:
    return [] if place.name in ALWAYS or (place.name, name) == ("select list", "map") else [pytest.mark.slow]


@contextmanager
def computed(parts: int) -> Iterator[None]:
    """Compute ticks in so many tasks; 0: on the driver."""
    with pytest.MonkeyPatch.context() as patch:
        if parts:
            in_tasks(patch, parts)
        yield


@pytest.mark.usefixtures("both_ways")
@pytest.mark.parametrize(
    ("place", "name"),
    [pytest.param(place, name, id=f"{place.name}: {name}", marks=marks_of(place, name)) for place, name in CASES],
)
def test_the_same_rows_are_refused_everywhere_and_in_any_cut(spark: SparkSession, place: Place, name: str) -> None:
    session, sql = with_jobs(spark), query(place, EXPRESSIONS[name])
    outcomes = []
    for parts, cut in product(PARTS, CUTS):
        with computed(parts):
            outcomes.append(told(play(session, transcript(sql), cut)))
    rows, refused = outcomes[0]
    assert rows
    assert len(refused) == place.refused
    assert all("('reason', 'MALFORMED')" in row for row in refused)
    for other in outcomes[1:]:
        assert other == (rows, refused)
    if place.drops:
        assert told(play(session, transcript(sql, without=BAD), CUTS[0])) == (rows, [])

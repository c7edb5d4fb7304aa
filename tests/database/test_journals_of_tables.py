"""What drivers that die leave in a journal and in a table is a behaviour of the model of the commit (docs/model.md)."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest

import rowtime as rt
from reliability.model.journals import Behaviour, behaviours
from reliability.model.replay import refused
from rowtime.runtime.sinks.database import JdbcSink
from rowtime.runtime.sinks.table_book import Book
from tests.database.test_whose_rows_a_table_has import Death, Table, asked

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.database.postgres import Postgres

POINTS = ("before journal", "after journal", "after output")
STATEMENTS = 4  # of a start and of a handing over, at most


def _left(table: Table, name: str) -> list[Behaviour]:
    """What is there: PostgreSQL knows for each row which transaction has added it."""

    def transactions(of: str) -> list[int]:
        if not asked(table.server, f"SELECT 1 FROM pg_class WHERE relname = '{of}'"):
            return []
        rows = asked(table.server, f"SELECT count(*) FROM {of} GROUP BY xmin ORDER BY min(xmin::text::bigint)")
        return [*map(int, rows)]

    return behaviours(table.folder / "check", table.folder / "home", name, transactions)


def _die(table: Table, at: int, patch: pytest.MonkeyPatch) -> bool:
    """Run a driver that dies before a statement of the database, or at a point of the tick."""
    real, counted = JdbcSink._do, count()

    def dies(self: JdbcSink, connection: Any, text: str) -> None:
        if next(counted) == at:
            connection.rollback()  # as the database does with a connection that is gone
            raise Death
        real(self, connection, text)

    def hook(here: str) -> None:
        if POINTS[at - STATEMENTS : at - STATEMENTS + 1] == (here,):
            raise Death

    patch.setattr(JdbcSink, "_do", dies)
    engine = table.pipeline()._engine(table.folder / "check", rt.Limits(), ends=False)
    engine.hook = hook
    try:
        while engine.tick() is not None:
            pass
    except Death:
        return True
    finally:
        engine.stop()
    return False


Plant = Callable[[pytest.MonkeyPatch], None]


def _deaths(server: Postgres, spark: SparkSession, folder: Path, name: str, fault: Plant) -> list[Behaviour]:
    """The behaviours after the second tick of a new table, in which a driver dies, and after each take-over."""
    found = list[Behaviour]()
    for at in range(STATEMENTS + len(POINTS)):
        table = Table(spark, server, folder / f"{at}", f"{name}_{at}").written("check", 0)
        table.send(1, 2)
        with pytest.MonkeyPatch.context() as patch:
            fault(patch)
            _die(table, at, patch)
        found += _left(table, f"died at {at}")
        table.run("check")
        found += _left(table, f"taken over from who died at {at}")
        if fault is _no_fault:
            assert table.rows == [0, 1, 2]
    return list({one.what: one for one in found}.values())


def _no_fault(_: pytest.MonkeyPatch) -> None:
    """All guards are there."""


def _the_number_is_not_in_the_transaction(patch: pytest.MonkeyPatch) -> None:
    real = Book.advance

    def advance(self: Book, identity: str, before: int, after: int) -> bool:
        done = real(self, identity, before, after)
        self._connection.commit()
        return done

    patch.setattr(Book, "advance", advance)


def _the_number_is_forgotten(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Book, "advance", lambda *_: True)


@pytest.mark.slow
def test_what_drivers_that_die_leave_in_a_table_is_a_behaviour_of_the_model(
    spark: SparkSession, postgres: Postgres, tmp_path: Path
) -> None:
    found = _deaths(postgres, spark, tmp_path, "replayed", _no_fault)
    assert len(found) >= len(("not handed over", "handed over", "noted"))
    assert {one.kind for one in found} == {"database"}
    assert refused(found) == []


@pytest.mark.slow
@pytest.mark.parametrize("fault", [_the_number_is_not_in_the_transaction, _the_number_is_forgotten])
def test_a_table_that_lacks_rows_or_has_them_twice_is_no_behaviour_of_the_model(
    spark: SparkSession, postgres: Postgres, tmp_path: Path, fault: Plant
) -> None:
    found = _deaths(postgres, spark, tmp_path, fault.__name__.strip("_"), fault)
    assert refused(found)

"""Snapshots and joins of events are computed on the driver alone, also where events come as edges.

One expression that only Spark computes sends the rows there, and with many rows the whole tick (`LocalFrame.spark`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

import pytest

from rowtime.frames.local import LocalFrame
from rowtime.runtime.session import derive
from tests.laws.lifetime_pipelines import LIFETIMES
from tests.laws.test_lifetime_laws import CUT, EXAMPLE, check, play

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOCAL = {law.name: law for law in LIFETIMES if law.name in ("snapshots", "a join of events")}


def handed_over(_rows: LocalFrame) -> NoReturn:
    pytest.fail("rows were handed over to Spark")


@pytest.mark.parametrize("name", ["snapshots", "a join of events"])
def test_no_rows_are_handed_over(spark: SparkSession, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    law = LOCAL[name]
    monkeypatch.setattr(LocalFrame, "spark", handed_over)
    check(law, EXAMPLE, play(derive(spark), law.transcript(EXAMPLE), CUT, restart=True))

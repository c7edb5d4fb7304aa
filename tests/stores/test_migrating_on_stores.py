"""``rowtime migrate`` of a checkpoint in a store, with commands and with processes that die during it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kafka.missing_jars import without_jars
from tests.stores.server import jars_missing, server
from tests.stores.whole_runs import migrates_on
from tests.upgrades.migrating import BEFORE_ENTRY, BEFORE_ROWS, BEHIND_ENTRY

pytestmark = pytest.mark.slow

CASES = [
    ("moto", BEFORE_ENTRY),
    ("moto", BEHIND_ENTRY),
    ("azurite", BEFORE_ROWS),
    ("google", BEHIND_ENTRY),
]


@pytest.mark.parametrize(("name", "point"), CASES)
def test_a_checkpoint_on_a_store_goes_on_with_other_sql(name: str, point: str, tmp_path: Path) -> None:
    if name == "moto" and jars_missing():
        without_jars(jars_missing())
    migrates_on(server(name), tmp_path, point)

"""Every page of a pipeline says which pumps are stopped, and which orders wait."""

from __future__ import annotations

from html import unescape
from pathlib import Path
from typing import TYPE_CHECKING

from starlette.testclient import TestClient

from rowtime.client.home import Home
from rowtime.web.guard import Access
from rowtime.web.server import Console
from rowtime.web.watched import Watched
from tests.upgrades.pumps import Pumps
from tests.web.conftest import AT, address

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_stopped_pumps_and_waiting_orders_are_on_each_page(spark: SparkSession, tmp_path: Path) -> None:
    pumps = Pumps(tmp_path, spark)
    pumps.run()
    pumps.order("ALTER PUMP a.files START")
    pumps.send()
    pumps.run()
    console = TestClient(Console(Watched(Home(tmp_path / "home"), (pumps.check,)), Access(port=8642)).app, base_url=AT)
    at = address(console, "check")

    def shown(page: str) -> str:
        return unescape(console.get(f"{at}/{page}").text)

    assert "a.files: started by ALTER PUMP a.files START of " in shown("graph")
    assert "a.log: stopped in the script" in shown("waiting")
    seen = shown("facts")
    pumps.order("ALTER PUMP a.log START")
    assert "waits: ALTER PUMP a.log START of " not in seen
    assert "waits: ALTER PUMP a.log START of " in shown("facts")
    pumps.run()
    assert "a.log: started by" in shown("facts")
    assert "waits: ALTER" not in shown("facts")

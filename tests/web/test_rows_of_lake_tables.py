"""The page Rows shows the rows that a pump has written into a table of Delta or Iceberg."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from starlette.testclient import TestClient

import rowtime as rt
from rowtime.client.home import Home
from rowtime.web.guard import Access
from rowtime.web.server import Console
from rowtime.web.watched import Watched
from tests.web.conftest import AT, address

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SQL = """CREATE STREAM s (name STRING, n INT);
CREATE STREAM o (name STRING, n INT) USING {table};
CREATE PUMP p STARTED AS INSERT INTO o SELECT STREAM name, n FROM s WHERE n > 1"""
TABLES = {
    "delta": "delta OPTIONS (path '{folder}/table')",
    "iceberg": """iceberg OPTIONS (table 'db.o', catalog 'here', catalog.type 'sql',
        catalog.uri 'sqlite:///{folder}/catalog.db', catalog.warehouse 'file://{folder}/lake')""",
}


@pytest.mark.parametrize("table", TABLES)
def test_rows_of_a_lake_table_are_shown_and_filtered(spark: SparkSession, tmp_path: Path, table: str) -> None:
    home, check = tmp_path / "home", tmp_path / "home" / "checkpoints" / "lake"
    made = rt.Pipeline(spark, home=home).sql(SQL.format(table=TABLES[table].format(folder=tmp_path)))
    made.home.define("s", made.compile().defines[0].as_json(), replace=True)
    with rt.writer("s", home=home, writer="w") as log:
        for n in range(5):
            log.insert([{"rowtime": f"2024-01-01 00:00:0{n}", "name": "<script>", "n": n}])
            made.run_available(check)
    client = TestClient(Console(Watched(Home(home), ()), Access(port=8642), acts=False).app, base_url=AT)
    place = address(client, "lake")
    asked = {"what": "output", "of": "p.sink"}
    text = client.get(f"{place}/rows", params=asked).text
    assert sorted(re.findall(r'<td title="(\d+)">', text)) == ["2", "3", "4"]
    assert '<td title="&lt;script&gt;">' in text
    text = client.get(f"{place}/rows", params={**asked, "filter": "n = 3"}).text
    assert re.findall(r'<td title="(\d+)">', text) == ["3"]

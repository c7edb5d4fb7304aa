"""``rowtime migrate`` into tables of a database: new rows are appended, or replace those with the same key."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import rowtime as rt
from rowtime.core.errors import Failure, Refused
from rowtime.runtime.sinks.database import JdbcSink
from tests.database.test_whose_rows_a_table_has import asked
from tests.deaths import Died
from tests.lakes.test_delta_tables import send
from tests.upgrades.migrating import BEFORE_ENTRY, BEFORE_ROWS, BEHIND_ENTRY, BEHIND_ROWS, EVEN, STREAM, die_at, hours

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.database.postgres import Postgres

pytestmark = pytest.mark.slow

TABLE = "USING jdbc OPTIONS (url '{url}', user 'rowtime', dbtable '{table}'"
NAMES = f"CREATE TABLE names (k BIGINT, name STRING) {TABLE.replace('{table}', '{names}')});"
HOURS = f"""CREATE STREAM {{name}} (c BIGINT, total BIGINT) {TABLE});
CREATE PUMP to_{{name}} AS INSERT INTO {{name}}
  SELECT STREAM COUNT(*) AS c, SUM(n) AS total FROM a{{where}} GROUP BY FLOOR(a.ROWTIME TO HOUR);"""
LATEST = f"""CREATE STREAM {{name}} (k STRING, c BIGINT, change STRING) {TABLE},
    key 'k', mode 'changes', rowtime.column '');
CREATE PUMP to_{{name}} AS INSERT INTO {{name}}
  SELECT STREAM name AS k, COUNT(*) OVER w AS c, CASE WHEN n % 10 = 9 THEN 'RETRACT' ELSE 'INSERT' END AS change
  FROM (SELECT STREAM name, n FROM a JOIN names ON a.n % 4 = names.k{{where}}) AS x
  WINDOW w AS (PARTITION BY name RANGE INTERVAL '30' DAY PRECEDING);"""
FEW = " WHERE n % 4 <> 1 AND n % 3 <> 1"


class Tables:
    """A pipeline with a checkpoint and tables whose names have a common prefix."""

    def __init__(self, spark: SparkSession, server: Postgres, folder: Path, first: str) -> None:
        self.spark, self.server, self.folder, self.first = spark, server, folder, first
        made = self.pipeline(STREAM)
        made.home.define("a", made.compile().catalog.stream("a").as_json(), replace=True)

    def sql(self, text: str, name: str = "", where: str = "") -> str:
        given = {"url": self.server.url, "table": f"{self.first}_{name}", "names": f"{self.first}_names"}
        return text.format(name=name, where=where, **given)

    def pipeline(self, *texts: str) -> rt.Pipeline:
        return rt.Pipeline(self.spark, home=self.folder / "home").sql("".join(dict.fromkeys([STREAM, *texts])))

    def run(self, *texts: str, numbers: range = range(0)) -> None:
        if numbers:
            send(self.folder, numbers)
        self.pipeline(*texts).run_available(self.folder / "check")

    def migrate(self, *texts: str, take_over: tuple[str, ...]) -> Any:
        return rt.migrate(self.folder / "check", self.pipeline(*texts), take_over=take_over)

    def rows(self, name: str, columns: str = "c, total") -> list[tuple[str, ...]]:
        found = asked(self.server, f"SELECT {columns} FROM {self.first}_{name}")
        return sorted(tuple(line.split("|")) for line in found)

    def differences(self, *texts: str) -> list[str]:
        found = rt.verify(self.folder / "check", self.pipeline(*texts))
        return [line for one in found.outputs for line in one.first]


def texts(rows: list[tuple[int, int]]) -> list[tuple[str, str]]:
    return sorted((str(c), str(total)) for c, total in rows)


def latest(numbers: range, *, few: bool = False) -> dict[str, str]:
    """Count the numbers of each name; a number that ends with 9 removes its name."""
    given = [n for n in numbers if not few or (n % 4 != 1 and n % 3 != 1)]
    last = {n % 4: n for n in given}
    return {f"k{k}": str(len([n for n in given if n % 4 == k])) for k, n in last.items() if n % 10 != 9}


@pytest.mark.parametrize("point", ["nowhere", BEFORE_ENTRY, BEHIND_ENTRY, BEFORE_ROWS, BEHIND_ROWS])
def test_tables_are_taken_over_or_are_new_whenever_the_driver_dies(
    spark: SparkSession, postgres: Postgres, tmp_path: Path, point: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A table of rows, one with a key that is joined with a static table of the database, and a new one."""
    tables = Tables(spark, postgres, tmp_path, f"migrated_{point.replace(' ', '_')}")
    asked(postgres, f"CREATE TABLE {tables.first}_names AS SELECT k, 'k' || k AS name FROM generate_series(0, 3) k")
    names = tables.sql(NAMES)
    before = (names, tables.sql(HOURS, "o"), tables.sql(LATEST, "keys"))
    after = (names, tables.sql(HOURS, "o", EVEN), tables.sql(LATEST, "keys", FEW), tables.sql(HOURS, "other", EVEN))
    tables.run(*before)
    tables.run(*before, numbers=range(148))
    asked(postgres, f"UPDATE {tables.first}_names SET name = 'other'")  # the checkpoint has a copy
    there = hours(range(148), 120)
    assert tables.rows("o") == texts(there)
    assert dict(tables.rows("keys", "k, c")) == latest(range(148))
    taken = ("to_o", "to_keys")
    with pytest.raises(Refused, match=r"(?s)R447 to_o .*at or above the bound.*R447 to_keys .*replaces the existing"):
        tables.migrate(*after, take_over=())
    if point != "nowhere":
        with monkeypatch.context() as patch:
            die_at(point, (JdbcSink, "_move"), patch)
            with pytest.raises(Died):
                tables.migrate(*after, take_over=taken)
    if point == BEFORE_ENTRY:
        assert tables.rows("o") == texts(there)
        tables.run(*before)
        assert tables.differences(*before) == []
    if point in (BEFORE_ENTRY, "nowhere"):
        found = tables.migrate(*after, take_over=taken)
        assert found.sinks["to_o"] == "continues after 2 rows"
        assert found.sinks["to_other"] == "is new"
    tables.run(*after)
    assert dict(tables.rows("keys", "k, c")) == {"k1": latest(range(148))["k1"]} | latest(range(148), few=True)
    tables.run(*after, numbers=range(148, 251))
    new = hours(range(0, 250, 2), 240)
    assert tables.rows("o") == texts([*there, *new[2:]])
    assert tables.rows("other") == texts(new)
    assert dict(tables.rows("keys", "k, c")) == {"k1": latest(range(148))["k1"]} | latest(range(251), few=True)
    assert tables.differences(*after) == []


def test_a_static_table_that_is_not_there_is_named(spark: SparkSession, postgres: Postgres, tmp_path: Path) -> None:
    """Spark found no driver for a static table of a database, unless its class was given."""
    tables = Tables(spark, postgres, tmp_path, "gone")
    texts = (tables.sql(NAMES), "SELECT STREAM n, name FROM a JOIN names ON a.n = names.k;")
    with pytest.raises(Failure, match=r'R501 the table names cannot be read: .*"gone_names" does not exist'):
        tables.run(*texts, numbers=range(2))
    asked(postgres, "CREATE TABLE gone_names AS SELECT k, 'k' || k AS name FROM generate_series(0, 3) k")
    tables.run(*texts)

"""Existing lake tables when ``rowtime migrate`` gives their pumps other SQL: rows stay, and new ones are added."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

import rowtime as rt
from rowtime.core.errors import Refused
from rowtime.runtime.sinks.delta_log import DeltaLog
from rowtime.runtime.sinks.iceberg_table import IcebergTable
from rowtime.state.settings import put
from tests.deaths import Died
from tests.lakes.test_delta_tables import send
from tests.lakes.test_iceberg_tables import CATALOG, catalog
from tests.upgrades.migrating import (
    BEFORE_ENTRY,
    BEFORE_ROWS,
    BEHIND_ENTRY,
    BEHIND_ROWS,
    EVEN,
    STREAM,
    die_at,
    hours,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rowtime.audit.migration import Migrated

HOURS = """CREATE STREAM {name} (c BIGINT, total BIGINT) USING {target}');
CREATE PUMP to_{name} AS INSERT INTO {name}
  SELECT STREAM COUNT(*) AS c, SUM(n) AS total FROM a{where} GROUP BY FLOOR(a.ROWTIME TO HOUR);"""
LATEST = """CREATE STREAM {name} (k BIGINT NOT NULL, c BIGINT{change})
  USING {target}', key 'k', rowtime.column ''{mode});
CREATE PUMP to_{name} AS INSERT INTO {name}
  SELECT STREAM k, COUNT(*) OVER w AS c{gone}
  FROM (SELECT STREAM CASE WHEN n = 4 THEN 9 ELSE n % 4 END AS k, n FROM a{where}) AS x
  WINDOW w AS (PARTITION BY k RANGE INTERVAL '30' DAY PRECEDING);"""
THIRDS = " WHERE n % 3 <> 1"
FORMS = [pytest.param("delta"), pytest.param("iceberg", marks=pytest.mark.slow)]


@dataclass(frozen=True)
class Lake:
    """A pipeline with a checkpoint, and its tables in a folder."""

    spark: SparkSession
    folder: Path
    form: str

    def sql(self, text: str, name: str, where: str = "", **words: str) -> str:
        table = f"iceberg OPTIONS (table 'db.{name}', {CATALOG}".removesuffix("'")
        target = f"delta OPTIONS (path '{{folder}}/{name}" if self.form == "delta" else table
        given = {"change": "", "mode": "", "gone": "", **words}
        return STREAM + text.format(name=name, where=where, target=target, **given)

    def pipeline(self, sql: str) -> rt.Pipeline:
        return rt.Pipeline(self.spark, home=self.folder / "home").sql(sql.replace("{folder}", str(self.folder)))

    def define(self) -> None:
        made = self.pipeline(STREAM)
        made.home.define("a", made.compile().catalog.stream("a").as_json(), replace=True)

    def run(self, sql: str, *numbers: int, check: str = "check", **how: Any) -> None:
        if numbers:
            send(self.folder, range(*numbers))
        self.pipeline(sql).run_available(self.folder / check, **how)

    def migrate(self, sql: str, *pumps: str) -> Migrated:
        return rt.migrate(self.folder / "check", self.pipeline(sql), take_over=pumps)

    def rows(self, name: str) -> list[tuple[Any, ...]]:
        if self.form == "delta":
            found = DeltaTable(str(self.folder / name)).to_pyarrow_table()
        else:
            found = catalog(self.folder).load_table(f"db.{name}").scan().to_arrow()
        return sorted(tuple(row[one] for one in row if one != "rowtime") for row in found.to_pylist())

    def differences(self, sql: str, check: str = "check") -> list[str]:
        found = rt.verify(self.folder / check, self.pipeline(sql))
        assert {one.how for one in found.outputs if one.kind == self.form} <= {"as a set"}
        return [line for one in found.outputs for line in one.first]


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest) -> Lake:
    found = Lake(spark, tmp_path, getattr(request, "param", "delta"))
    found.define()
    return found


def latest(numbers: Iterable[int], mode: str = "upsert") -> dict[int, int]:
    """The number of numbers of each key; 4 has a key of its own. A number that ends with 9 removes its key."""
    keys = {n: 9 if n == 4 else n % 4 for n in numbers}
    last = {key: n for n, key in keys.items()}
    return {k: c for k, c in Counter(keys.values()).items() if mode == "upsert" or last[k] % 10 != 9}


@pytest.mark.slow
@pytest.mark.parametrize("lake", FORMS, indirect=True)
def test_rows_of_a_table_stay_and_those_of_the_new_script_follow(lake: Lake) -> None:
    """After a takeover, each hour is there once, from the script that closed it; a new table has the whole history."""
    before, after = lake.sql(HOURS, "o"), lake.sql(HOURS, "o", EVEN)
    more = after + lake.sql(HOURS, "other", EVEN).removeprefix(STREAM)
    lake.run(before, 0, 150)
    lake.run(before, 150, 160)
    there = hours(range(160), 120)
    assert lake.rows("o") == sorted(there)
    with pytest.raises(Refused, match=r"R401"):
        lake.run(more)
    with pytest.raises(
        Refused, match=r"(?s)R447 to_o has written rows to o, .* --take-over to_o .*at or above the bound"
    ):
        lake.migrate(more)
    found = lake.migrate(more, "to_o")
    assert dict(found.sinks) == {"to_o": "continues after 2 rows", "to_other": "is new"}
    assert lake.rows("o") == sorted(there), "the open hour is not over yet"
    assert lake.differences(more) == []
    lake.run(more, 160, 250)
    even = hours(range(0, 250, 2), 240)
    assert lake.rows("other") == sorted(even)
    assert lake.rows("o") == sorted([*there, *even[2:]])
    assert lake.differences(more) == []


CHANGING = {
    "change": ", change STRING",
    "mode": ", mode 'changes'",
    "gone": ", CASE WHEN n % 10 = 9 THEN 'RETRACT' ELSE 'INSERT' END AS change",
}


@pytest.mark.parametrize("lake", FORMS, indirect=True)
@pytest.mark.parametrize("mode", [pytest.param("upsert", marks=pytest.mark.slow), "changes"])
def test_each_key_has_its_value_by_the_new_script_and_other_keys_stay(lake: Lake, mode: str) -> None:
    """Keys without further rows get the new value too; keys that the new script never has are not changed."""
    words = CHANGING if mode == "changes" else {}
    before, after = lake.sql(LATEST, "o", **words), lake.sql(LATEST, "o", THIRDS, **words)
    lake.run(before, 0, 30)
    there = latest(range(30), mode)
    assert lake.rows("o") == sorted(there.items())
    with pytest.raises(Refused, match=r"(?s)R447 .* --take-over to_o .* each replaces the existing row with its key"):
        lake.migrate(after)
    found = lake.migrate(after, "to_o")
    assert dict(found.sinks) == {"to_o": "continues after 30 rows"}
    for ends in (30, 41):
        new = [n for n in range(ends) if n % 3 != 1]
        lake.run(after, 30, ends)
        assert lake.rows("o") == sorted(({9: there[9]} | latest(new, mode)).items())
        assert lake.differences(after) == []
    assert (mode == "changes") == (1 not in there), "a key is taken away that is not there"


@pytest.mark.parametrize("lake", FORMS, indirect=True)
def test_verify_sees_a_wrong_row_beside_those_that_were_taken_over(lake: Lake) -> None:
    before, after = lake.sql(LATEST, "o"), lake.sql(LATEST, "o", THIRDS)
    lake.run(before, 0, 30)
    lake.migrate(after, "to_o")
    change(lake, "k = 9")  # of the old script
    assert lake.differences(after) == []
    change(lake, "k = 2")
    assert lake.differences(after) == ["1 more computed: {'k': 2, 'c': 5}"]


def change(lake: Lake, where: str) -> None:
    """Remove a row with another program."""
    if lake.form == "delta":
        DeltaTable(str(lake.folder / "o")).delete(where)
    else:
        catalog(lake.folder).load_table("db.o").delete(where)


POINTS = [(BEFORE_ENTRY, 1), (BEHIND_ENTRY, 1), (BEFORE_ROWS, 1), (BEHIND_ROWS, 1), (BEHIND_ROWS, 2)]


@pytest.mark.slow
@pytest.mark.parametrize("lake", FORMS, indirect=True)
@pytest.mark.parametrize(("point", "times"), POINTS)
def test_a_migration_happens_completely_or_not_at_all(
    lake: Lake, point: str, times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If only some tables got their version, the next start writes the others, and no row is repeated."""
    before, after = (
        lake.sql(HOURS, "o", where) + lake.sql(LATEST, "keys", where).removeprefix(STREAM) for where in ("", THIRDS)
    )
    after += lake.sql(HOURS, "other", THIRDS).removeprefix(STREAM)
    lake.run(before, 0, 150)
    there = lake.rows("o"), dict(lake.rows("keys"))
    with monkeypatch.context() as patch:
        die_at(point, (DeltaLog if lake.form == "delta" else IcebergTable, "commit"), patch, times)
        with pytest.raises(Died):
            lake.migrate(after, "to_o", "to_keys")
    if point == BEFORE_ENTRY:
        assert (lake.rows("o"), dict(lake.rows("keys"))) == there
        lake.run(before)
        assert lake.differences(before) == []
        lake.migrate(after, "to_o", "to_keys")
    else:
        with pytest.raises(Refused, match=r"R401"):
            lake.run(before)
        lake.run(after)
    new = [n for n in range(200) if n % 3 != 1]
    assert dict(lake.rows("keys")) == there[1] | latest([n for n in new if n < 150])
    assert lake.rows("other") == sorted(hours(new, 120))
    lake.run(after, 150, 200)
    assert lake.rows("other") == sorted(hours(new, 180))
    assert lake.rows("o") == sorted([*there[0], *hours(new, 180)[2:]])
    assert dict(lake.rows("keys")) == there[1] | latest(new)
    assert lake.differences(after) == []


@pytest.mark.slow
@pytest.mark.parametrize("lake", FORMS, indirect=True)
def test_another_checkpoint_takes_a_table_over_between_two_scripts(lake: Lake) -> None:
    """Without a migration, rows are appended, or replace those with the same keys; the old pump is locked out."""
    before, after = (
        lake.sql(HOURS, "o", where) + lake.sql(LATEST, "keys", where).removeprefix(STREAM) for where in ("", THIRDS)
    )
    lake.run(before, 0, 150)
    there = lake.rows("o"), dict(lake.rows("keys"))
    with pytest.raises(Refused, match=r"(?s)R440 .*ALTER PUMP to_o TAKE OVER"):
        lake.run(after, check="second")
    lake.run(after + "ALTER PUMP to_o TAKE OVER;", check="second", take_over=["to_keys"])
    lake.run(after, 150, 200, check="second")
    new = [n for n in range(200) if n % 3 != 1]
    assert lake.rows("o") == sorted([*there[0], *hours(new, 180)])
    assert dict(lake.rows("keys")) == there[1] | latest(new)
    assert lake.differences(after, "second") == []
    with pytest.raises(Refused, match=r"R441"):
        lake.run(before)
    with pytest.raises(Refused, match=r"R441"):
        lake.migrate(after, "to_o", "to_keys")


@pytest.mark.slow
def test_rows_that_a_new_table_does_not_accept_are_refused_and_verified(lake: Lake) -> None:
    """What a table accepts applies to the whole history, also if its pump is new.

    Verify took results of groups as rows of the table, without the casts of the table.
    """
    before = lake.sql(HOURS, "o")
    after = before + lake.sql(HOURS, "small", EVEN).removeprefix(STREAM)
    narrow = pa.schema([pa.field("rowtime", pa.timestamp("us", "UTC")), ("c", pa.int64()), ("total", pa.int16())])
    write_deltalake(str(lake.folder / "small"), narrow.empty_table())
    lake.run(before, 0, 2000)
    put(lake.folder / "check", "a", 1)  # splits the input
    lake.run(before, 2000, 2400)
    lake.migrate(after, "to_o")
    found = hours(range(0, 2400, 2), 2340)
    fits = [one for one in found if one[1] < 2**15]
    assert lake.rows("small") == sorted(fits)
    assert len(fits) < len(found)
    assert lake.differences(after) == []


@pytest.mark.slow
def test_rows_of_a_compacted_table_are_counted(lake: Lake) -> None:
    before, after = lake.sql(HOURS, "o"), lake.sql(HOURS, "o", EVEN)
    lake.run(before, 0, 200)
    lake.migrate(after, "to_o")
    lake.run(after, 200, 250)
    DeltaTable(str(lake.folder / "o")).optimize.compact()
    found = rt.verify(lake.folder / "check", lake.pipeline(after))
    assert [one.how for one in found.outputs if one.kind == "delta"] == ["counted"]
    assert found.equal, found


def test_a_table_that_lost_rows_is_not_taken_over(lake: Lake) -> None:
    before, after = lake.sql(HOURS, "o"), lake.sql(HOURS, "o", EVEN)
    lake.run(before, 0, 200)
    shutil.rmtree(lake.folder / "o" / "_delta_log")
    with pytest.raises(Refused, match=r"R564"):
        lake.migrate(after, "to_o")

"""Mistakes with lake tables and stores: each has a code, says who meets it and what to do, and loses nothing.

`EXPECTED` is the table: each use of a table or a store, and each thing that may be wrong with it.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import pytest

import rowtime as rt
from reliability.stores.proxy import Faults, faulty
from rowtime.client.home import Home
from rowtime.core.errors import Problem, RowtimeError
from tests.kafka.missing_jars import without_jars
from tests.lakes.foreign_tables import Delta, Foreign, Iceberg
from tests.stores import conftest as stores
from tests.stores.server import address, jars_missing, make_bucket

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

bucket = stores.bucket

NOWHERE: Final = "s3://no-such-bucket"
A: Final = "CREATE STREAM a (n BIGINT);"
PLAIN: Final = f"""{A}
CREATE STREAM o (n BIGINT) USING delta OPTIONS (path '{{out}}', rowtime.column '');
CREATE PUMP p AS INSERT INTO o SELECT STREAM n FROM a;"""
SQL: Final = {
    "sink": f"""{A}
CREATE STREAM o (n BIGINT) USING {{used}};
CREATE PUMP p AS INSERT INTO o SELECT STREAM n FROM a;""",
    "source": """CREATE STREAM s (n BIGINT) USING {used};
CREATE STREAM o (n BIGINT) USING delta OPTIONS (path '{out}', rowtime.column '');
CREATE PUMP p AS INSERT INTO o SELECT STREAM n FROM s;""",
    "table": f"""{A}
CREATE TABLE t (n BIGINT) USING {{used}};
CREATE STREAM o (n BIGINT) USING delta OPTIONS (path '{{out}}', rowtime.column '');
CREATE PUMP p AS INSERT INTO o SELECT STREAM a.n FROM a JOIN t ON a.n = t.n;""",
    "checkpoint": PLAIN,
    "home": PLAIN,
}
NAMED: Final = {
    "sink": r"\bthe pump p\b|^p: ",
    "source": r"^the stream s\b|which s declares",
    "table": r"^the table t\b|which t declares",
    "checkpoint": "^the checkpoint s3://",
    "home": r"^the home s3://|^the stream a\b",
}
"""The words by which each use names the object with the problem."""


class Said(NamedTuple):
    """A code, and words of its hint."""

    code: str
    hint: str


NO_BUCKET, DENIED = Said("R581", "Create the bucket"), Said("R582", r"rowtime\.toml")
EXPECTED: Final = {
    **{(kind, "a missing bucket"): NO_BUCKET for kind in SQL},
    **{(kind, "credentials that are refused"): DENIED for kind in SQL},
    ("sink", "a table of another schema"): Said("R561", "Add it to the table|Declare"),
    ("source", "a table of another schema"): Said("R577", "Start again when the table has|Declare"),
    ("table", "a table of another schema"): Said("R577", "Start again when the table has|Declare"),
    ("sink", "a table that was deleted"): Said("R564", "Restore it"),
    ("source", "a table that was deleted"): Said("R576", "Restore it"),
    ("table", "a table that was deleted"): Said("R501", "Create the table"),
    ("source", "a table that was made anew"): Said("R576", "Restore it"),
    ("source", "a version that was vacuumed"): Said("R576", "Restore it"),
    ("table", "a version that was vacuumed"): Said("R578", "Name one"),
}
OF_STORES: Final = ("a missing bucket", "credentials that are refused")
OF_TABLES: Final = ("sink", "source", "table")
CASES: Final = [
    pytest.param(kind, form, wrong, where, marks=[pytest.mark.slow] if (where, form) != ("disk", "delta") else [])
    for kind, wrong in EXPECTED
    for form in (("delta", "iceberg") if kind in OF_TABLES else ("delta",))
    for where in (("bucket",) if wrong in OF_STORES else ("disk", "bucket"))
]


@dataclass
class Use:
    """A pipeline whose ``table``, ``home`` or checkpoint (``check``) is at some place, depending on ``kind``."""

    spark: SparkSession
    folder: Path
    kind: str
    table: Foreign
    home: str
    check: str
    more: str = ""

    @classmethod
    def at(cls, spark: SparkSession, folder: Path, kind: str, form: str, place: str) -> Use:
        """The tested object is at a place, everything else in a folder."""
        here = place if kind in OF_TABLES else str(folder)
        warehouse = f"file://{here}" if here.startswith("/") else here
        table: Foreign = Delta(f"{here}/t") if form == "delta" else Iceberg(folder, warehouse, "t")
        home, check = (f"{place if kind == what else folder}/{what}" for what in ("home", "checkpoint"))
        return cls(spark, folder, kind, table, home, check)

    def go(self) -> None:
        sql = SQL[self.kind].format(used=self.table.using.format(more=self.more), out=self.folder / "o")
        rt.Pipeline(self.spark, home=self.home).sql(sql).run_available(self.check)

    def send(self, *numbers: int) -> None:
        """Give it rows; those of a static table go into the table and into the stream."""
        if self.kind in ("source", "table"):
            self.table.append([*numbers])
        if self.kind != "source":
            [made] = rt.Pipeline().sql(A).compile().defines
            Home(self.home).define("a", made.as_json())
            with rt.writer("a", home=self.home) as log:
                log.insert([{"n": n, "rowtime": n * 1_000_000} for n in numbers])

    @property
    def result(self) -> list[int]:
        return self.table.numbers() if self.kind == "sink" else Delta(str(self.folder / "o")).numbers()

    def refuses(self) -> Sequence[Problem]:
        """The refusal."""
        with pytest.raises(RowtimeError) as raised:
            self.go()
        return raised.value.problems


@pytest.fixture
def stored(bucket: str) -> Iterator[tuple[str, Faults]]:
    """A bucket, and the failures of the driver's requests to it."""
    if jars_missing():
        without_jars(jars_missing())
    assert bucket
    name = f"s3://rowtime-{uuid.uuid4().hex[:12]}"
    make_bucket(name.removeprefix("s3://"))
    with faulty(address()) as (proxy, found):
        rt.configure_stores({one: {"endpoint": proxy} for one in (name, NOWHERE)})
        yield name, found
    rt.configure_stores({})


Wrong = Callable[[Use, Faults, str], Sequence[Problem]]


def missing_bucket(use: Use, _faults: Faults, form: str) -> Sequence[Problem]:
    use.send(1, 2)
    if isinstance(use.table, Iceberg) and use.kind in ("source", "table"):
        undo = use.table.lose_bucket(NOWHERE)
        said = use.refuses()
        undo()
    else:
        said = Use.at(use.spark, use.folder, use.kind, form, NOWHERE).refuses()
    use.go()
    return said


def denied(use: Use, faults: Faults, _form: str) -> Sequence[Problem]:
    use.send(1)
    if use.kind != "table":  # it is read once
        use.go()
        use.send(2)
    answers, faults.ask = faults.ask, lambda *_: (403, {}, b"<Error><Code>InvalidAccessKeyId</Code></Error>")  # type: ignore[method-assign]
    try:
        said = use.refuses()
    finally:
        faults.ask = answers  # type: ignore[method-assign]
    if use.kind == "table":
        use.send(2)
    use.go()
    return said


def another_schema(use: Use, _faults: Faults, _form: str) -> Sequence[Problem]:
    use.table.append([1], "m")
    said = use.refuses()
    use.table.discard()
    use.send(1, 2)
    use.go()
    return said


def deleted(use: Use, _faults: Faults, _form: str) -> Sequence[Problem]:
    use.send(1)
    if use.kind != "table":
        use.go()
        use.send(2)
    undo = use.table.remove()
    said = use.refuses()
    undo()
    if use.kind == "table":
        use.send(2)
    use.go()
    return said


def made_anew(use: Use, _faults: Faults, _form: str) -> Sequence[Problem]:
    use.send(1)
    use.go()
    use.send(2)
    undo = use.table.remove()
    use.table.append([3])
    said = use.refuses()
    use.table.remove()
    undo()
    use.go()
    return said


def vacuumed(use: Use, _faults: Faults, _form: str) -> Sequence[Problem]:
    use.send(1)
    if use.kind == "source":
        use.go()
    use.send(2)
    if use.kind == "table":
        use = replace(use, more=f", versionAsOf '{use.table.current()}'")
    undo = use.table.vacuum()
    said = use.refuses()
    undo()
    use.go()
    return said


DONE: Final[dict[str, Wrong]] = dict(
    zip(
        dict.fromkeys(wrong for _, wrong in EXPECTED),
        (missing_bucket, denied, another_schema, deleted, made_anew, vacuumed),
        strict=True,
    )
)


@pytest.mark.parametrize(("kind", "form", "wrong", "where"), CASES)
def test_problems_have_a_code_a_name_and_a_fix_and_nothing_is_lost(
    request: pytest.FixtureRequest,
    spark: SparkSession,
    tmp_path: Path,
    bucket: str,
    kind: str,
    form: str,
    wrong: str,
    where: str,
) -> None:
    assert bucket
    place, faults = request.getfixturevalue("stored") if where == "bucket" else (str(tmp_path), Faults(""))
    use = Use.at(spark, tmp_path, kind, form, place)
    for problem in DONE[wrong](use, faults, form):
        assert problem.code == EXPECTED[kind, wrong].code, problem
        assert re.search(NAMED[kind], problem.message), problem
        assert re.search(EXPECTED[kind, wrong].hint, problem.hint), problem
    assert use.result == [1, 2]

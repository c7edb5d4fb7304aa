"""Folders and values of partitions with characters that URLs and folders encode: written values are read back."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Final

import polars as pl
import pytest
from deltalake import DeltaTable

import rowtime as rt
from reliability.crash.oracles import OtherSparks
from rowtime.core.errors import Refused
from rowtime.core.stores import place_of
from rowtime.runtime.iceberg_catalog import opened
from rowtime.runtime.lake_targets import optimize
from rowtime.runtime.store_access import deltalake_settings
from tests.kafka.missing_jars import without_jars
from tests.stores import conftest as stores

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

bucket = stores.bucket

SIGNS: Final = ("a b", "a%20b", "%41", "100%", "a/b", "a#b", "a?b", "ä日本", "a=b&c", "[x]^|", "a\\b", "'q'", '"q"')
VALUES: Final = (
    *SIGNS,
    "*:;<>",
    "\t",
    "new\nline",
    "..",
    "a+b",
    "e\u0301",
    " lead",
    "trail ",
    "{y}",
    "~`$@!",
    "x" * 200,
)
ODD: Final = "a b&e=f+g ä日本 100% \"q\" 'q' {x};~`<>*"  # what deltalake opens
READ_BY_ALL: Final = "a+b'q';~,(a)@$!"  # also by polars, which does not decode URLs of folders
FORMS: Final = [
    ("delta", "disk", ""),
    *(pytest.param(*case, marks=pytest.mark.slow) for case in (("delta", "disk", "k, n"), ("delta", "bucket", ""))),
    ("iceberg", "disk", ""),
    *(pytest.param(*case, marks=pytest.mark.slow) for case in (("iceberg", "disk", "k, n"), ("iceberg", "bucket", ""))),
]
SQL: Final = """CREATE STREAM a (n BIGINT, k STRING);
CREATE STREAM o (n BIGINT NOT NULL, k STRING NOT NULL) USING {using} PARTITIONED BY (k) OPTIONS ({where}{key});
CREATE PUMP p AS INSERT INTO o SELECT STREAM COALESCE(n, 0) AS n, COALESCE(k, '?') AS k FROM a;"""
READ: Final = """CREATE STREAM t (n BIGINT, k STRING) USING {using} OPTIONS ({where});
CREATE STREAM o (n BIGINT, k STRING) USING delta OPTIONS (path '{out}', rowtime.column '');
CREATE PUMP p AS INSERT INTO o SELECT STREAM n, k FROM t;"""


@pytest.mark.parametrize(("form", "where", "key"), FORMS)
def test_odd_folders_and_values_of_partitions_are_written_and_read(
    spark: SparkSession, tmp_path: Path, bucket: str, form: str, where: str, key: str
) -> None:
    odd = ODD if form == "delta" else f"{ODD}#?a%20b%41[x]^|"
    place = f"{tmp_path}/{odd}" if where == "disk" else f"{bucket}/{ODD}"
    told = {"type": "sql", "uri": f"sqlite:///{tmp_path}/catalog.db"}
    told["warehouse"] = f"file://{place}" if where == "disk" else place
    catalog = ", ".join(f"catalog.{name} '{_quoted(value)}'" for name, value in told.items())
    options = f"path '{_quoted(place)}/t'" if form == "delta" else f"catalog 'c', table 'db.t', {catalog}"
    given = {"using": form, "where": options, "key": f", key '{key}'" if key else "", "out": tmp_path / "out"}

    def numbers() -> list[tuple[int, str]]:
        if form == "iceberg":
            found = opened("c", told).load_table("db.t").scan().to_arrow()
        else:
            found = DeltaTable(f"{place}/t", storage_options=deltalake_settings(place_of(place))).to_pyarrow_table()
        return sorted(zip(found["n"].to_pylist(), found["k"].to_pylist(), strict=True))

    for again in range(2):
        written = rt.Pipeline(spark, home=tmp_path / "home").sql(SQL.format(**given))
        for stream in written.compile().defines:
            written.home.define(stream.name, stream.as_json())
        with rt.writer("a", home=tmp_path / "home") as log:
            log.insert([{"n": n, "k": k, "rowtime": (100 * again + n) * 1_000_000} for n, k in enumerate(VALUES)])
        written.run_available(tmp_path / "check")
    expected = [(n, k) for n, k in enumerate(VALUES) for _ in range(1 if key else 2)]
    assert numbers() == expected
    assert rt.verify(tmp_path / "check", spark=spark, home=tmp_path / "home").equal
    assert [one.files for one in optimize(tmp_path / "check")] == [0 if key else 2 * len(VALUES)]
    assert numbers() == expected
    read = rt.Pipeline(spark, home=tmp_path / "reader").sql(READ.format(**given))
    read.run_available(tmp_path / "read")
    assert (
        sorted(
            DeltaTable(str(tmp_path / "out"))
            .to_pyarrow_table()
            .select(["n", "k"])
            .to_pandas()
            .itertuples(index=False, name=None)
        )
        == expected
    )


def _quoted(text: str) -> str:
    return text.replace("'", "''")


def test_polars_reads_a_table_in_an_odd_folder(spark: SparkSession, tmp_path: Path) -> None:
    place = tmp_path / READ_BY_ALL
    given = {"using": "delta", "where": f"path '{_quoted(str(place))}'", "key": ""}
    written = rt.Pipeline(spark, home=tmp_path / "home").sql(SQL.format(**given))
    for stream in written.compile().defines:
        written.home.define(stream.name, stream.as_json())
    with rt.writer("a", home=tmp_path / "home") as log:
        log.insert([{"n": n, "k": k, "rowtime": n * 1_000_000} for n, k in enumerate(VALUES)])
    written.run_available(tmp_path / "check")
    assert sorted(pl.scan_delta(str(place)).select("n", "k").collect().rows()) == [*enumerate(VALUES)]


@pytest.mark.slow
@pytest.mark.parametrize("form", ["delta", "iceberg"])
def test_another_spark_reads_odd_values_of_partitions(spark: SparkSession, tmp_path: Path, form: str) -> None:
    place = tmp_path / READ_BY_ALL
    told = {"type": "sql", "uri": f"sqlite:///{tmp_path}/catalog.db", "warehouse": f"file://{place}"}
    catalog = ", ".join(f"catalog.{name} '{_quoted(value)}'" for name, value in told.items())
    where = f"path '{_quoted(str(place))}'" if form == "delta" else f"catalog 'c', table 'db.t', {catalog}"
    written = rt.Pipeline(spark, home=tmp_path / "home").sql(SQL.format(using=form, where=where, key=""))
    for stream in written.compile().defines:
        written.home.define(stream.name, stream.as_json())
    with rt.writer("a", home=tmp_path / "home") as log:
        log.insert([{"n": n, "k": k, "rowtime": n * 1_000_000} for n, k in enumerate(VALUES)])
    written.run_available(tmp_path / "check")
    at = str(place) if form == "delta" else opened("c", told).load_table("db.t").metadata_location
    try:
        with OtherSparks() as others:
            found = others.read(form, at)
    except (OSError, subprocess.CalledProcessError) as error:
        without_jars(f"another Spark cannot be installed: {error}")
    rows = [{"n": n, "k": k, "rowtime": n * 1_000_000} for n, k in enumerate(VALUES)]
    assert found == sorted(repr(sorted(row.items())) for row in rows)


@pytest.mark.parametrize("name", ["a%20b", "%41", "[x]", "a^b", "a|b", "a\\b", "a#b", "a?b"])
def test_a_folder_that_deltalake_misreads_is_refused(tmp_path: Path, name: str) -> None:
    given = {"using": "delta", "where": f"path '{tmp_path}/{name}'", "key": ""}
    found = [problem for problem in rt.check(SQL.format(**given)) if not problem.warns]
    assert [problem.code for problem in found] == ["R541"]
    assert "deltalake cannot open" in found[0].message
    inside = {**given, "where": "path 't'", "out": tmp_path / "out"}
    (tmp_path / name).mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path / name)  # no script has this name
        for script in (SQL, READ):
            with pytest.raises(Refused, match="R541 the path of the Delta table"):
                rt.Pipeline(home=tmp_path / "home").sql(script.format(**inside))._engine(
                    tmp_path / "check", rt.Limits(), ends=False
                )

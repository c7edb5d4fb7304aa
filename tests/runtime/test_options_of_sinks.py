"""Directory sinks follow their options, and verify reads what they wrote."""

from __future__ import annotations

import datetime as dt
import gzip
import json
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rowtime as rt
from tests.ways import in_tasks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SQL = """
CREATE STREAM a (s STRING, d DATE);
CREATE STREAM c (s STRING, `d;d` DATE) USING csv OPTIONS
  (path '{at}/c', header 'TRUE', sep ';', dateFormat 'dd.MM.yyyy', nullValue 'none', compression 'gzip');
CREATE STREAM j (s STRING, d DATE) USING json OPTIONS
  (path '{at}/j', dateFormat 'dd.MM.yyyy', ignoreNullFields 'false', compression 'bzip2');
CREATE STREAM p (s STRING, d DATE) USING parquet OPTIONS (path '{at}/p', Compression 'ZSTD');
CREATE STREAM back (s STRING) USING parquet OPTIONS (path '{at}/mixed', pathGlobFilter 'good*', ends 'true');
CREATE STREAM good (s STRING) USING parquet OPTIONS (path '{at}/good');
CREATE PUMP to_good AS INSERT INTO good SELECT STREAM s FROM back;
CREATE STREAM q (s STRING, d DATE) USING parquet OPTIONS (path '{at}/q');
CREATE PUMP to_c AS INSERT INTO c SELECT STREAM s, d AS `d;d` FROM a;
CREATE PUMP to_j AS INSERT INTO j SELECT STREAM * FROM a;
CREATE PUMP to_p AS INSERT INTO p SELECT STREAM * FROM a;
CREATE PUMP to_q AS INSERT INTO q SELECT STREAM * FROM a;
INSERT INTO a (ROWTIME, s, d) VALUES (TIMESTAMP '2024-01-01 10:00:00', 'x', '2024-02-03'),
  (TIMESTAMP '2024-01-01 10:00:01', NULL, '2024-02-04');
ALTER STREAM a END
"""


def test_options_of_a_sink_were_accepted_and_ignored(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "mixed").mkdir()
    pq.write_table(pa.table({"s": ["yes"]}), tmp_path / "mixed/good.parquet")
    (tmp_path / "mixed/readme.txt").write_text("no Parquet")
    rt.Pipeline(spark, home=tmp_path / "home").sql(SQL.format(at=tmp_path)).run_available(tmp_path / "check")
    (csv,) = (tmp_path / "c").glob("part-*.csv.gz")
    lines = gzip.decompress(csv.read_bytes()).decode().splitlines()
    assert lines[0] == 'rowtime;s;"d;d"'
    assert [line.split(";")[1:] for line in lines[1:]] == [["x", "03.02.2024"], ["none", "04.02.2024"]]
    read = spark.read.json(str(tmp_path / "j"), schema="s STRING, d STRING").orderBy("d")
    assert [(row.s, row.d) for row in read.collect()] == [("x", "03.02.2024"), (None, "04.02.2024")]
    assert [file.name.endswith(".json.bz2") for file in (tmp_path / "j").glob("part-*")] == [True]
    codecs = {name: _codec(tmp_path / name) for name in "pq"}
    assert codecs == {"p": "ZSTD", "q": "SNAPPY"}
    rows = pq.read_table(next((tmp_path / "p").glob("part-*"))).to_pylist()
    assert [row["d"] for row in rows] == [dt.date(2024, 2, 3), dt.date(2024, 2, 4)]
    assert pq.read_table(next((tmp_path / "good").glob("part-*")))["s"].to_pylist() == ["yes"]
    verified = rt.verify(tmp_path / "check", spark=spark, home=tmp_path / "home")
    assert verified.equal


@pytest.mark.parametrize("driver", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_a_file_of_a_directory_had_any_number_of_rows(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, driver: bool
) -> None:
    if not driver:
        in_tasks(monkeypatch, 1)
    (tmp_path / "in").mkdir()
    pq.write_table(pa.table({"n": pa.array(range(5300), pa.int64())}), tmp_path / "in/one.parquet")
    script = """
        CREATE STREAM a (n BIGINT) USING parquet OPTIONS (path '{at}/in');
        CREATE STREAM p (n BIGINT) USING parquet OPTIONS (path '{at}/p', maxRecordsPerFile '1500');
        CREATE STREAM j (n BIGINT) USING json OPTIONS (path '{at}/j', maxRecordsPerFile '2000');
        CREATE PUMP to_p AS INSERT INTO p SELECT STREAM n FROM a;
        CREATE PUMP to_j AS INSERT INTO j SELECT STREAM n FROM a;
    """
    rt.Pipeline(spark, home=tmp_path / "home").sql(script.format(at=tmp_path)).run_available(tmp_path / "check")
    parquet = [pq.read_table(file)["n"].to_pylist() for file in sorted((tmp_path / "p").glob("part-*"))]
    text = [file.read_text().splitlines() for file in sorted((tmp_path / "j").glob("part-*"))]
    for files, most in ((parquet, 1500), ([[json.loads(line)["n"] for line in lines] for lines in text], 2000)):
        assert max(map(len, files)) == most
        assert [n for rows in files for n in rows] == list(range(5300)), "in stream order, each once"
    assert len(parquet) == 4
    assert rt.verify(tmp_path / "check", spark=spark, home=tmp_path / "home").equal
    if driver:  # the next start may use another value
        pq.write_table(pa.table({"n": pa.array(range(5300, 8000), pa.int64())}), tmp_path / "in/two.parquet")
        other = script.format(at=tmp_path).replace("'1500'", "'2500'")
        rt.Pipeline(spark, home=tmp_path / "home").sql(other).run_available(tmp_path / "check")
        lengths = [pq.read_table(file).num_rows for file in sorted((tmp_path / "p").glob("part-*"))]
        assert lengths == [1500, 1500, 1500, 800, 2500, 200]
        assert rt.verify(tmp_path / "check", spark=spark, home=tmp_path / "home").equal


def _codec(folder: Path) -> str:
    (file,) = folder.glob("part-*.parquet")
    return str(pq.ParquetFile(file).metadata.row_group(0).column(0).compression)

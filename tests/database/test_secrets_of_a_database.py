"""Law: no file of a checkpoint or a home, no log record and no error contains a secret, however a run ends."""

from __future__ import annotations

import json
import logging
import traceback
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import rowtime as rt

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.database.postgres import Postgres

SECRETS = ("LitUrlZw", "LitWordZw", "LitSslZw", "LitPhraseZw", "VarWordZw", "VarSslZw")
VARIABLES = {"pw": "VarWordZw", "ssl_word": "VarSslZw"}
SQL = """
CREATE STREAM a (s STRING);
CREATE STREAM one (s STRING) USING jdbc OPTIONS (url '{url}?password=LitUrlZw', user 'rowtime', dbtable '{name}_one',
  password 'LitWordZw', sslpassword 'LitSslZw');
CREATE STREAM two (s STRING) USING jdbc OPTIONS (url '{url}', user 'rowtime', dbtable '{name}_two',
  password '${{pw}}', sslpassword '${{ssl_word}}');
CREATE PUMP p AS INSERT INTO one SELECT STREAM s FROM a;
CREATE PUMP q AS INSERT INTO two SELECT STREAM s FROM a;
INSERT INTO a (ROWTIME, s) VALUES (TIMESTAMP '2024-01-01 10:00:00', 'x');
"""


def files_with_secrets(folder: Path) -> list[str]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert files
    return [f"{path}: {word}" for path in files for word in SECRETS if word.encode() in path.read_bytes()]


def made(spark: SparkSession, folder: Path, url: str, name: str) -> rt.Pipeline:
    return rt.Pipeline(spark, home=folder / "home").sql(SQL.format(url=url, name=name), VARIABLES)


@pytest.mark.slow
def test_a_run_that_succeeds_leaves_no_secret_in_any_file(
    spark: SparkSession, postgres: Postgres, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)  # at a lower level py4j logs every call
    check = tmp_path / "check"
    query = made(spark, tmp_path, postgres.url, "good").run_available(check)
    assert files_with_secrets(tmp_path) == []
    assert [word for word in SECRETS if word in caplog.text + json.dumps(query.status, default=str)] == []
    # With other secrets the script is the same: the stream and the plan do not change.
    text = SQL.format(url=postgres.url, name="good")
    other = rt.Pipeline(spark, home=tmp_path / "home").sql(
        text.replace("Lit", "New"), dict.fromkeys(VARIABLES, "Other")
    )
    other.run_available(check)
    # The stored script has the names of secrets, not their values.
    with pytest.raises(rt.Refused, match="secret_one_password"):
        rt.verify(check, spark=spark, home=tmp_path / "home", variables=VARIABLES)
    needed = ("secret_one_url", "secret_one_password", "secret_one_sslpassword")
    rt.verify(check, spark=spark, home=tmp_path / "home", variables={**VARIABLES, **dict.fromkeys(needed, "any")})


@pytest.mark.parametrize("url", ["jdbc:postgresql://127.0.0.1:1/none", "jdbc:postgresql://h:no/none"])
def test_a_run_that_fails_says_no_secret(
    spark: SparkSession, postgres: Postgres, tmp_path: Path, caplog: pytest.LogCaptureFixture, url: str
) -> None:
    del postgres  # its driver is present
    caplog.set_level(logging.INFO)  # at a lower level py4j logs every call
    with pytest.raises(rt.RowtimeError) as failed:
        made(spark, tmp_path, url, "bad").run_available(tmp_path / "check")
    said = "".join(traceback.format_exception(failed.value)) + caplog.text
    assert [word for word in SECRETS if word in said] == []
    assert files_with_secrets(tmp_path) == []

"""Runs on Azurite, where Spark reads with its own file system for Azure; and the settings that Spark gets."""

from __future__ import annotations

from pathlib import Path

import pytest

from rowtime.core.stores import place_of
from rowtime.runtime.azure_access import azure_settings
from rowtime.runtime.jars import azure_jars
from rowtime.runtime.spark_paths import url_for_spark
from rowtime.runtime.store_access import settings_for
from tests.stores.whole_runs import runs_on_server


@pytest.mark.slow
def test_a_run_on_azurite_continues_where_it_stopped(tmp_path: Path) -> None:
    runs_on_server("azurite", azure_jars, "Azure Blob FS", tmp_path)


def test_spark_gets_the_azure_settings_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    url, name = "abfss://c@here.dfs.core.windows.net/f", "fs.azure.account.key.here.dfs.core.windows.net"
    for variable in ("AZURE_STORAGE_ACCOUNT_NAME", "AZURE_STORAGE_ACCOUNT_KEY", "AZURE_STORAGE_USE_EMULATOR"):
        monkeypatch.delenv(variable, raising=False)
    assert azure_settings(url) == {}
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", "here")
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", "a-key")
    assert azure_settings(url) == {name: "a-key"}
    assert azure_settings("abfss://c@other.dfs.core.windows.net/f") == {}, "the key is that of another account"
    assert url_for_spark(place_of("az://c/f")) == url  # type: ignore[arg-type]
    monkeypatch.setenv("AZURE_STORAGE_USE_EMULATOR", "true")
    monkeypatch.setenv("AZURITE_BLOB_STORAGE_URL", "http://127.0.0.1:1234")
    assert azure_settings(url)["fs.azure.abfs.endpoint"] == "127.0.0.1:1234"
    monkeypatch.setenv("MASTER", "spark://there:7077")
    assert settings_for([url]) == {}, "a cluster brings its own jars"

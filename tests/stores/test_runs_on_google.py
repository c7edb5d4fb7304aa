"""Runs on a stand-in for Google's store, where Spark reads with Google's connector; and Spark's settings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import pytest

from rowtime.core.store_settings import GoogleAccount, google_account
from rowtime.core.stores import place_of
from rowtime.runtime.google_access import google_settings
from rowtime.runtime.jars import google_jars
from rowtime.runtime.store_access import settings_for
from rowtime.state.files import write_new, write_over
from tests.stores.server import server
from tests.stores.whole_runs import runs_on_server

NAMES: Final = ("GOOGLE_SERVICE_ACCOUNT", "GOOGLE_SERVICE_ACCOUNT_PATH", "GOOGLE_SERVICE_ACCOUNT_KEY")


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """An environment without settings of Google."""
    for name in (*NAMES, "GOOGLE_APPLICATION_CREDENTIALS", "MASTER"):
        monkeypatch.delenv(name, raising=False)
    return monkeypatch


@pytest.mark.slow
def test_a_run_on_google_continues_where_it_stopped(tmp_path: Path) -> None:
    runs_on_server("google", google_jars, "GHFS", tmp_path)


def test_an_object_is_created_once_and_replaced_on_the_server_that_the_key_file_names(
    environment: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    store = server("google")
    for name, value in store.environment().items():
        environment.setenv(name, value)
    place = place_of(f"{store.bucket}/{tmp_path.name}") / "x"
    write_new(place, b"1")
    with pytest.raises(FileExistsError):
        write_new(place, b"2")
    write_over(place, b"3")
    assert bytes(store.client().get(f"{tmp_path.name}/x").bytes()) == b"3"


def test_spark_gets_the_google_settings_of_the_environment(environment: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert google_settings() == {}, "Hadoop looks for the account of the machine"
    environment.setenv("GOOGLE_APPLICATION_CREDENTIALS", "/there/credentials.json")
    assert google_settings() == {"fs.gs.auth.type": "APPLICATION_DEFAULT"}
    key = tmp_path / "key.json"
    key.write_text(json.dumps({"client_email": "me@there", "private_key": "secret"}))
    environment.setenv("GOOGLE_SERVICE_ACCOUNT_PATH", str(key))
    by_key = {"fs.gs.auth.type": "SERVICE_ACCOUNT_JSON_KEYFILE", "fs.gs.auth.service.account.json.keyfile": str(key)}
    assert google_settings() == by_key
    key.write_text(json.dumps({"gcs_base_url": "http://127.0.0.1:1", "disable_oauth": True}))
    assert google_settings() == {
        "fs.gs.storage.root.url": "http://127.0.0.1:1/",
        "fs.gs.auth.type": "UNAUTHENTICATED",
    }
    environment.setenv("MASTER", "spark://there:7077")
    assert settings_for(["gs://b/x"]) == {}, "a cluster brings its own jars"


def test_only_a_key_that_names_another_server_lets_requests_go_without_tls(environment: pytest.MonkeyPatch) -> None:
    assert google_account() == GoogleAccount()
    for told, by_http in (
        ({}, False),
        ({"gcs_base_url": "http://127.0.0.1:1"}, True),
        ({"gcs_base_url": "https://store.example"}, False),
        ([1], False),
    ):
        environment.setenv("GOOGLE_SERVICE_ACCOUNT_KEY", json.dumps(told))
        assert google_account().by_http == by_http
    environment.setenv("GOOGLE_SERVICE_ACCOUNT_KEY", "{")
    assert google_account() == GoogleAccount(), "the client says what is wrong with it"

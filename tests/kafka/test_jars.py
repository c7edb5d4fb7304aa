"""The connector's jars: the cache, and the messages if they are not available."""

from __future__ import annotations

from pathlib import Path

import pytest

from rowtime.core.errors import Failure
from rowtime.runtime import jars
from tests.kafka import missing_jars

COORDINATES = "org.example:thing_2.13:1.0"


@pytest.fixture
def mvn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory that is the whole PATH except the system's, for an ``mvn`` of the test."""
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin")
    return tmp_path / "mvn"


def pretend(mvn: Path, script: str) -> None:
    mvn.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    mvn.chmod(0o755)


@pytest.mark.parametrize(
    ("jar", "name"),
    [
        ("/x/kafka-clients-3.9.1.jar", "kafka-clients"),
        ("spark-sql-kafka-0-10_2.13-4.3.0.jar", "spark-sql-kafka-0-10_2.13"),
        ("spark-tags_2.13-4.2.0-preview1.jar", "spark-tags_2.13"),
        ("netty-buffer-4.1.105.Final.jar", "netty-buffer"),
    ],
)
def test_the_name_of_an_artifact(jar: str, name: str) -> None:
    assert jars.artifact(jar) == name


def test_without_maven_the_coordinates_are_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Failure, match=rf"R502 .*{jars.connector()}.*mvn is not installed"):
        jars.kafka_jars(cache=tmp_path / "cache")


def test_fetched_jars_are_kept(mvn: Path, tmp_path: Path) -> None:
    pretend(
        mvn, "for a; do case $a in -DoutputDirectory=*) d=${a#*=}; mkdir $d; touch $d/b-1.jar $d/a-1.jar;; esac; done"
    )
    found = jars.fetch([COORDINATES], cache=tmp_path / "cache")
    assert [Path(jar).name for jar in found] == ["a-1.jar", "b-1.jar"]
    pretend(mvn, "exit 1")
    assert jars.fetch([COORDINATES], cache=tmp_path / "cache") == found


def test_the_message_of_maven_is_passed_on_and_nothing_is_kept(mvn: Path, tmp_path: Path) -> None:
    pretend(mvn, "echo '[ERROR] the house is on fire'; echo '[ERROR] -> [Help 1]'; exit 1")
    with pytest.raises(Failure, match=r"R502 .*: the house is on fire\n"):
        jars.fetch([COORDINATES], cache=tmp_path / "cache")
    assert list((tmp_path / "cache").iterdir()) == []


def test_a_hanging_maven_is_stopped(mvn: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(mvn, "exec sleep 60")
    monkeypatch.setattr(jars, "OFFLINE_SECONDS", 0.1)
    monkeypatch.setattr(jars, "ONLINE_SECONDS", 0.2)
    with pytest.raises(Failure, match=r"did not finish within 0\.2 s"):
        jars.fetch([COORDINATES], cache=tmp_path / "cache")


@pytest.mark.parametrize(("reached", "outcome"), [(True, pytest.fail.Exception), (False, pytest.skip.Exception)])
def test_tests_are_skipped_only_where_nothing_can_be_fetched(
    mvn: Path, reached: bool, outcome: type[BaseException], request: pytest.FixtureRequest
) -> None:
    missing_jars.out_of_reach.cache_clear()
    request.addfinalizer(missing_jars.out_of_reach.cache_clear)
    pretend(mvn, 'mkdir -p "${0%/*}"; for a in "$@"; do case $a in -DoutputDirectory=*) mkdir "${a#*=}";; esac; done')
    if not reached:
        pretend(mvn, "echo '[ERROR] Unknown host'; exit 1")
    with pytest.raises(outcome, match="the jars of x"):
        missing_jars.without_jars("the jars of x cannot be fetched")

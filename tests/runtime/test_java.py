"""Without a Java that Spark can run on, the error has a code and an install command."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from py4j.protocol import Py4JError

import rowtime as rt
from rowtime.runtime import java
from rowtime.runtime.session import new_spark


def fake_java(home: Path, version: str) -> None:
    """A java that prints its version and cannot run Spark."""
    command = home / "bin" / "java"
    command.parent.mkdir(parents=True)
    command.write_text(f"#!/bin/sh\necho '    java.specification.version = {version}' >&2\nexit 1\n")
    command.chmod(0o755)


@pytest.fixture
def no_session(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a process without a started Spark: the builder starts the gateway with the Java that it finds."""
    from pyspark.java_gateway import launch_gateway
    from pyspark.sql import SparkSession

    def start(_builder: object) -> None:
        launch_gateway()

    monkeypatch.setattr(SparkSession.Builder, "getOrCreate", start)


@pytest.mark.usefixtures("no_session")
@pytest.mark.parametrize(("version", "told"), [("1.8", "8"), ("11", "11")])
def test_an_old_java_is_reported_with_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, told: str
) -> None:
    fake_java(tmp_path, version)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(rt.Failure) as failure:
        new_spark()
    problem = failure.value.problems[0]
    assert problem.code == "R510"
    assert problem.message == f"Spark needs Java 17 or newer, and {tmp_path}/bin/java is Java {told}"
    assert "openjdk-17-jre-headless" in problem.hint


@pytest.mark.usefixtures("no_session")
def test_no_java_is_reported_with_where_it_was_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(java, "PLACES", (f"{tmp_path}/*/bin/java",))
    with pytest.raises(rt.Failure, match=r"R510 .* JAVA_HOME is not set, and PATH has none"):
        new_spark()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(rt.Failure, match=f"R510 .* JAVA_HOME is {tmp_path}, which has no bin/java"):
        new_spark()


def test_the_newest_java_of_the_usual_places_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, version in (("jdk-11", "11"), ("jdk-21", "21"), ("jdk-8", "1.8"), ("jdk-17", "17")):
        fake_java(tmp_path / name, version)
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr(java, "PLACES", (f"{tmp_path}/*/bin/java",))
    assert java.installed() == tmp_path / "jdk-21"
    monkeypatch.setattr(java, "PLACES", (f"{tmp_path}/jdk-11/bin/java", f"{tmp_path}/none/bin/java"))
    assert java.installed() is None, "Java 11 is too old"


@pytest.mark.usefixtures("no_session")
def test_a_java_of_the_usual_places_is_used_without_one_on_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_java(tmp_path / "jdk-17", "17")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(java, "PLACES", (f"{tmp_path}/*/bin/java",))
    with pytest.raises(rt.Failure, match=r"R510 Spark did not start: .* is Java 17, and ended before it answered"):
        new_spark()
    assert os.environ["JAVA_HOME"] == str(tmp_path / "jdk-17")


NO_MEMORY = "There is insufficient memory for the Java Runtime Environment to continue."


@pytest.mark.usefixtures("no_session")
@pytest.mark.parametrize("needs", ["-version", "-Xmx1g"], ids=["always", "for the driver"])
def test_too_little_memory_is_not_a_missing_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, needs: str) -> None:
    fake_java(tmp_path, "17")
    says = f"case \"$*\" in *{needs}*) echo '# {NO_MEMORY}'; exit 1;; esac\n"
    command = tmp_path / "bin" / "java"
    command.write_text(command.read_text().replace("#!/bin/sh\n", f"#!/bin/sh\n{says}"))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(rt.Failure) as failure:
        new_spark()
    (problem,) = failure.value.problems
    assert problem.code == "R510"
    assert problem.message == f"Spark did not start, because Java has too little memory: {NO_MEMORY}"
    assert "ulimit -v" in problem.hint
    assert "JDK" not in problem.hint


@pytest.mark.parametrize(
    ("said", "message", "hint"),
    [
        (
            "java.lang.IllegalArgumentException: System memory 66060 must be at least 471859200. Please",
            "too small",
            "=",
        ),
        ("java.lang.OutOfMemoryError: unable to create native thread\n at x", "too little memory", "ulimit"),
        ("java.net.BindException: Cannot assign requested address: Service 'x'", "an address", "SPARK_LOCAL_IP"),
        ("java.net.UnknownHostException: odd: odd: Name or service not known", "an address", "/etc/hosts"),
    ],
)
def test_the_cause_that_spark_names_has_its_own_hint(said: str, message: str, hint: str) -> None:
    with pytest.raises(rt.Failure) as failure, java.available():
        raise Py4JError(f"An error occurred while calling None.x.\n: {said}")
    (problem,) = failure.value.problems
    assert (problem.code, message in problem.message, hint in problem.hint) == ("R510", True, True)
    assert "JDK" not in problem.hint
    with pytest.raises(Py4JError), java.available():
        raise Py4JError("another error")

"""The first screen of the README is correct, for rowtime and for Spark."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from rowtime.cli.main import app
from tests.docs.shell import Shell, met
from tests.docs.test_docs import blocks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def clicks() -> list[str]:
    """The lines of the file, with the header."""
    [text] = blocks("README.md", "csv clicks/1.csv")
    return text.splitlines()


def test_the_first_example_says_what_the_readme_shows(
    spark: SparkSession, clicks: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    [script], [shown] = blocks("README.md", "sql clicks.sql"), blocks("README.md", "text of clicks.sql")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ROWTIME_HOME", raising=False)
    for cut in ("whole", "each"):
        files = {"whole": [clicks[1:]], "each": [[click] for click in clicks[1:]]}[cut]
        for number, lines in enumerate(files):
            file = tmp_path / cut / "clicks" / f"{number}.csv"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text("\n".join([clicks[0], *lines, ""]), encoding="utf-8")
        (tmp_path / cut / "clicks.sql").write_text(script, encoding="utf-8")
        monkeypatch.chdir(tmp_path / cut)
        ended = CliRunner().invoke(app, ["run", "clicks.sql", "--available-now"])
        assert ended.exit_code == 0, ended.output
        met(shown, [*ended.stdout.splitlines(), *ended.stderr.splitlines()])


@pytest.mark.slow
def test_the_first_example_from_the_command_line(clicks: list[str], tmp_path: Path) -> None:
    [script], [shown] = blocks("README.md", "sql clicks.sql"), blocks("README.md", "text of clicks.sql")
    (tmp_path / "work" / "clicks").mkdir(parents=True)
    (tmp_path / "work" / "clicks" / "1.csv").write_text("\n".join([*clicks, ""]), encoding="utf-8")
    (tmp_path / "work" / "clicks.sql").write_text(script, encoding="utf-8")
    met(shown, Shell(tmp_path / "work")("rowtime run clicks.sql --available-now"))


@pytest.mark.slow
def test_the_python_of_the_readme_as_a_script(tmp_path: Path) -> None:
    [code], [shown] = blocks("README.md", "python"), blocks("README.md", "text output")
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "pipeline.py").write_text(code, encoding="utf-8")
    met(shown, Shell(tmp_path / "work")("python pipeline.py"))


@pytest.mark.slow
@pytest.mark.parametrize(("cut", "hits"), [("one micro-batch", 3), ("a micro-batch for each click", 2)])
def test_spark_counts_the_late_click_or_drops_it(
    spark: SparkSession, clicks: list[str], tmp_path: Path, cut: str, hits: int
) -> None:
    from pyspark.sql import functions as F  # noqa: N812

    files = [clicks[1:]] if cut == "one micro-batch" else [[click] for click in clicks[1:]]
    source = tmp_path / "clicks"
    source.mkdir()
    name = f"first_screen_{hits}"

    def run() -> None:
        rows = spark.readStream.schema("page STRING, at TIMESTAMP").csv(str(source), header=True)
        counts = rows.withWatermark("at", "30 seconds").groupBy(F.window("at", "1 minute"), "page").count()
        options = {"checkpointLocation": str(tmp_path / "checkpoint")}
        query = (
            counts.writeStream.format("parquet").options(path=str(tmp_path / name), **options)
            .trigger(availableNow=True).start()
        )  # fmt: skip
        query.awaitTermination()

    for number, lines in enumerate(files):
        (source / f"{number}.csv").write_text("\n".join([clicks[0], *lines, ""]), encoding="utf-8")
        run()
    found = spark.read.parquet(str(tmp_path / name)).where("minute(window.start) = 0 AND page = 'home'")
    assert [row["count"] for row in found.collect()] == [hits]

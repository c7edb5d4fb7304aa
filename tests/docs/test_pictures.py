"""The pictures of the docs show the results of runs."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from typing import TYPE_CHECKING

import pytest

from tests.docs.scripts import ROOT, script

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


PICTURES = script("pictures")
RUNS = json.loads(PICTURES.RUNS.read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", [*PICTURES.PICTURES, "packages", "way"])
def test_a_picture_is_drawn_from_its_run_and_is_on_a_page(name: str) -> None:
    [(path, text)] = [(path, text) for path, text in PICTURES.drawn(RUNS).items() if path.stem == name]
    assert path.read_text(encoding="utf-8") == text, "run make pictures"
    assert ET.fromstring(text).tag.endswith("svg")  # noqa: S314 - our own file
    pages = [page.read_text(encoding="utf-8") for page in (ROOT / "docs").glob("*.md")]
    assert any(f"](images/{path.name})" in page for page in pages)


def test_the_stations_of_a_row_are_in_packages_that_exist() -> None:
    assert {package for package, *_ in PICTURES.STATIONS.values()} <= {*PICTURES.PACKAGES}


def test_another_run_makes_another_picture() -> None:
    changed = {**RUNS, "tsort": {**RUNS["tsort"], "refused": []}}
    assert PICTURES.drawn(changed) != PICTURES.drawn(RUNS)


def test_the_cuts_of_a_run_give_the_same_rows() -> None:
    cuts = RUNS["invariance"]["cuts"].values()
    assert len({(*(row["page"] for row in found["rows"]), *found["refused"]) for found in cuts}) == 1


@pytest.mark.slow
def test_the_picture_of_invariance_comes_from_runs(spark: SparkSession) -> None:
    assert json.loads(json.dumps(PICTURES.cut(spark))) == RUNS["invariance"], "run make pictures"


@pytest.mark.slow
@pytest.mark.parametrize("name", list(PICTURES.CASES))
def test_the_numbers_of_a_picture_come_from_a_run(spark: SparkSession, name: str) -> None:
    assert json.loads(json.dumps(PICTURES.run(spark, PICTURES.CASES[name]))) == RUNS[name], "run make pictures"

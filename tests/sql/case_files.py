"""The SQL of the transcripts, for tests that need many statements."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import yaml

from rowtime.testing.transcripts import Safe

FOLDER = Path(__file__).parents[1] / "transcripts" / "sqlstream"


@cache
def load(name: str) -> dict[str, Any]:
    """One case file as plain values."""
    loaded: dict[str, Any] = yaml.load((FOLDER / name).read_text(encoding="utf-8"), Loader=Safe)  # noqa: S506 - a safe loader
    return loaded


def scripts() -> dict[str, str]:
    """The script of every transcript, by file name."""
    found = {path.name: load(path.name) for path in sorted(FOLDER.glob("*.yaml"))}
    return {name: case["sql"] for name, case in found.items() if "sql" in case}


def verdicts() -> list[str]:
    """The statements that binding accepts or refuses, and their catalog."""
    case = load("statements.yaml")
    return [*case["catalog"], *(entry["sql"] for entry in case["statements"])]


def expressions() -> list[str]:
    """Every scalar expression of the case files."""
    orders = [entry["expression"] for entry in load("monotonicity.yaml")["cases"]]
    return [*orders, *(entry["expression"] for entry in load("scalar_values.yaml")["values"])]

"""The SQL of the transcripts, for tests that need a lot of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

FOLDER = Path(__file__).parents[1] / "transcripts" / "sqlstream"


def load(name: str) -> dict[str, Any]:
    """One case file as plain values."""
    loaded: dict[str, Any] = yaml.safe_load((FOLDER / name).read_text(encoding="utf-8"))
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

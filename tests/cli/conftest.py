"""Runs the command line in this process, and captures its output."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from rowtime.cli.main import app

Rowtime = Callable[..., Result]
SRC = Path(__file__).parents[2] / "src"


@pytest.fixture
def rowtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Rowtime:
    """Provides ``rowtime(…)`` in an empty folder that contains a home."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ROWTIME_HOME", raising=False)

    def call(*arguments: str, text: str | None = None) -> Result:
        return CliRunner().invoke(app, list(arguments), input=text)

    return call


@pytest.fixture
def process(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Provides a Python program in a process of its own, in the same empty folder."""

    def call(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", code, *arguments]
        environment = {**os.environ, "PYTHONPATH": str(SRC)}
        return subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=120
        )

    return call

"""The notebooks of the docs run and have the stored output; --rewrite-goldens writes it again."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

FOLDER = Path(__file__).parents[2] / "docs" / "notebooks"
# clock times and addresses
VARIES = {r"since \d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)?": "since (now)", r" at 0x[0-9a-f]+": ""}


def told(output: Any) -> dict[str, Any] | None:
    """An output without the parts that change from run to run; empty for log messages."""
    if output["output_type"] == "stream" and output["name"] == "stderr":
        return None
    text = json.dumps({**output, "execution_count": None}) if "execution_count" in output else json.dumps(output)
    for pattern, instead in VARIES.items():
        text = re.sub(pattern, instead, text)
    found: dict[str, Any] = json.loads(text)
    found.get("data", {}).pop("text/plain", None) if "text/html" in found.get("data", {}) else None
    return found


@pytest.mark.slow  # a kernel starts its own Spark; tests/api/test_shown.py tests the HTML
@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.ipynb")), ids=lambda path: path.stem)
def test_a_notebook_gives_the_output_stored_in_it(path: Path, request: pytest.FixtureRequest) -> None:
    notebook = nbformat.read(path, as_version=4)
    before = [[*map(told, cell.get("outputs", ()))] for cell in notebook.cells]
    resources = {"metadata": {"path": str(FOLDER)}}
    client = NotebookClient(notebook, timeout=300, resources=resources, record_timing=False)
    # A kernel runs the Python of its own environment, as Spark's workers do.
    client.execute(env={**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"})
    for cell in notebook.cells:
        if "outputs" in cell:
            cell.outputs = [made for made in map(told, cell.outputs) if made is not None]
    if request.config.getoption("--rewrite-goldens"):
        cells = (cell for cell in notebook.cells if cell.cell_type == "code")
        for number, cell in enumerate(cells, 1):
            cell.execution_count = number
        notebook.metadata = {"kernelspec": notebook.metadata["kernelspec"], "language_info": {"name": "python"}}
        nbformat.write(nbformat.from_dict(notebook), path)
        return
    assert [[*map(told, cell.get("outputs", ()))] for cell in notebook.cells] == before
    shown = json.dumps(before)
    assert "<b>mate</b>" not in shown
    assert "&lt;b&gt;mate&lt;/b&gt;" in shown
    for known in (str(Path.home()), str(FOLDER.parents[1]), "/tmp/"):  # noqa: S108 - none is to be in it
        assert known not in path.read_text(encoding="utf-8")

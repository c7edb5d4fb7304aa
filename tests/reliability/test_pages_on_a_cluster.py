"""The Python of the page on clusters prints what the page shows, with a Spark standalone cluster of this machine."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from reliability.cluster.processes import Cluster
from tests.docs.page_blocks import ROOT, Block, bare, blocks_of, fence, written

PAGES = ("docs/clusters.md",)
PAGE = ROOT / PAGES[0]


@pytest.mark.slow
def test_the_page_shows_what_its_example_prints(tmp_path: Path, rewrite_goldens: bool) -> None:
    page = PAGE.read_text(encoding="utf-8")
    [(number, block)] = [one for one in enumerate(blocks_of(bare(page))) if one[1].kind == "python"]
    (tmp_path / "logs").mkdir()
    with Cluster(tmp_path / "logs", 2) as cluster:
        made = written(page, {number: fence("output", printed(block, cluster.url, tmp_path))})
    if rewrite_goldens:
        PAGE.write_text(made, encoding="utf-8")
    else:
        assert made == page, "run make outputs"


def printed(block: Block, master: str, folder: Path) -> str:
    """Run the block as a driver of its own; return what it prints."""
    program = folder / "pipeline.py"
    text = block.text.replace("spark://master:7077", master).replace("/shared", str(folder / "shared"))
    program.write_text(text, encoding="utf-8")
    own = {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1", "PYTHONPATH": str(ROOT / "src")}
    ended = subprocess.run(
        [sys.executable, str(program)], cwd=folder, env={**os.environ, **own}, capture_output=True, text=True,
        check=False, timeout=300,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr[-3000:]
    return ended.stdout.rstrip()

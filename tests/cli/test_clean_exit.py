"""A program that has run a pipeline exits with its own output only; libraries print nothing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

CODE = """import sys, rowtime as rt
made = rt.Pipeline(home=sys.argv[1]).sql("CREATE STREAM s (n INT); SELECT STREAM n + 1 AS m FROM s WHERE n > 0")
made.home.define("s", made.compile().defines[0].as_json())
with rt.writer("s", home=sys.argv[1]) as log:
    log.insert([{"rowtime": "2024-01-01 00:00:01", "n": 7}])
query = made.start(sys.argv[2], available_now=True)
query.awaitTermination()"""


@pytest.mark.slow  # it starts a Spark of its own
def test_nothing_is_written_to_standard_error(tmp_path: Path) -> None:
    command = [sys.executable, "-c", CODE, str(tmp_path / "home"), str(tmp_path / "check")]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "m=8" in ended.stdout

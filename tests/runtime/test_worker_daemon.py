"""Workers of a session that rowtime starts have what tasks import before their first task."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Final

import pytest

from rowtime.runtime.session import settings_for

if TYPE_CHECKING:
    from pathlib import Path

DAEMON: Final = "spark.python.daemon.module"
CODE: Final = """
from rowtime.runtime.session import new_spark

def known(batches):
    import sys
    import pyarrow as pa
    for batch in batches:
        yield pa.record_batch([pa.array(["rowtime.runtime.executors.tasks" in sys.modules])], names=["known"])

spark = new_spark()
print(spark.range(0, 1, 1, 1).mapInArrow(known, "known boolean").toArrow()["known"][0])
"""


def test_workers_of_another_python_or_machine_are_left_as_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    assert DAEMON in settings_for("local[*]", (), {})
    assert DAEMON not in settings_for("local[*]", (), {"spark.pyspark.python": str(tmp_path / "python")})
    assert DAEMON not in settings_for("spark://host:7077", (), {})
    monkeypatch.setenv("PYSPARK_PYTHON", str(tmp_path / "python"))
    assert DAEMON not in settings_for("local[*]", (), {})
    monkeypatch.delenv("PYSPARK_PYTHON")
    assert DAEMON in settings_for("local[*]", (), {})


@pytest.mark.slow
def test_a_worker_is_a_fork_with_what_tasks_import() -> None:
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.split()[-1] == "True"

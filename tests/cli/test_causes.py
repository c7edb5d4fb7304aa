"""What a command that fails says of the causes."""

from __future__ import annotations

from pyspark.errors import PythonException

from rowtime.cli.outcome import _causes
from rowtime.core.errors import Failure, Problem


def test_a_cause_that_only_announces_a_traceback_is_not_shown() -> None:
    failure = Failure(Problem("R512", "a Python function of the query raised ZeroDivisionError: division by zero"))
    failure.__cause__ = PythonException("An exception was thrown from the Python worker:\nTraceback …")
    assert not [*_causes(failure)]
    failure.__cause__ = RuntimeError("the server is away")
    assert [*_causes(failure)] == ["RuntimeError: the server is away"]

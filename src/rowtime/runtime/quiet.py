"""Errors without secrets: the message of a database driver or a Kafka client may quote its options.

An error that quotes a secret is raised again with a safe text, and without its causes.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # py4j has no types
from pyspark.errors import AnalysisException, PySparkException, PythonException

from rowtime.core.errors import RowtimeError, causes
from rowtime.core.secrets import Secrets
from rowtime.plan.kept_options import hidden

# These types decide whether another try may help (`retries.permanent`).
_KINDS = (AnalysisException, PythonException, PySparkException, Py4JError, MemoryError, OSError)


@contextmanager
def hiding(secrets: Secrets) -> Iterator[None]:
    """Replace any error that quotes a secret, or whose causes do."""
    try:
        yield
    except BaseException as error:
        if not any(_quotes(cause, secrets) for cause in causes(error, implied=True)):
            raise
        raise _without_secrets(error, secrets) from None


def _quotes(error: BaseException, secrets: Secrets) -> bool:
    text = f"{error}{getattr(error, '__notes__', '')}"
    return secrets.hide(text) != text


def _without_secrets(error: BaseException, secrets: Secrets) -> BaseException:
    """Return an error of the same type, as far as the type decides what happens next."""
    if isinstance(error, RowtimeError):
        return type(error)(*hidden(error.problems, secrets))
    text = secrets.hide(str(error))
    for kind in _KINDS:
        if isinstance(error, kind):
            return kind(text)
    return RuntimeError(f"{type(error).__name__}: {text}")

"""If jars are missing, tests are skipped only if Maven reaches no repository; otherwise they fail."""

from __future__ import annotations

import functools
import tempfile
from pathlib import Path
from typing import Final, NoReturn

import pytest

from rowtime.core.errors import Failure
from rowtime.runtime.jars import fetch

PROBE: Final = "org.slf4j:slf4j-api:2.0.16"  # a small library that every repository has


@functools.cache
def out_of_reach() -> str:
    """Return why Maven cannot fetch even a library that every repository has; empty if it can."""
    try:
        with tempfile.TemporaryDirectory() as cache:
            fetch([PROBE], cache=Path(cache))
    except Failure as failure:
        return failure.problems[0].message
    return ""


def without_jars(what: str) -> NoReturn:
    """Skip if Maven fetches nothing at all; if only these jars are missing, fail."""
    why = out_of_reach()
    if not why:
        pytest.fail(f"{what}; but Maven does reach a repository")
    pytest.skip(f"{what}; Maven reaches no repository: {why}")

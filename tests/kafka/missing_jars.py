"""Jars that cannot be had: a skip where Maven reaches no repository, and else a fault of the tests."""

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
    """Why Maven cannot fetch even a library that is published everywhere; empty where it can."""
    try:
        with tempfile.TemporaryDirectory() as cache:
            fetch([PROBE], cache=Path(cache))
    except Failure as failure:
        return failure.problems[0].message
    return ""


def without_jars(what: str) -> NoReturn:
    """Skip where nothing at all can be fetched; jars that are missing where others are to be had are a fault."""
    why = out_of_reach()
    if not why:
        pytest.fail(f"{what}; but Maven does reach a repository")
    pytest.skip(f"{what}; Maven reaches no repository: {why}")

"""Places in the file system as Spark has to be told of them."""

from __future__ import annotations

import os
import re
from pathlib import Path

# Spark takes a path for a pattern. Its own switch against that (__globPaths__) reads each
# of n files n times, measured on 4.3.0, so what would be a pattern is escaped.
_PATTERN = re.compile(r"([\[\]{}*?\\])")


def for_spark(path: str | Path) -> str:
    """A local path for Spark's readers, with its scheme: one without belongs to a cluster's default file system."""
    return "file://" + _PATTERN.sub(r"\\\1", os.path.abspath(path))  # noqa: PTH100 - a Path for each of many files costs more

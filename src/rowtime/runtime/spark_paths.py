"""Places in the form for Spark."""

from __future__ import annotations

import os
import re
from pathlib import Path

from rowtime.core.errors import refuse
from rowtime.core.stores import ObjectPlace
from rowtime.runtime.azure_access import account

# Spark takes a path for a pattern. Its own switch against that (__globPaths__) reads each of n files n times (measured
# on 4.3.0), so pattern characters are escaped.
_PATTERN = re.compile(r"([\[\]{}*?\\])")


def for_spark(path: str | Path | ObjectPlace) -> str:
    """Return a path for Spark's readers, with its scheme: without one it would be in a cluster's default file system.

    It waits until an object that this process writes exists.
    """
    if isinstance(path, ObjectPlace):
        path.bucket.background.wait(path.key)
        return _PATTERN.sub(r"\\\1", url_for_spark(path))
    return "file://" + _PATTERN.sub(r"\\\1", os.path.abspath(path))  # noqa: PTH100 - a Path for each of many files costs more


def url_for_spark(place: ObjectPlace, what: str = "the checkpoint") -> str:
    """Return the URL of an object for Spark's file systems. Raises ``Refused`` (R585) if they cannot read it."""
    scheme, _, name = place.bucket.url.partition("://")
    if scheme == "memory" or (scheme == "az" and not account()):
        hint = "Use a place in a store that Spark can read; for Azure, set AZURE_STORAGE_ACCOUNT_NAME or write abfss://container@account.…"
        raise refuse("R585", f"Spark has no file system for {what} {place}", hint)
    root = {"s3": f"s3a://{name}", "az": f"abfss://{name}@{account()}.dfs.core.windows.net"}.get(
        scheme, place.bucket.url
    )
    return f"{root}/{place.key}"

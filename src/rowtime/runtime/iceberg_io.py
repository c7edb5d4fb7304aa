"""pyiceberg's access to the files of tables: by Arrow, with rowtime's settings for each bucket.

pyiceberg imports this module by its name, see `iceberg_catalog.opened`.
"""

from __future__ import annotations

import os
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.typedef import EMPTY_DICT

from rowtime.runtime.iceberg_catalog import as_properties, settings_in

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem
    from pyiceberg.typedef import Properties

_FILE: Final = "file:"
_S3: Final = ("s3", "s3a", "s3n")
_REGION: Final = "s3.region"
_PATIENCE: Final = {"s3.connect-timeout": "10", "s3.request-timeout": "30"}  # seconds, as for all other requests


class StoreIO(PyArrowFileIO):
    """Opens each S3 bucket with its own settings; the catalog's own settings win."""

    def __init__(self, properties: Properties = EMPTY_DICT) -> None:
        super().__init__(properties)
        self.fs_by_scheme = lru_cache(self._opened)

    @staticmethod
    def parse_location(location: str, properties: Properties = EMPTY_DICT) -> tuple[str, str, str]:
        """Return scheme, bucket and path of a location, which is not a URL: ``#`` and ``?`` are parts of names."""
        if location.startswith(_FILE):
            return _FILE.rstrip(":"), "", "/" + location.removeprefix(_FILE).lstrip("/")
        scheme, _, rest = location.partition("://")
        return (scheme, rest.partition("/")[0], rest) if scheme in _S3 else _parsed(location, properties)

    def _opened(self, scheme: str, bucket: str | None) -> FileSystem:
        properties = self.properties
        if scheme in _S3 and bucket:
            settings = settings_in(self.properties, f"s3://{bucket}").here
            properties = {**_PATIENCE, **properties, **_somewhere(bool(settings.endpoint)), **as_properties(settings)}
        return PyArrowFileIO(properties).fs_by_scheme(scheme, bucket)


_parsed = PyArrowFileIO.parse_location


def _somewhere(elsewhere: bool) -> dict[str, str]:  # noqa: FBT001 - its only question
    """Return the environment's region; servers other than Amazon's cannot be asked for it."""
    region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") or ("us-east-1" if elsewhere else "")
    return {_REGION: region} if region else {}

"""The Google Cloud service account named by the environment: its key, and the address of the service.

Clients of the store read the key file themselves. Two entries, which a key from Google does not have, name another
server: ``gcs_base_url``, and ``disable_oauth`` if it does not check credentials.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

_FILES: Final = ("GOOGLE_SERVICE_ACCOUNT", "GOOGLE_SERVICE_ACCOUNT_PATH")
_KEY: Final = "GOOGLE_SERVICE_ACCOUNT_KEY"


@dataclass(frozen=True)
class GoogleAccount:
    """``path``: the key file. ``url``: the server, empty for Google's own. ``identifies``: it checks credentials."""

    path: str = ""
    url: str = ""
    identifies: bool = True

    @property
    def by_http(self) -> bool:
        """Return True if requests use plain HTTP, as for a local server."""
        return self.url.startswith("http:")


def google_account() -> GoogleAccount:
    """Return the environment's account; the client reports a file that cannot be read."""
    path = next((os.environ[name] for name in _FILES if os.environ.get(name)), "")
    settings = _key_file(path)
    return GoogleAccount(path, str(settings.get("gcs_base_url") or ""), not settings.get("disable_oauth"))


def _key_file(path: str) -> dict[str, Any]:
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8") if path else os.environ.get(_KEY) or "{}")
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}

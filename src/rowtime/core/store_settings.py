"""The address and keys of an object store: from `configure_stores`, else ``rowtime.toml``, else the environment.

The client of the store looks for a missing setting itself, as its other tools do. Keys are never shown: not in a
message, not in the text of `StoreSettings`, and not in anything that is stored.
"""

from __future__ import annotations

import difflib
import json
import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Final

from rowtime.core.errors import Refused, refuse
from rowtime.core.secrets import VARIABLE

CONFIG: Final = "ROWTIME_CONFIG"
FILE: Final = "rowtime.toml"
_ENDPOINTS: Final = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")
_S3: Final = re.compile(r"s3a?://([^/@:?#]+)/*", re.IGNORECASE)
_ENVIRONMENT: Final = "The stores of Google and Azure are configured by the environment."


@dataclass(frozen=True)
class StoreSettings:
    """The settings of one bucket; a setting that is empty is not given."""

    endpoint: str = ""
    region: str = ""
    access_key_id: str = field(default="", repr=False)
    secret_access_key: str = field(default="", repr=False)
    session_token: str = field(default="", repr=False)

    @property
    def here(self) -> StoreSettings:
        """Return the settings with the endpoint of the environment, if no other is given."""
        if self.endpoint:
            return self
        endpoint = next((os.environ[name] for name in _ENDPOINTS if os.environ.get(name)), "")
        return StoreSettings(**{**self.given(), "endpoint": endpoint})

    def given(self) -> dict[str, str]:
        """Return the given settings, by name."""
        return {setting.name: value for setting in fields(self) if (value := getattr(self, setting.name))}


_given: dict[str, StoreSettings] = {}
_learned: dict[str, StoreSettings] = {}


def configure_stores(stores: Mapping[str, Mapping[str, str]]) -> None:
    """Configure object stores for this process: ``{"s3://bucket": {"endpoint": "…"}}``.

    ``rowtime.toml`` is ignored for a bucket that is named here; ``{}`` removes the configuration. Raises ``Refused``
    (R588) for an unknown setting.
    """
    settings = _stores(stores, "configure_stores")
    _given.clear()
    _given.update(settings)


def settings_of(url: str) -> StoreSettings:
    """Return the settings of a bucket (``s3://bucket``). Raises ``Refused``: R587, R588 for a bad configuration."""
    if url in _given or not url.startswith("s3:"):
        return _given.get(url, StoreSettings())
    return configured().get(url) or _learned.get(url, StoreSettings())


def without_tls(url: str, settings: StoreSettings) -> bool:
    """Return True if requests to a bucket use plain HTTP, by its settings or by the Google account."""
    return google_account().by_http if url.startswith("gs:") else settings.endpoint.startswith("http:")


def learn(url: str, settings: StoreSettings) -> None:
    """Use what a table's catalog says about its bucket: for this process, unless there are settings for it."""
    if settings != settings_of(url):
        _learned[url] = settings


def configured() -> dict[str, StoreSettings]:
    """Return the configuration file's settings: of ``ROWTIME_CONFIG``, else ``rowtime.toml`` in the working directory.

    Raises ``Refused``: R587 if it cannot be read, R588 for an unknown setting.
    """
    named = os.environ.get(CONFIG, "")
    path = Path(named or FILE).absolute()
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        if not named:
            return {}
        hint = f"It is named by the command or by {CONFIG}. Give a file that exists."
        raise refuse("R587", f"the configuration {path} does not exist", hint) from None
    except OSError as error:
        raise refuse("R587", f"the configuration {path} cannot be read: {error.strerror}") from None
    except ValueError as error:  # from TOML or UTF-8
        where = str(error) if isinstance(error, tomllib.TOMLDecodeError) else "it is not UTF-8"
        hint = 'For example [stores."s3://bucket"], and below it endpoint = "http://localhost:9000".'
        raise refuse("R587", f"the configuration {path} is not TOML: {where}", hint) from None
    for name in content:
        if name != "stores":
            raise _unknown(str(path), name, ["stores"])
    return _stores(content.get("stores", {}), str(path))


def _stores(stores: Any, where: str) -> dict[str, StoreSettings]:
    """Return the settings of each bucket, by its URL."""
    if not isinstance(stores, Mapping):
        raise refuse("R588", f"{where}: stores is not a table", 'Write [stores."s3://bucket"].')
    by_bucket = {}
    for url, settings in stores.items():
        bucket = _S3.fullmatch(str(url))
        if bucket is None:
            shown = re.sub(r"//[^/@]*@", "//…@", str(url))
            raise refuse("R588", f"{where}: {shown} is not a bucket of S3", f"Write s3://bucket. {_ENVIRONMENT}")
        by_bucket[f"s3://{bucket[1]}"] = _settings(settings, f'{where}, stores."{url}"')
    return by_bucket


def _settings(settings: Any, where: str) -> StoreSettings:
    names = [setting.name for setting in fields(StoreSettings)]
    if not isinstance(settings, Mapping):
        raise refuse("R588", f"{where} is not a table", f"It takes {', '.join(names)}.")
    for name, value in settings.items():
        if name not in names:
            raise _unknown(where, name, names)
        if not isinstance(value, str) or not value:
            raise refuse("R588", f"{where}: {name} is not a text", f'Write {name} = "…".')
    checked = StoreSettings(**{name: _filled(value, f"{where}: {name}") for name, value in settings.items()})
    if bool(checked.access_key_id) != bool(checked.secret_access_key) or (
        checked.session_token and not checked.access_key_id
    ):
        hint = "Give access_key_id and secret_access_key together, with session_token if there is one; or none of them."
        raise refuse("R588", f"{where} has only a part of the credentials", hint)
    if checked.endpoint and not checked.endpoint.startswith(("http://", "https://")):
        raise refuse(
            "R588", f"{where}: endpoint is not an address", "Write a URL that begins with http:// or https://."
        )
    return checked


def _filled(value: str, where: str) -> str:
    """Return a value with its environment variables filled in."""
    for name in VARIABLE.findall(value):
        if not os.environ.get(name):
            raise refuse("R588", f"{where} names ${{{name}}}, which is not set in the environment", f"Set {name}.")
    return VARIABLE.sub(lambda one: os.environ[one[1]], value)


def _unknown(where: str, name: str, names: list[str]) -> Refused:
    near = difflib.get_close_matches(name.lower(), names, n=1, cutoff=0.6)
    hint = f"Did you mean {near[0]}?" if near else f"The settings are {', '.join(names)}."
    return refuse("R588", f"{where}: {name} is not a setting", hint)


_FILES: Final = ("GOOGLE_SERVICE_ACCOUNT", "GOOGLE_SERVICE_ACCOUNT_PATH")
_KEY: Final = "GOOGLE_SERVICE_ACCOUNT_KEY"


@dataclass(frozen=True)
class GoogleAccount:
    """The service account of Google's cloud that the environment names; clients of the store read its key themselves.

    Two entries of the key, which one from Google does not have, name another server: ``gcs_base_url``, and
    ``disable_oauth`` if it does not check credentials. ``path``: the key file. ``url``: the server, empty for Google's
    own. ``identifies``: it checks credentials.
    """

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

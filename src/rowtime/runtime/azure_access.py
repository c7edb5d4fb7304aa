"""Gives Spark the driver's access to Azure's stores: the account of the environment.

Spark's file system (ABFS) uses the service of Data Lake Storage. Azurite, the emulator, has Blob Storage only, which
ABFS supports too. Without TLS the client has to be set: the default, Apache's, looks for a factory of TLS sockets that
it only makes for ``https``.
"""

from __future__ import annotations

import os
from typing import Final
from urllib.parse import urlsplit

ACCOUNT: Final = "devstoreaccount1"  # Azurite's own account; Microsoft publishes its key
_KEY: Final = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
_ADDRESS: Final = "http://127.0.0.1:10000"


def account() -> str:
    """Return the account of the containers in ``az://container``; empty if none is set."""
    return os.environ.get("AZURE_STORAGE_ACCOUNT_NAME", ACCOUNT if _emulated() else "")


def azure_settings(url: str) -> dict[str, str]:
    """Return Hadoop's settings for ``abfss://container@account…/…``: the account's key, or Azurite's address.

    No settings for another URL.
    """
    if not url.startswith("abfss:"):
        return {}
    host = urlsplit(url).netloc.rpartition("@")[2]
    name, key = f"fs.azure.account.key.{host}", os.environ.get("AZURE_STORAGE_ACCOUNT_KEY", "")
    if not _emulated():
        return {name: key} if key and host.startswith(f"{account()}.") else {}
    return {
        name: key or _KEY,
        "fs.abfss.impl": "org.apache.hadoop.fs.azurebfs.AzureBlobFileSystem",
        "fs.azure.abfs.endpoint": urlsplit(os.environ.get("AZURITE_BLOB_STORAGE_URL", _ADDRESS)).netloc,
        "fs.azure.account.hns.enabled": "false",
        "fs.azure.always.use.https": "false",
        "fs.azure.fns.account.service.type": "BLOB",
        "fs.azure.networking.library": "JDK_HTTP_URL_CONNECTION",
    }


def _emulated() -> bool:
    return os.environ.get("AZURE_STORAGE_USE_EMULATOR", "").lower() in ("true", "1")

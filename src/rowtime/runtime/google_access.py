"""Gives Spark the driver's access to Google's store: with Google's connector and the environment's account."""

from __future__ import annotations

import os
from typing import Final

from rowtime.core.store_settings import google_account

CONNECTOR: Final = "com.google.cloud.bigdataoss:gcs-connector:4.0.3:shaded"
OF_CONNECTOR: Final = {
    "spark.hadoop.fs.gs.impl": "com.google.cloud.hadoop.fs.gcs.GoogleHadoopFileSystem",
    "spark.hadoop.fs.AbstractFileSystem.gs.impl": "com.google.cloud.hadoop.fs.gcs.GoogleHadoopFS",
    "spark.hadoop.fs.gs.block.size": str(64 << 20),
    "spark.hadoop.fs.gs.inputstream.inplace.seek.limit": str(8 << 20),
    "spark.hadoop.fs.gs.inputstream.min.range.request.size": str(2 << 20),
    "spark.hadoop.fs.gs.outputstream.buffer.size": str(8 << 20),
    "spark.hadoop.fs.gs.rewrite.max.chunk.size": str(512 << 20),
}
"""Settings for the connector, which cannot parse the sizes of Hadoop 3.5, such as ``64m``."""


def google_settings() -> dict[str, str]:
    """Return Hadoop's settings: the key and the server. Without a key the machine's account is used."""
    account = google_account()
    settings = {"fs.gs.storage.root.url": f"{account.url.rstrip('/')}/"} if account.url else {}
    if not account.identifies:
        return {**settings, "fs.gs.auth.type": "UNAUTHENTICATED"}
    if account.path:
        key = {"fs.gs.auth.service.account.json.keyfile": account.path}
        return {**settings, "fs.gs.auth.type": "SERVICE_ACCOUNT_JSON_KEYFILE", **key}
    if os.environ.get("GOOGLE_APPLICATION_CREDENTIALS"):
        return {**settings, "fs.gs.auth.type": "APPLICATION_DEFAULT"}
    return settings

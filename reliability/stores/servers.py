"""Servers of object stores on this machine, in processes of their own.

Moto and versitygw for S3, Azurite for Azure, and a stand-in for Google's store. Moto is in the dev extra, the stand-in
beside this module; the others are installed below ``build/stores`` when they are needed first.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import hmac
import json
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from email.utils import formatdate
from pathlib import Path
from typing import Any, Final

from examples.s3_server import KEYS, REGION, started

SETUP: Final = Path(__file__).parents[2] / "scripts" / "setup_store_server.sh"
PATIENCE: Final = 60.0  # seconds until a server answers
_ACCOUNT: Final = "devstoreaccount1"  # the one that Azurite has, with a key that is no secret
_KEY: Final = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
_S3: Final = ("moto", "versitygw")
_HERE: Final = ("moto", "google")  # not to be installed
SERVERS: Final = (*_S3, "azurite", "google")


@dataclass
class Server:
    """A server with a bucket. ``bucket`` is its URL (``s3://…``, ``az://…``, ``gs://…``), ``address`` its own."""

    name: str
    bucket: str
    address: str
    processes: list[subprocess.Popen[bytes]]
    folder: tempfile.TemporaryDirectory[str] | None = None

    @property
    def is_s3(self) -> bool:
        """True if it speaks S3, so that Spark can read from it."""
        return self.name in _S3

    @property
    def is_google(self) -> bool:
        """True for the stand-in of Google's store."""
        return self.name == "google"

    def settings(self, address: str = "") -> dict[str, dict[str, str]]:
        """Return the arguments of `rowtime.configure_stores` for an address (of a proxy); for S3 alone."""
        if not self.is_s3:
            return {}
        told = {"endpoint": address or self.address, "region": REGION}
        return {self.bucket: {**told, "access_key_id": KEYS[0], "secret_access_key": KEYS[1]}}

    def environment(self, address: str = "") -> dict[str, str]:
        """Return the variables of the environment for it, as above; nothing for S3."""
        if self.is_s3:
            return {}
        if self.is_google:
            return {"GOOGLE_SERVICE_ACCOUNT": str(self._key(address or self.address))}
        return {"AZURE_STORAGE_USE_EMULATOR": "true", "AZURITE_BLOB_STORAGE_URL": address or self.address}

    def client(self) -> Any:
        """Return a client that bypasses proxies and settings."""
        from obstore import store  # noqa: PLC0415 - an extra

        return store.from_url(self.bucket, client_options={"allow_http": True}, **self._told())

    def delta(self) -> dict[str, str]:
        """Return the options of deltalake, as above."""
        kind = "aws" if self.is_s3 else "google" if self.is_google else "azure_storage"
        told = {f"{kind}_{name}": value for name, value in self._told().items()}
        return {**told, **({"conditional_put": "etag"} if self.is_s3 else {}), "allow_http": "true"}

    def _told(self) -> dict[str, str]:
        if self.is_s3:
            return self.settings()[self.bucket]
        if self.is_google:
            return {"service_account": str(self._key(self.address))}
        return {"account_name": _ACCOUNT, "account_key": _KEY, "endpoint": f"{self.address}/{_ACCOUNT}"}

    def _key(self, address: str) -> Path:
        """Return the key file of a service account, which has the address of the stand-in."""
        assert self.folder is not None
        path = Path(self.folder.name, f"{address.rpartition(':')[2]}.json")
        if not path.exists():
            told = {"gcs_base_url": address, "disable_oauth": True}
            draft = path.with_suffix(".draft")
            draft.write_text(json.dumps({**told, "client_email": "", "private_key": "", "private_key_id": ""}))
            draft.replace(path)  # others may read it now
        return path

    def stop(self) -> None:
        """Stop the server."""
        for process in self.processes:
            process.terminate()
            process.wait()
        if self.folder is not None:
            self.folder.cleanup()


@functools.cache
def missing(name: str) -> str:
    """Return why there is no such server; empty if there is one."""
    if name in _HERE:
        return ""
    found = _program(name)
    return "" if Path(found).is_file() else found


def start(name: str, bucket: str) -> Server:
    """Start a server that has a bucket of this name."""
    if name == "moto":
        address, process = started(bucket)
        return Server(name, f"s3://{bucket}", address, [process])
    return {"versitygw": _versitygw, "azurite": _azurite, "google": _google}[name](bucket)


@functools.cache
def _program(name: str) -> str:
    """Return the path of a program, or a text that says why it is missing."""
    asked = {"azurite": "azurite-blob"}.get(name, name)
    found = subprocess.run([str(SETUP), asked], capture_output=True, text=True, check=False)
    return found.stdout.strip() or f"{name} cannot be installed: {found.stderr.strip()[-300:]}"


def _versitygw(bucket: str) -> Server:
    folder = tempfile.TemporaryDirectory(prefix="rowtime-versitygw-")
    (Path(folder.name) / "data" / bucket).mkdir(parents=True)
    (Path(folder.name) / "about").mkdir()
    keys = ["--access", KEYS[0], "--secret", KEYS[1], "--region", REGION]

    def command(port: int) -> list[str]:
        store = ["posix", "--sidecar", f"{folder.name}/about", f"{folder.name}/data"]
        return [_program("versitygw"), "--port", f"127.0.0.1:{port}", "--quiet", *keys, *store]

    address, process = _running(command)
    return Server("versitygw", f"s3://{bucket}", address, [process], folder)


def _azurite(bucket: str) -> Server:
    def command(port: int) -> list[str]:
        where = ["--blobHost", "127.0.0.1", "--blobPort", str(port), "--inMemoryPersistence"]
        return [_program("azurite"), *where, "--silent", "--skipApiVersionCheck", "--disableTelemetry"]

    address, process = _running(command)
    server = Server("azurite", f"az://{bucket}", address, [process])
    _make_container(server, bucket)
    return server


def _google(bucket: str) -> Server:
    def command(port: int) -> list[str]:
        return [sys.executable, "-m", "reliability.stores.google", "--port", str(port), "--bucket", bucket]

    address, process = _running(command)
    return Server("google", f"gs://{bucket}", address, [process], tempfile.TemporaryDirectory(prefix="rowtime-google-"))


def _running(command: Callable[[int], list[str]]) -> tuple[str, subprocess.Popen[bytes]]:
    """Start a server on a free port. Return its address and its process."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    process = subprocess.Popen(command(port), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    end = time.monotonic() + PATIENCE
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            if process.poll() is not None or time.monotonic() > end:
                process.terminate()
                raise RuntimeError(f"{Path(command(port)[0]).name} does not start") from None
            time.sleep(0.1)
        else:
            return f"http://127.0.0.1:{port}", process


def _make_container(server: Server, name: str) -> None:
    """Create a container, which clients of objects cannot do."""
    told = {"x-ms-date": formatdate(usegmt=True), "x-ms-version": "2021-08-06"}
    said = "".join(f"{header}:{value}\n" for header, value in told.items())
    text = f"PUT{chr(10) * 12}{said}/{_ACCOUNT}/{_ACCOUNT}/{name}\nrestype:container"
    sign = base64.b64encode(hmac.new(base64.b64decode(_KEY), text.encode(), hashlib.sha256).digest()).decode()
    url = f"{server.address}/{_ACCOUNT}/{name}?restype=container"
    headers = {**told, "Authorization": f"SharedKey {_ACCOUNT}:{sign}", "Content-Length": "0"}
    urllib.request.urlopen(urllib.request.Request(url, method="PUT", headers=headers)).close()  # noqa: S310 - our own

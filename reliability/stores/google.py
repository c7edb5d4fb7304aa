"""A stand-in for Google Cloud Storage, by Google's documentation of its two APIs, with objects in memory.

``python -m reliability.stores.google --port PORT --bucket NAME``. Known emulators accept no uploads by the XML API,
which rowtime and deltalake use. This one has what a client of objects needs: objects with generations, preconditions on
them, ranges, lists by pages, copies, uploads in parts. Of the JSON API, which Spark's file system uses, it has the
requests that read. It checks no credentials.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import json
import re
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final
from urllib.parse import parse_qsl, unquote, urlsplit
from xml.sax.saxutils import escape

PAGE: Final = 1000  # objects of one page of a list
_MATCH: Final = "x-goog-if-generation-match"
_JSON: Final = re.compile(r"(?:/download)?/storage/v1/b/([^/]*)(?:(/o)(?:/(.*))?)?$")
_RANGE: Final = re.compile(r"bytes=(\d*)-(\d*)")


@dataclass(frozen=True)
class _Object:
    """One version of an object."""

    data: bytes
    generation: int
    written: float = field(default_factory=time.time)

    @property
    def tag(self) -> str:
        return f'"{hashlib.md5(self.data).hexdigest()}"'  # noqa: S324 - a tag, no secret


@dataclass(frozen=True)
class _Answer:
    status: int
    data: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class _Request:
    """``key``: the key of the object, empty for the bucket; ``json``: a request of the JSON API."""

    json: bool
    method: str
    bucket: str
    key: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes


class Bucket:
    """The objects of a bucket by their keys; each change is one step, as in the real store."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._objects: dict[str, _Object] = {}
        self._parts: dict[str, dict[int, bytes]] = {}
        self._generations, self._uploads = itertools.count(1_700_000_000_000_000), itertools.count(1)
        self._turn = threading.RLock()

    def answer(self, asked: _Request) -> _Answer:
        """Return the answer to a request."""
        if asked.bucket != self.name:
            return _error(404, "NoSuchBucket", "The specified bucket does not exist.")
        if asked.json:
            return self._json(asked)
        if not asked.key:
            return self._list(asked.query) if asked.method == "GET" else _error(405, "MethodNotAllowed", asked.method)
        todo: Mapping[str, Callable[[_Request], _Answer]] = {
            "GET": self._read,
            "HEAD": self._read,
            "PUT": self._put,
            "POST": self._post,
            "DELETE": self._delete,
        }
        with self._turn:
            return todo[asked.method](asked)

    def _page(self, query: Mapping[str, str], after: str, most: int) -> tuple[dict[str, _Object | None], str]:
        """Return keys in order, those after a delimiter as one prefix; and the last one, if another page follows."""
        prefix, delimiter = query.get("prefix", ""), query.get("delimiter", "")
        with self._turn:
            known = sorted(self._objects.items())
        found: dict[str, _Object | None] = {}
        for key, one in known:
            end = key.find(delimiter, len(prefix)) if delimiter else -1
            shown = key if end < 0 else key[: end + len(delimiter)]
            if not key.startswith(prefix) or shown <= after or shown in found:
                continue
            if len(found) == most:
                return found, [*found][-1]
            found[shown] = one if end < 0 else None
        return found, ""

    def _list(self, query: Mapping[str, str]) -> _Answer:
        after = query.get("continuation-token") or query.get("start-after", "")
        found, following = self._page(query, after, int(query.get("max-keys", PAGE)))
        told = [_tagged("Name", self.name), _tagged("Prefix", escape(query.get("prefix", "")))]
        told += [_tagged("NextContinuationToken", escape(following))] if following else []
        entries = (
            _entry(key, one) if one else _tagged("CommonPrefixes", _tagged("Prefix", escape(key)))
            for key, one in found.items()
        )
        return _answered("ListBucketResult", *told, _tagged("IsTruncated", str(bool(following)).lower()), *entries)

    def _json(self, asked: _Request) -> _Answer:
        """Return the bucket, a list, an object's metadata or its content."""
        if asked.method != "GET":
            return _told({"error": {"code": 501, "message": f"{asked.method} is not there"}}, 501)
        if not asked.key:
            if "o" not in asked.query:
                return _told({"kind": "storage#bucket", "id": self.name, "name": self.name})
            after, query = asked.query.get("pageToken", ""), asked.query
            found, following = self._page(query, after, int(query.get("maxResults", PAGE)))
            beginning = query.get("startOffset", "")
            items = [self._metadata(key, one) for key, one in found.items() if one and key >= beginning]
            prefixes = [key for key, one in found.items() if one is None]
            more = {"nextPageToken": following} if following else {}
            return _told({"kind": "storage#objects", "items": items, "prefixes": prefixes, **more})
        one = self._objects.get(asked.key)
        if one is None:
            return _told({"error": {"code": 404, "message": f"No such object: {self.name}/{asked.key}"}}, 404)
        return self._read(asked) if asked.query.get("alt") == "media" else _told(self._metadata(asked.key, one))

    def _metadata(self, key: str, one: _Object) -> dict[str, str]:
        return {
            "kind": "storage#object",
            "id": f"{self.name}/{key}/{one.generation}",
            "name": key,
            "bucket": self.name,
            "generation": str(one.generation),
            "metageneration": "1",
            "size": str(len(one.data)),
            "contentType": "application/octet-stream",
            "timeCreated": _instant(one.written),
            "updated": _instant(one.written),
            "etag": one.tag,
        }

    def _read(self, asked: _Request) -> _Answer:
        found = self._objects.get(asked.key)
        if found is None:
            return _absent()
        headers = {
            "ETag": found.tag,
            "x-goog-generation": str(found.generation),
            "Last-Modified": formatdate(found.written, usegmt=True),
        }
        size, wanted = len(found.data), _RANGE.fullmatch(asked.headers.get("range", ""))
        if wanted is None:
            return _Answer(200, found.data, headers)
        first, last = wanted.groups()
        begin, end = (int(first), min(int(last or size), size - 1)) if first else (max(0, size - int(last)), size - 1)
        if begin >= size:
            return _error(416, "InvalidRange", "The requested range cannot be satisfied.")
        headers["Content-Range"] = f"bytes {begin}-{end}/{size}"
        return _Answer(206, found.data[begin : end + 1], headers)

    def _put(self, asked: _Request) -> _Answer:
        if "uploadId" in asked.query:
            parts = self._parts.get(asked.query["uploadId"])
            if parts is None:
                return _error(404, "NoSuchUpload", "The requested upload was not found.")
            parts[int(asked.query["partNumber"])] = asked.body
            return _Answer(200, headers={"ETag": _Object(asked.body, 0).tag})
        source = unquote(asked.headers.get("x-goog-copy-source", "")).partition("/")[2]
        if source and source not in self._objects:
            return _absent()
        if not self._matches(asked):
            return _unmatched()
        made = self._keep(asked.key, self._objects[source].data if source else asked.body)
        if source:
            return _answered("CopyObjectResult", _tagged("ETag", escape(made.tag)))
        return _Answer(200, headers={"ETag": made.tag, "x-goog-generation": str(made.generation)})

    def _post(self, asked: _Request) -> _Answer:
        """Begin an upload in parts, or put the parts together."""
        if "uploads" in asked.query:
            number = str(next(self._uploads))
            self._parts[number] = {}
            told = (_tagged("Bucket", self.name), _tagged("Key", escape(asked.key)), _tagged("UploadId", number))
            return _answered("InitiateMultipartUploadResult", *told)
        if not self._matches(asked):
            return _unmatched()
        parts = self._parts.pop(asked.query.get("uploadId", ""), None)
        if parts is None:
            return _error(404, "NoSuchUpload", "The requested upload was not found.")
        made = self._keep(asked.key, b"".join(parts[number] for number in sorted(parts)))
        found = _answered("CompleteMultipartUploadResult", _tagged("ETag", escape(made.tag)))
        return _Answer(found.status, found.data, {**found.headers, "x-goog-generation": str(made.generation)})

    def _delete(self, asked: _Request) -> _Answer:
        if "uploadId" in asked.query:
            self._parts.pop(asked.query["uploadId"], None)
            return _Answer(204)
        if not self._matches(asked):
            return _unmatched()
        return _absent() if self._objects.pop(asked.key, None) is None else _Answer(204)

    def _matches(self, asked: _Request) -> bool:
        """Return True if the precondition holds; a missing object has generation 0."""
        wanted, found = asked.headers.get(_MATCH), self._objects.get(asked.key)
        return wanted is None or int(wanted) == (found.generation if found else 0)

    def _keep(self, key: str, data: bytes) -> _Object:
        made = self._objects[key] = _Object(data, next(self._generations))
        return made


def _entry(key: str, one: _Object) -> str:
    told = {
        "Key": escape(key),
        "Generation": str(one.generation),
        "LastModified": _instant(one.written),
        "ETag": escape(one.tag),
        "Size": str(len(one.data)),
    }
    return _tagged("Contents", "".join(_tagged(name, value) for name, value in told.items()))


def _instant(at: float) -> str:
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(at))}.{int(at % 1 * 1000):03d}Z"


def _told(found: Mapping[str, Any], status: int = 200) -> _Answer:
    return _Answer(status, json.dumps(found).encode(), {"Content-Type": "application/json"})


def _tagged(name: str, content: str) -> str:
    return f"<{name}>{content}</{name}>"


def _answered(name: str, *content: str) -> _Answer:
    text = f"<?xml version='1.0' encoding='UTF-8'?>{_tagged(name, ''.join(content))}"
    return _Answer(200, text.encode(), {"Content-Type": "application/xml"})


def _error(status: int, code: str, message: str) -> _Answer:
    text = _answered("Error", _tagged("Code", code), _tagged("Message", message))
    return _Answer(status, text.data, text.headers)


def _absent() -> _Answer:
    return _error(404, "NoSuchKey", "The specified key does not exist.")


def _unmatched() -> _Answer:
    return _error(412, "PreconditionFailed", "At least one of the pre-conditions you specified did not hold.")


def handler(bucket: Bucket) -> type[BaseHTTPRequestHandler]:
    """Return the class that handles the requests to a bucket."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = 1 << 16  # an answer is sent at once

        def _answer(self) -> None:
            split = urlsplit(self.path)
            query = dict(parse_qsl(split.query, keep_blank_values=True))
            by_json = _JSON.match(split.path)
            if by_json is None:
                of, _, key = split.path.lstrip("/").partition("/")
            else:
                of, listed, key = by_json[1], by_json[2], by_json[3] or ""
                query |= {"o": ""} if listed else {}
            headers = {name.lower(): value for name, value in self.headers.items()}
            body = self.rfile.read(int(headers.get("content-length", "0")))
            asked = (by_json is not None, self.command, unquote(of), unquote(key), query, headers, body)
            found = bucket.answer(_Request(*asked))
            self.send_response(found.status)
            for name, value in found.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(found.data)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(found.data)

        do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _answer  # noqa: N815 - http.server's names

        def log_message(self, *_what: Any) -> None:
            pass

    return Handler


class _Server(ThreadingHTTPServer):
    request_queue_size = 128  # connections that wait: readers of a log ask for many objects at once
    daemon_threads = True


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m reliability.stores.google", description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--bucket", required=True)
    asked = parser.parse_args()
    _Server(("127.0.0.1", asked.port), handler(Bucket(asked.bucket))).serve_forever()


if __name__ == "__main__":
    main()

"""Ask every page of another site that the docs link to whether it is there: ``make docs ARGS=--external``.

A page counts as broken if it answers with an error, or not at all, in each of several tries.
"""

from __future__ import annotations

import html
import re
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from http.client import HTTPException
from pathlib import Path
from typing import Final
from urllib.error import HTTPError
from urllib.request import Request, urlopen

TRIES: Final = 3
SECONDS: Final = 15.0  # for one answer
PAUSE: Final = 2.0  # seconds before another try
AT_ONCE: Final = 8
SHOWN: Final = 3  # files that have a broken link

_IN_HTML: Final = re.compile(r'<a\b[^>]*?\bhref="(https?://[^"]+)"')
_IN_MARKDOWN: Final = re.compile(r"\]\((https?://[^)\s]+)\)|<(https?://[^>\s]+)>")
_HEADERS: Final = {"User-Agent": "Mozilla/5.0 (compatible; rowtime link check)", "Accept": "*/*"}
_BUSY: Final = frozenset({HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS})


def links_of(files: Iterable[Path], below: Path) -> dict[str, list[str]]:
    """Return the external links of HTML and Markdown files, each with the files that have it; without fragments."""
    links: dict[str, list[str]] = defaultdict(list)
    for file in files:
        text = file.read_text(encoding="utf-8")
        if file.suffix == ".html":
            urls = [html.unescape(url) for url in _IN_HTML.findall(text)]
        else:
            urls = [url or bare for url, bare in _IN_MARKDOWN.findall(text)]
        for url in dict.fromkeys(url.partition("#")[0] for url in urls):
            links[url].append(str(file.relative_to(below)))
    return dict(links)


def broken(links: Mapping[str, Sequence[str]], *, seconds: float = SECONDS, pause: float = PAUSE) -> list[str]:
    """Return a line for each link that cannot be followed: the link, the reason, and the files that have it."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        reasons = pool.map(lambda url: _reason(url, seconds, pause), links)
        problems = zip(links.items(), reasons, strict=True)
        return [f"{url}: {reason}; linked from {_listed(files)}" for (url, files), reason in problems if reason]


def _listed(files: Sequence[str]) -> str:
    more = len(files) - SHOWN
    return ", ".join(files[:SHOWN]) + (f" and {more} more" if more > 0 else "")


def _reason(url: str, seconds: float, pause: float) -> str:
    """Return why a page cannot be read; empty if it can."""
    reason = ""
    for number in range(TRIES):
        if number:
            time.sleep(pause)
        reason, lasting = _answer(url, seconds)
        if not reason or lasting:
            break
    return reason


def _answer(url: str, seconds: float) -> tuple[str, bool]:
    """Return why one try has failed, empty for a success, and whether another try would fail as well.

    Some servers do not know HEAD, and answer it with any error: only the answer to GET counts.
    """
    reason, lasting = "", False
    for method in ("HEAD", "GET"):
        request = Request(url, headers=_HEADERS, method=method)  # noqa: S310 - http and https only, by the patterns
        try:
            with urlopen(request, timeout=seconds):  # noqa: S310 - as above
                return "", False
        except HTTPError as error:
            reason = f"{error.code} {error.reason}"
            lasting = error.code < HTTPStatus.INTERNAL_SERVER_ERROR and error.code not in _BUSY
        except (OSError, HTTPException, ValueError) as error:
            return f"{type(error).__name__}: {error}", False
    return reason, lasting

"""Hooks of MkDocs: pages of the repository that are not in docs/, and links between them and those that are."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT: Final = Path(__file__).parents[1]
PAGES: Final = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "RELIABILITY.md": "reliability.md",
    "benchmarks/RESULTS.md": "results.md",
    "examples/flights/README.md": "examples/flights.md",
    "examples/nexmark/README.md": "examples/nexmark.md",
}
"""Files of the repository, and their names in the site."""

SHIM: Final = "https://unpkg.com/iframe-worker/shim"
"""The script that Material loads from another host to search in files; docs/vendor has it, so no request is sent."""

_SOURCE: Final = {target: source for source, target in PAGES.items()}
_LINK: Final = re.compile(r"(?<!!)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s#:]+)(#[^)\s]*)?\)")
_IMAGE: Final = re.compile(r"(!\[[^\]]*\]\()docs/")
_INFO: Final = re.compile(r"^(```\w+) .+$", re.MULTILINE)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages."""
    from mkdocs.structure.files import File  # noqa: PLC0415 - MkDocs is there where this is called

    for source, target in PAGES.items():
        files.append(File.generated(config, target, content=(ROOT / source).read_text(encoding="utf-8")))
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Point each link to the page of the site; a file without a page is named instead.

    Words behind the language of a code block (`sql refused: R104`) are for the tests.
    """
    here = page.file.src_uri
    source = _SOURCE.get(here, f"docs/{here}")

    def link(found: re.Match[str]) -> str:
        text, path, anchor = found[1], found[2], found[3] or ""
        meant = posixpath.normpath(posixpath.join(posixpath.dirname(source), path))
        target = PAGES.get(meant) or (meant.removeprefix("docs/") if meant.startswith("docs/") else None)
        if target is None:
            return f"{text} (`{meant}`)" if f"`{meant}`" not in text and meant not in text else text
        return f"[{text}]({posixpath.relpath(target, posixpath.dirname(here) or '.')}{anchor})"

    if not source.startswith("docs/"):
        markdown = _IMAGE.sub(rf"\1{posixpath.relpath('.', posixpath.dirname(here) or '.')}/", markdown)
    return _LINK.sub(link, _INFO.sub(r"\1", markdown))


def on_post_page(output: str, page: Page, **_: Any) -> str:
    """Use the search worker of docs/vendor."""
    up = posixpath.relpath("vendor/iframe-worker.js", posixpath.dirname(page.file.dest_uri) or ".")
    return output.replace(SHIM, up)

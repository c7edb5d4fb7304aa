"""Check the site of ``make docs``: no page loads anything from another host, and every page is in the search index.

With ``--external`` also: every link of the site, and of the pages beside it, to another site can be followed.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Final

from external_links import broken, links_of

ROOT: Final = Path(__file__).parents[1]
_LOADED: Final = re.compile(r'<(?:script|link|img|iframe)\b[^>]*?\b(?:src|href)="(?:https?:)?//[^"]+"')
_META: Final = ('rel="canonical"',)


def main(site: Path, *, external: bool) -> int:
    """Return 0 if all is well; otherwise print what is wrong and return 1."""
    pages = sorted(page for page in site.rglob("*.html") if page.name != "404.html")
    wrong = [
        f"{page.relative_to(site)} loads {tag}"
        for page in pages
        for tag in _LOADED.findall(page.read_text(encoding="utf-8"))
        if not any(word in tag for word in _META)
    ]
    entries = json.loads((site / "search" / "search_index.json").read_text(encoding="utf-8"))["docs"]
    indexed = {entry["location"].partition("#")[0] for entry in entries}
    wrong += [
        f"{page.relative_to(site)} cannot be found" for page in pages if str(page.relative_to(site)) not in indexed
    ]
    summary = f"{len(pages)} pages, {len(entries)} entries to search"
    if external:
        links = links_of([*pages, *sorted(site.parent.glob("*.md"))], site.parent)
        wrong += broken(links)
        summary += f", {len(links)} external links"
    print("\n".join([*wrong, f"{summary}, {len(wrong)} wrong"]))
    return 1 if wrong or not pages else 0


if __name__ == "__main__":
    sys.exit(main(ROOT / "site", external="--external" in sys.argv[1:]))

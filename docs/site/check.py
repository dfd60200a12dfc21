"""Checks the built site: nothing is fetched from another host, no picture or text is missing.

A text such as <database-store> that was taken for a tag is not shown: tags have to be of HTML.

    python -m docs.site.check [FOLDER]      build/site without one

Exit status 1: what is wrong, a line each.
"""

from __future__ import annotations

import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Final

__all__ = ["findings"]

# Attributes that a browser fetches by itself; a link of text is for the reader to follow.
_FETCHED: Final = {
    "link": "href",
    "script": "src",
    "img": "src",
    "iframe": "src",
    "source": "src",
    "object": "data",
}
_OUTSIDE: Final = re.compile(r"^(https?:)?//")
_IN_STYLES: Final = re.compile(r"(?:url\(|@import\s+)[\"']?((?:https?:)?//[^\"')]+)")
# The tags of text and drawings; <address>, <data> or <source> would be names of broker.xml.
_TAGS: Final = frozenset(
    re.findall(
        r"\w+",
        "a article aside b blockquote body br button circle code dd defs del desc details div "
        "dl dt ellipse em figcaption figure footer form g h1 h2 h3 h4 h5 h6 head header hr "
        "html i iframe img input kbd label li line link main mark marker meta nav ol p path "
        "polygon polyline pre rect s script section small span strong style sub summary sup "
        "svg table tbody td text tfoot th thead title tr tspan u ul use",
    )
)


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.fetched: list[str] = []
        self.swallowed: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in _TAGS:
            self.swallowed.append(tag)
        values = dict(attrs)
        target = values.get(_FETCHED.get(tag, ""))
        if target and values.get("rel") not in ("canonical", "next", "prev"):
            self.fetched.append(target)


def findings(folder: Path) -> list[str]:
    """What is wrong with a site."""
    found = []
    for path in sorted(folder.rglob("*.html")):
        page = _Page()
        page.feed(path.read_text())
        found += [f"{path}: <{tag}> is not a tag: its text is not shown" for tag in page.swallowed]
        for target in page.fetched:
            place = target.partition("#")[0].partition("?")[0]
            # The page for what is missing has paths from the root of a server.
            base = folder if place.startswith("/") else path.parent
            if _OUTSIDE.match(target):
                found.append(f"{path}: fetches {target}")
            elif not place.startswith("data:") and not (base / place.lstrip("/")).exists():
                found.append(f"{path}: {target} is missing")
    for path in sorted(folder.rglob("*.css")):
        found += [f"{path}: fetches {one}" for one in _IN_STYLES.findall(path.read_text())]
    return found


def main(folder: str = "build/site") -> None:
    """Print the findings; exit status 1 if there are any."""
    pages = len(list(Path(folder).rglob("*.html")))
    found = findings(Path(folder))
    print("\n".join([*found, f"{folder}: {pages} pages, {len(found)} findings"]))
    sys.exit(1 if found or not pages else 0)


if __name__ == "__main__":
    main(*sys.argv[1:])

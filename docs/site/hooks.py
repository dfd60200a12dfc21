"""What MkDocs calls while `make docs` builds the site (mkdocs.yml names this file).

Three kinds of pages: files of `docs/`; documents of the root of the tree, such as ARCHITECTURE.md;
and the reference, which is made from the code at every build. The reference is not committed: a
committed copy differs from the code until somebody makes it again, and two branches that each add a
setting would conflict in it.
"""

from __future__ import annotations

import posixpath
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from mkdocs.structure.files import File

ROOT: Final = Path(__file__).resolve().parents[2]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from docs.site.examples import examples  # noqa: E402 - MkDocs loads this file by its path.
from docs.site.pages import PAGES  # noqa: E402

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

# Documents of the root, and their place in the site.
INCLUDED: Final = {
    "ARCHITECTURE.md": "architecture.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "benchmarks/README.md": "benchmarks.md",
    "examples/README.md": "examples.md",
}
LINK: Final = re.compile(r"\[([^]\[]*)\]\((?!https?:|mailto:|#)([^)\s#]+)(#[^)\s]*)?\)")
# Of a document in a text, not in an attribute.
NAMED: Final = re.compile(r"(?<![\w/\".])docs/([\w/-]+\.md)(?![\w\"])")
_SOURCES: Final = {uri: source for source, uri in INCLUDED.items()}


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Replace `folder/*` of the navigation by the folder's pages that are not named."""
    docs = Path(config.docs_dir)
    named = set(_texts(config.nav))
    found = {path.relative_to(docs).as_posix() for path in docs.rglob("*.md")} | PAGES.keys()
    config.nav = _filled(config.nav, sorted(found - named))
    return config


def _texts(item: Any) -> list[str]:  # noqa: ANN401 - YAML.
    if isinstance(item, dict):
        item = list(item.values())
    if isinstance(item, list):
        return [text for one in item for text in _texts(one)]
    return [item]


def _filled(items: Any, rest: list[str]) -> Any:  # noqa: ANN401 - YAML.
    if isinstance(items, dict):
        return {name: _filled(value, rest) for name, value in items.items()}
    if not isinstance(items, list):
        return items
    filled: list[Any] = []
    for one in items:
        if isinstance(one, str) and one.endswith("/*"):
            filled += [uri for uri in rest if posixpath.dirname(uri) == one.removesuffix("/*")]
        else:
            filled.append(_filled(one, rest))
    return filled


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the documents of the root and the reference."""
    for source, uri in INCLUDED.items():
        text = examples() if uri == "examples.md" else (ROOT / source).read_text()
        files.append(File.generated(config, uri, content=text))
    for uri, page in PAGES.items():
        files.append(File.generated(config, uri, content=page()))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Point links to where their documents stand in the site."""
    del config, files
    uri = page.file.src_uri
    if uri in PAGES:
        return markdown
    source = _SOURCES.get(uri, f"docs/{uri}")

    def moved(found: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(source), found[2]))
        place = INCLUDED.get(target)
        if place is None and target.startswith("docs/"):
            place = target.removeprefix("docs/")
        if place is not None:
            place = posixpath.relpath(place, posixpath.dirname(uri) or ".")
            return f"[{found[1]}]({place}{found[3] or ''})"
        # A file of the tree that is not in the site: its name stays, without a link. What is
        # missing stays a link, which MkDocs refuses.
        return found[1] if (ROOT / target).exists() else found[0]

    return LINK.sub(moved, markdown)


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Make links of documents that the code names, such as docs/guide/why.md."""
    del config, files
    if page.file.src_uri not in PAGES:
        return html
    here = posixpath.dirname(page.file.src_uri)

    def linked(found: re.Match[str]) -> str:
        if not (ROOT / found[0]).exists():
            return found[0]
        place = posixpath.relpath(found[1], here).removesuffix(".md") + ".html"
        return f'<a href="{place}">{found[0]}</a>'

    return NAMED.sub(linked, html)

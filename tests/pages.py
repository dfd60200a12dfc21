"""The code blocks of the manual's pages, and the marks of those that are not run.

A mark is a comment on the line above a block:

    <!-- not run: REASON -->              its reason is a condition of the machine
    <!-- run by tests/PATH: REASON -->    another test runs it, or the same lines
"""

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
# What of a block's language a reader types.
TYPED = ("sh", "python")
# Pages that say what others do, by their own tests: tests/test_pages.py.
OF_OTHERS = ("guide", "format", "decisions", "site")
# Guides that have no such tests.
TYPED_GUIDES = (
    "data.md",
    "dead-letters.md",
    "embedding.md",
    "groups.md",
    "journal.md",
    "load.md",
    "management.md",
    "scheduled.md",
)
FENCE = re.compile(
    r"^(?P<indent> *)```(?P<language>\w+)\n(?P<code>.*?)^(?P=indent)```$", re.DOTALL | re.MULTILINE
)
NAMED_FILE = re.compile(r"`([\w-]+\.(?:xml|properties|py))`:$")
MARK = re.compile(r"<!-- (not run|run by (tests/[^:\s]+)): ([^\n]+?) -->\n *$")


class Fence(NamedTuple):
    """A block between two ```.

    Attributes:
        page: below docs/.
        line: number of its first line of code.
        language: such as sh.
        lines: of code, without their indent.
        not_run: why nothing runs it; empty if the runner does.
        run_by: the test that runs it in the runner's place; empty if none does.
    """

    page: str
    line: int
    language: str
    lines: tuple[str, ...]
    not_run: str
    run_by: str


def fences(path):
    """Every block of a page."""
    text = path.read_text()
    for found in FENCE.finditer(text):
        mark = MARK.search(text[: found.start()])
        indent = len(found["indent"])
        yield Fence(
            page=path.relative_to(DOCS).as_posix(),
            line=text.count("\n", 0, found.start("code")) + 1,
            language=found["language"],
            lines=tuple(line[indent:] for line in found["code"].splitlines()),
            not_run=mark[3] if mark and mark[1] == "not run" else "",
            run_by=mark[2] if mark and mark[2] else "",
        )


def named_files(path):
    """(name, lines) of blocks that a page gives as files: its sentence ends with "`NAME`:"."""
    text = path.read_text()
    for one in fences(path):
        above = "\n".join(text.splitlines()[: one.line - 2]).rstrip()
        if found := NAMED_FILE.search(above):
            yield found[1], one.lines


def pages():
    """The pages that the runner types."""
    return [
        path
        for path in sorted(DOCS.rglob("*.md"))
        if path.relative_to(DOCS).parts[0] not in OF_OTHERS or path.name in TYPED_GUIDES
    ]

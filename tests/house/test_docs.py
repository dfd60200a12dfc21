"""What the documents name is there: make targets, files, links between them."""

import re
import textwrap
from pathlib import Path

import pytest

from docs.site.tables import anchor as anchor_of

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
MAKE = re.compile(r"(?:^ {4}|`)make ([a-z][a-z-]*)", re.MULTILINE)
# In backquotes, with a slash: a place in the tree, unless something in it stands for a name.
PLACE = re.compile(r"`([\w.-]+/[\w./-]*)`")
DECISIONS = ROOT / "docs/decisions"
# What the targets of the Makefile write is there only after them.
OWN_ROOMS = {path.name for path in ROOT.iterdir() if path.is_dir()} - {"build", "dist"}


def make_targets():
    return set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_make_command_is_a_target(document):
    assert set(MAKE.findall(document.read_text())) <= make_targets()


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_file_that_is_named_exists(document):
    missing = [
        place
        for place in PLACE.findall(document.read_text())
        if place.split("/")[0] in OWN_ROOMS
        and not (ROOT / place).exists()
        and not list(ROOT.glob(place.rstrip("/") + ".*"))  # `journal/format` is a module.
    ]

    assert missing == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_another_document_is_named_by_a_link(document):
    """A path alone cannot be clicked. The root's documents are read in the tree, README apart."""
    if document.parent == ROOT and document.name != "README.md":
        return
    text = re.sub(r"`[^`\n]+`", "", document.read_text())

    assert re.findall(r"(?<!\]\()(?<!\[)\bdocs/[\w/-]+\.md", text) == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_leads_somewhere(document):
    """Pages of the reference are made at the build: their names are there, not their files."""
    from docs.site.pages import PAGES

    text = re.sub(r"^```.*?^```", "", document.read_text(), flags=re.DOTALL | re.MULTILINE)
    made = {ROOT / "docs" / uri for uri in PAGES}
    wrong = []
    for target, anchor in re.findall(r"\]\((?!https?:|mailto:)([^)\s#]*)(#[^)\s]*)?\)", text):
        place = (document.parent / target).resolve() if target else document
        if place in made:
            continue
        headings = (
            {anchor_of(one) for one in re.findall(r"^#+ (.+)$", place.read_text(), re.MULTILINE)}
            if place.is_file() and place.suffix == ".md"
            else set()
        )
        if not place.exists() or (anchor and anchor[1:] not in headings):
            wrong.append(target + anchor)
    assert wrong == []


def test_readme_begins_with_the_two_commands():
    text = (ROOT / "README.md").read_text()

    assert text.index("make run") < text.index("make test") < text.index("pip install")


def test_every_package_is_typed():
    packages = {
        init.parent
        for room in ("journal", "jdbcstore", "broker", "pipeline")
        for init in (ROOT / room).rglob("__init__.py")
    }

    assert [str(package) for package in packages if not (package / "py.typed").exists()] == []


def test_decisions_are_numbered_without_gaps_and_have_every_part():
    records = sorted(DECISIONS.glob("[0-9]*.md"))

    assert [int(record.name[:4]) for record in records] == list(range(1, len(records) + 1))
    for record in records:
        for part in ("Context", "Decision", "What it costs", "Rejected", "How we would notice"):
            assert f"**{part}" in record.read_text(), f"{record.name} lacks {part}"


def test_the_index_of_decisions_has_the_title_of_each():
    listed = re.findall(
        r"^\| \[(\d+)\]\((.+)\) \| (.+) \|$", (DECISIONS / "README.md").read_text(), re.M
    )

    titled = []
    for record in sorted(DECISIONS.glob("[0-9]*.md")):
        number, title = re.match(r"# (\d+)\. (.+)\n", record.read_text()).groups()
        titled.append((f"{number:0>4}", record.name, title))
    assert listed == titled


def test_the_glossary_has_each_word_once_and_in_order():
    _, *groups = (ROOT / "docs/glossary.md").read_text().split("\n## ")

    assert [group.split("\n")[0] for group in groups] == [
        "Journal",
        "SQL store",
        "Broker",
        "Pipeline",
    ]
    for group in groups:
        words = re.findall(r"^\| ([^|]+) \| [^|]+ \|$", group, re.M)[1:]
        assert words == sorted(set(words), key=str.lower)


def test_the_python_in_the_readme_runs_and_runs_again(tmp_path, monkeypatch, capsys):
    text = (ROOT / "README.md").read_text()
    code = re.search(r"^    from journal import.*?(?=^\S)", text, re.MULTILINE | re.DOTALL)[0]
    monkeypatch.chdir(tmp_path)

    exec(textwrap.dedent(code))
    exec(textwrap.dedent(code))

    assert capsys.readouterr().out == "[b'both']\n"

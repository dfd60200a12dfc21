"""Commands in documents have the names and options that the command lines have.

Blocks that are typed by a test are seen to work there. This looks at all the others, too: what
stands in a sentence, in a table, or needs a machine that no test has.
"""

import re
import shlex
from pathlib import Path

import click
import pytest

from docs.site.commands import COMMAND_LINES

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = sorted(
    [
        *ROOT.glob("*.md"),
        ROOT / "examples/README.md",
        ROOT / "benchmarks/README.md",
        *(ROOT / "docs").rglob("*.md"),
    ]
)
NAMES = "|".join(sorted(COMMAND_LINES, key=len, reverse=True))
# A line of a block, and of a table or a sentence what stands in backquotes.
TYPED = re.compile(rf"^(?: {{4}}|\$ )?((?:\S+/)?(?:{NAMES}) .*)$", re.MULTILINE)
NAMED = re.compile(rf"`((?:{NAMES}) [^`]+)`")
OF_CLICK = {"--help", "--version"}


def words_of(text):
    """The words of each command in a line."""
    try:
        words = list(shlex.shlex(text, posix=True, punctuation_chars="|&;"))
    except ValueError:
        words = text.split()
    at = 0
    while at < len(words):
        end = next((i for i in range(at, len(words)) if set(words[i]) <= set("|&;")), len(words))
        yield words[at:end]
        at = end + 1


def lines_of(text):
    """Every command of a document, as one line each."""
    joined = re.sub(r"\\\n\s*", " ", text)
    fenced = re.findall(r"^ *```(?:sh|text)\n(.*?)^ *```$", joined, re.DOTALL | re.MULTILINE)
    for block in [*fenced, "\n".join(re.findall(r"^ {4}.*$", joined, re.MULTILINE))]:
        yield from TYPED.findall(block)
    yield from NAMED.findall(joined)


def fault_of(words):
    """What a command line would not know of these words; None if it knows all.

    >>> fault_of(["journal", "stat", "DIR", "--json"])
    >>> fault_of(["journal", "stat", "DIR", "--jsno"])
    '--jsno'
    >>> fault_of(["journal", "stats"])
    'stats'
    """
    command = COMMAND_LINES[Path(words[0]).name]
    context = click.Context(command, info_name=words[0])
    rest = words[1:]
    while isinstance(command, click.Group) and rest and not rest[0].startswith("-"):
        word = rest.pop(0)
        # Stands for any of them.
        if not re.fullmatch(r"[a-z][a-z-]*", word):
            return None
        found = command.get_command(context, word)
        if found is None:
            return word
        command, context = found, click.Context(found, context, info_name=word)
    known = {flag for one in command.params for flag in [*one.opts, *one.secondary_opts]}
    for word in rest:
        flag = word.partition("=")[0].rstrip(".,:…")
        if re.fullmatch(r"--[A-Za-z][\w-]+", flag) and flag not in known | OF_CLICK:
            return flag
    return None


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_command_and_option_is_one(document):
    faults = []
    for line in lines_of(document.read_text()):
        for words in words_of(line):
            if words and Path(words[0]).name in COMMAND_LINES:
                fault = fault_of(words)
                if fault is not None:
                    faults.append(f"{fault}: {line}")

    assert faults == []


def test_commands_are_found_where_they_stand():
    text = (
        "See `broker ha status X`.\n\n    journal stat DIR && broker run X &\n\n"
        "```sh\npipeline \\\n  report X\n```\n"
    )

    found = [words[:2] for line in lines_of(text) for words in words_of(line)]
    assert sorted(found) == [
        ["broker", "ha"],
        ["broker", "run"],
        ["journal", "stat"],
        ["pipeline", "report"],
    ]

"""Finds sentences that are too long, and words of our own, in code and documents.

    python -m tests.house.words [PATH ...]     lists them: file:line, why, the beginning

Looked at: comments, docstrings and texts of code, and paragraphs of documents; not tables, blocks
of code, drawings and golden data.
"""

import ast
import io
import re
import sys
import tokenize
from pathlib import Path
from typing import NamedTuple

from tests.house.test_tidy import tracked_files

ROOT = Path(__file__).resolve().parents[2]
WORDS_MAX = 35
# What the field does not say; shared words have another meaning there.
PHRASES = (
    r"the reference's\b",
    r"\bin the reference\b",
    r"\blate notes?\b",
    r"\b(bytes|lies|lie|lay|put) aside\b",
    r"\bwhoever\b",
    r"\bnobody\b",
    r"\bthe same door\b",
    r"\b(ride|rides|ridden|riding|rode) out\b",
    r"\bhurr(y|ied|ies)\b",
    r"\bwaiting room\b",
    r"\b(let|lets|letting) (\w+ )?go\b",
    r"\b(hold|holds|held|holding) up\b",
    r"\bkeepers?\b",
    r"\bjudg(e|es|ed|ing)\b",
    r"\bgates?\b",
    r"\breap(er|ers|ed)\b",
    r"\b(is|are|was|were) no (?!(longer|more|need|other|such|room|way|limit|file)\b)[a-z]+",
)
PHRASE = re.compile("|".join(PHRASES), re.IGNORECASE)
SENTENCE = re.compile(r"(?<=[.!?:;])\s+(?=[A-Z`*\d\"'(])")
# Lists of names, drawings, tables and tests of doctest are not sentences.
NAMES = re.compile(r"(?:[\w.]+, )*[\w.]+(?: and [\w.]+)?\.?")
DRAWN = re.compile(r"[─│▶├└┌┐┘╭╮╰╯▼▲◀→←↑↓|+]|^\s*(>>>|\.\.\.|::)|  +\S+  +")


class Finding(NamedTuple):
    """One place that a reader stumbles over."""

    file: str
    line: int
    why: str
    text: str

    def __str__(self):
        return f"{self.file}:{self.line}: {self.why}: {self.text[:90]}"


def margin_of(text):
    """How far to the right the lines of a text begin: its last one, before the closing quotes."""
    last = text.rpartition("\n")[2]
    return len(last) if not last.strip() else 0


def paragraphs(text, line):
    """(line, text) of the paragraphs of a docstring, a comment or a document."""
    lines, first = [], line
    is_code = is_block = False
    was_blank = True
    margin = margin_of(text)
    for number, one in enumerate([*text.split("\n"), ""], line):
        # A block of code or a table stands behind a blank line, further to the right than the text.
        indent = len(one) - len(one.lstrip())
        if one.strip():
            is_block = indent >= margin + 4 and (was_blank or is_block)
        was_blank = not one.strip()
        if one.lstrip().startswith("```"):
            is_code = not is_code
            one = ""
        is_prose = not (is_code or is_block or DRAWN.search(one))
        if not is_prose or not one.strip() or one.lstrip().startswith(("#", "|")):
            if lines:
                yield first, " ".join(lines)
            lines = []
            continue
        if lines and re.match(r"\s*([-*]|\d+\.|\w+:) ", one):
            yield first, " ".join(lines)
            lines = []
        if not lines:
            first = number
        lines.append(one.strip())


def texts_of_python(source):
    """(line, text, is_prose) of comments and docstrings (prose), and of other texts."""
    tree = ast.parse(source)
    docs = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0].value if node.body and isinstance(node.body[0], ast.Expr) else None
            if isinstance(first, ast.Constant) and isinstance(first.value, str):
                docs.add(id(first))
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value, id(node) in docs
    comment, first, last = [], 0, -1
    lines = source.split("\n")
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT:
            continue
        is_alone = lines[token.start[0] - 1].lstrip().startswith("#")
        if comment and not (is_alone and token.start[0] == last + 1):
            yield first, "\n".join(comment), True
            comment = []
        if not comment:
            first = token.start[0]
        comment.append(token.string.lstrip("#").strip())
        # A comment behind code stands for itself.
        last = token.start[0] if is_alone else -1
    if comment:
        yield first, "\n".join(comment), True


def texts_of_cython(source):
    """The same of .pyx and .pxd."""
    for found in re.finditer(r'"""(.*?)"""', source, re.DOTALL):
        yield source.count("\n", 0, found.start()) + 1, found[1], True
    for found in re.finditer(r"^[^\n#\"]*\S[^\n#\"]*#([^\n]*)$", source, re.MULTILINE):
        yield source.count("\n", 0, found.start()) + 1, found[1].strip(), True
    for found in re.finditer(r"(?:^[ \t]*#[^\n]*\n)+", source, re.MULTILINE):
        lines = [one.strip().lstrip("#").strip() for one in found[0].strip().split("\n")]
        yield source.count("\n", 0, found.start()) + 1, "\n".join(lines), True


def findings_of(path):
    """What is wrong with the words of one file."""
    source = path.read_text()
    name = str(path.relative_to(ROOT))
    if path.suffix in (".py", ".pyi"):
        texts = list(texts_of_python(source))
    elif path.suffix in (".pyx", ".pxd"):
        texts = list(texts_of_cython(source))
    else:
        texts = [(1, source, True)]
    for line, text, is_prose in texts:
        for number, paragraph in paragraphs(text, line):
            for sentence in SENTENCE.split(paragraph):
                count = len(sentence.split())
                if is_prose and count > WORDS_MAX and not NAMES.fullmatch(sentence):
                    yield Finding(name, number, f"{count} words", sentence)
                for found in PHRASE.finditer(sentence):
                    yield Finding(name, number, found[0], sentence)


def files():
    """What is looked at: all of the tree but tests' data and what others wrote."""
    for path in tracked_files():
        name = path.relative_to(ROOT).as_posix()
        if name.startswith(("tests/golden/", "tests/house/words.py")):
            continue
        if path.suffix in (".py", ".pyi", ".pyx", ".pxd", ".md"):
            yield path


def findings(prefixes=()):
    """All of them, of files below any of the prefixes."""
    for path in files():
        name = str(path.relative_to(ROOT))
        if not prefixes or name.startswith(tuple(prefixes)):
            yield from findings_of(path)


if __name__ == "__main__":
    every = list(findings(sys.argv[1:]))
    print("\n".join(map(str, every)))
    print(len(every))

"""The pages of the Python packages: what of them is public, by topic, with tables of options.

mkdocstrings fills each `:::` from the code and its stubs. What compiled classes have of Cython and
of `object` is filtered by mkdocs.yml.
"""

from __future__ import annotations

import dataclasses
import importlib
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from broker.client.options import ClientOptions
from docs.site.attribute_docs import attribute_docs
from docs.site.elements import default_text, unit_of
from docs.site.tables import table
from jdbcstore.options import DatabaseStoreOptions
from journal.options import JournalOptions

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["PYTHON_PAGES", "names_of", "options_table", "python_page"]


class _Page(NamedTuple):
    """A page.

    Attributes:
        title: behind `Python: `.
        package: whose public names it shows.
        names: which of them, as a regular expression; what an earlier page has is left out.
        intro: below the title; the package's own text where it is empty.
    """

    title: str
    package: str
    names: str = ".*"
    intro: str = ""


_CLIENT: Final = "broker.client"
_MESSAGES: Final = "Message|MessageHeaders|make_message|RoutingType|Xid"
PYTHON_PAGES: Final = {
    "python-broker-client": _Page(
        "the client for threads",
        _CLIENT,
        "Client|Connection|Session|Producer|Consumer|Received|AckMode",
        "Every call waits for its end. [asyncio](python-broker-client-asyncio.md), "
        "[messages](python-broker-client-messages.md), "
        "[options](python-broker-client-options.md) and "
        "[errors](python-broker-client-errors.md) have pages of their own.",
    ),
    "python-broker-client-asyncio": _Page("the client for asyncio", _CLIENT, "Async.*"),
    "python-broker-client-messages": _Page(
        "messages of the client",
        _CLIENT,
        _MESSAGES,
        "What is sent, and its headers: the parameters of `make_message` are those of every "
        "`send`, `post` and `send_stream`.",
    ),
    "python-broker-client-options": _Page(
        "options of the client",
        _CLIENT,
        "Client(Options|Settings)|.*Settings|BalancingPolicy|FirstElement|Random.*|RoundRobin",
        "How a client behaves, queues that it makes, and how it chooses among brokers.",
    ),
    "python-broker-client-errors": _Page(
        "errors of the client", _CLIENT, ".*", "All of them are a `ClientError`."
    ),
    "python-broker-embedded": _Page("broker.embedded", "broker.embedded"),
    "python-journal": _Page("journal", "journal"),
    "python-jdbcstore": _Page("jdbcstore", "jdbcstore"),
    "python-pipeline": _Page("pipeline", "pipeline"),
}
# Shown first: what a reader comes for.
_FIRST: Final = ("Journal", "SqlStore", "Client", "AsyncClient", "make_message")
# What modules of the engine call of each other, without a meaning for a program.
_HIDDEN: Final = {
    "journal.Journal": ("leave_to_parent", "refused", "start", "stop", "too_large"),
    "jdbcstore.SqlStore": ("fail", "leave_to_parent", "refused", "too_large"),
}
_MKDOCS: Final = Path(__file__).resolve().parents[2] / "mkdocs.yml"
# Classes whose fields are options.
_OPTIONS: Final = (JournalOptions, DatabaseStoreOptions, ClientOptions)


def names_of(uri: str) -> list[str]:
    """Give the public names that a page shows."""
    page = PYTHON_PAGES[uri]
    taken: set[str] = set()
    for other, one in PYTHON_PAGES.items():
        if one.package != page.package:
            continue
        public = importlib.import_module(one.package).__all__
        found = [
            name
            for name in public
            if name not in taken and name != "__version__" and re.fullmatch(one.names, name)
        ]
        if other == uri:
            return sorted(found, key=lambda name: (name not in _FIRST, public.index(name)))
        taken.update(found)
    raise KeyError(uri)


def python_page(uri: str) -> str:
    """Give a page, as mkdocstrings takes it."""
    page = PYTHON_PAGES[uri]
    parts = [f"# Python: {page.title}\n"]
    if page.intro:
        parts.append(f"From `{page.package}`. {page.intro}\n")
    else:
        parts.append(_whole(page.package, heading=False))
    for name in names_of(uri):
        target = getattr(importlib.import_module(page.package), name)
        parts.append(_whole(f"{page.package}.{name}"))
        if target in _OPTIONS:
            parts.append(f"### Fields of {name}\n\n{options_table(target)}")
    return "\n".join(parts)


def _whole(path: str, *, heading: bool = True) -> str:
    if heading:
        hidden = _HIDDEN.get(path, ())
        # Behind the filters of mkdocs.yml, which these replace.
        filters = [*_filters(), *(f"!^{name}$" for name in hidden)] if hidden else []
        lines = ["    options:", "      filters:", *(f"        - '{one}'" for one in filters)]
        return "\n".join([f"::: {path}", *(lines if filters else ())]) + "\n"
    return f"::: {path}\n    options:\n      members: false\n      show_root_heading: false\n"


def _filters() -> list[str]:
    return re.findall(r'^ +- "(![^"]+)"$', _MKDOCS.read_text(), re.MULTILINE)


def options_table(cls: type[Any]) -> str:
    """Give every field of a class of options: type, default, unit, meaning."""
    return table(("field", "type", "default", "unit", "meaning"), _fields(cls))


def _fields(cls: type[Any]) -> Iterator[tuple[str, str, str, str, str]]:
    texts = attribute_docs(cls)
    for field in dataclasses.fields(cls):
        meaning = texts.get(field.name, "")
        yield (
            f"`{field.name}`",
            f"`{field.type}`",
            "required" if _is_required(field) else f"`{_default(field)}`",
            _unit(field.name, str(field.type), meaning) or "–",
            meaning[:1].upper() + meaning[1:],
        )


def _is_required(field: dataclasses.Field[Any]) -> bool:
    return field.default is field.default_factory is dataclasses.MISSING


def _default(field: dataclasses.Field[Any]) -> str:
    if field.default_factory is not dataclasses.MISSING:
        return repr(field.default_factory())
    value = field.default
    # An enumeration's own repr names its class.
    return repr(value) if isinstance(value, bool) else default_text(value) or repr(value)


def _unit(name: str, kind: str, meaning: str) -> str:
    """The unit: of the name, else as the meaning begins or says."""
    if unit := unit_of(name):
        return unit
    if not re.search(r"\b(int|float)\b", kind):
        return ""
    if name.endswith("_size"):
        return "bytes"
    if re.search(r"(timeout|interval|period|ttl)$", name):
        return "ms"
    return "number" if re.search(r"attempts|files|count", name) else ""

"""Maps XML elements to dataclasses: the fields of a class declare what the file may contain.

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Divert:
        name: str = attribute("name", TEXT)
        exclusive: bool = element("exclusive", BOOLEAN, False)

A field without a default is required. What no field names is an error, with the nearest name that
there is; with `lenient` it is a warning. Nothing may stand twice that is read once.
"""

from __future__ import annotations

import dataclasses
import logging
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, TypeVar

from broker.settings.value_types import TEXT, ValueType
from journal.nearest import nearest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from broker.config.document import Element

__all__ = [
    "REQUIRED",
    "Context",
    "Declared",
    "attribute",
    "check_names",
    "child_attribute",
    "content",
    "custom",
    "declared",
    "element",
    "grouped",
    "line",
    "nested",
    "optional",
    "optional_attribute",
    "read",
    "read_groups",
    "repeated",
    "secret",
    "unused",
]

T = TypeVar("T")
REQUIRED: Final[Any] = dataclasses.MISSING
log = logging.getLogger("broker.config")


class Declared(NamedTuple):
    """A field as its class declares it, for the reference manual.

    Attributes:
        field: of the class.
        elements: its names in the file, the first is the one to write; empty for an attribute.
        attributes: likewise; empty for an element.
        kind: what its text may be.
        default: `REQUIRED` where it has none.
        holds: elements and a class: the child has elements of these names, the class says what
            stands in them. With `str` the names are those of the child's attributes. None for text.
        is_unused: read without effect.
    """

    field: str
    elements: tuple[str, ...]
    attributes: tuple[str, ...]
    kind: ValueType[Any]
    default: object
    holds: tuple[tuple[str, ...], type[Any]] | None
    is_unused: bool


def declared(cls: type[Any]) -> list[Declared]:
    """Give what a class says of the file, in its order; line numbers are left out."""
    return [
        Declared(
            field=field.name,
            elements=item.elements,
            attributes=item.attributes,
            kind=item.kind,
            default=field.default,
            holds=item.holds,
            is_unused=isinstance(item, _Unused),
        )
        for field in dataclasses.fields(cls)
        if (item := field.metadata.get("xml")) is not None and not isinstance(item, _Line)
    ]


@dataclasses.dataclass(slots=True)
class Context:
    """What reading depends on besides the file.

    Attributes:
        unmask: gives the plain text of a password.
        lenient: unknown names are logged, not refused.
    """

    unmask: Callable[[str], str]
    lenient: bool = False

    def unknown(self, where: Element, what: str) -> None:
        """Refuse or warn."""
        error = where.wrong(what)
        if not self.lenient:
            raise error
        log.warning("%s", error)


class _Item(Protocol):
    """How one field is read."""

    @property
    def elements(self) -> tuple[str, ...]:
        """Names of children that it takes."""

    @property
    def attributes(self) -> tuple[str, ...]:
        """Names of attributes that it takes."""

    @property
    def kind(self) -> ValueType[Any]:
        """What its text may be."""

    @property
    def holds(self) -> tuple[tuple[str, ...], type[Any]] | None:
        """The class of what stands in it, below the elements of these names; None for a text."""

    def value(self, parent: Element, context: Context) -> object:
        """The field's value, MISSING where the file says nothing."""


@dataclasses.dataclass(frozen=True, slots=True)
class _Attribute:
    attributes: tuple[str, ...]
    kind: ValueType[Any]
    elements: tuple[str, ...] = ()
    holds: None = None

    def value(self, parent: Element, context: Context) -> object:
        del context
        text = parent.attributes.get(self.attributes[0])
        if text is None:
            return dataclasses.MISSING
        return _parsed(self.kind, text, parent, self.attributes[0])


@dataclasses.dataclass(frozen=True, slots=True)
class _Content:
    kind: ValueType[Any]
    elements: tuple[str, ...] = ()
    attributes: tuple[str, ...] = ()
    holds: None = None

    def value(self, parent: Element, context: Context) -> object:
        del context
        return _parsed(self.kind, parent.text, parent, f"<{parent.name}>")


@dataclasses.dataclass(frozen=True, slots=True)
class _Line:
    elements: tuple[str, ...] = ()
    attributes: tuple[str, ...] = ()
    kind: ValueType[Any] = TEXT
    holds: None = None

    def value(self, parent: Element, context: Context) -> object:
        del context
        return f"{parent.file}:{parent.line}"


@dataclasses.dataclass(frozen=True, slots=True)
class _Child:
    elements: tuple[str, ...]
    read: Callable[[Element, Context], Any]
    attributes: tuple[str, ...] = ()
    kind: ValueType[Any] = TEXT
    holds: tuple[tuple[str, ...], type[Any]] | None = None

    def value(self, parent: Element, context: Context) -> object:
        found = [child for child in parent.children if child.name in self.elements]
        if not found:
            return dataclasses.MISSING
        if len(found) > 1:
            raise found[1].wrong(
                f"<{found[1].name}> stands a second time, see line {found[0].line}"
            )
        return self.read(found[0], context)


@dataclasses.dataclass(frozen=True, slots=True)
class _Children:
    elements: tuple[str, ...]
    read: Callable[[Element, Context], Any]
    attributes: tuple[str, ...] = ()
    kind: ValueType[Any] = TEXT
    holds: tuple[tuple[str, ...], type[Any]] | None = None

    def value(self, parent: Element, context: Context) -> object:
        return tuple(
            self.read(child, context) for child in parent.children if child.name in self.elements
        )


class _Unused(_Children):
    def value(self, parent: Element, context: Context) -> object:
        super().value(parent, context)
        return dataclasses.MISSING


def _field(item: _Item, default: Any) -> Any:  # noqa: ANN401 - a field has any type.
    return dataclasses.field(default=default, metadata={"xml": item})


def attribute(name: str, kind: ValueType[T], default: T = REQUIRED) -> T:
    """The field of an attribute."""
    field: T = _field(_Attribute((name,), kind), default)
    return field


def optional_attribute(name: str, kind: ValueType[T]) -> T | None:
    """The field of an attribute that may be missing: None."""
    field: T | None = _field(_Attribute((name,), kind), None)
    return field


def content(kind: ValueType[T]) -> T:
    """The field of the element's own text."""
    field: T = _field(_Content(kind), REQUIRED)
    return field


def line() -> str:
    """The field that says where the element stands, for errors found later: `FILE:LINE`."""
    field: str = _field(_Line(), "")
    return field


def element(name: str, kind: ValueType[T], default: T = REQUIRED, *aliases: str) -> T:
    """The field of a child's text."""
    field: T = _field(_Child((name, *aliases), _text_reader(kind), kind=kind), default)
    return field


def optional(name: str, kind: ValueType[T], *aliases: str) -> T | None:
    """The field of a child's text that may be missing: None."""
    field: T | None = _field(_Child((name, *aliases), _text_reader(kind), kind=kind), None)
    return field


def secret(name: str, default: str | None = None) -> Any:  # noqa: ANN401 - str or None, as declared.
    """The field of a child's text that is a password, maybe masked; repr() leaves it out."""

    def unmasked(child: Element, context: Context) -> str:
        check_names(child, (), (), context)
        try:
            return context.unmask(child.text)
        except ValueError as error:
            raise child.wrong(f"<{name}>: {error}") from None

    item = _Child((name,), unmasked)
    return dataclasses.field(default=default, repr=False, metadata={"xml": item})


def repeated(name: str, kind: ValueType[T]) -> tuple[T, ...]:
    """The field of the texts of all children of that name."""
    field: tuple[T, ...] = _field(_Children((name,), _text_reader(kind), kind=kind), ())
    return field


def child_attribute(name: str, attribute_name: str) -> str | None:
    """The field of an attribute of a child, as in `<filter string="…"/>`."""

    def read_attribute(child: Element, context: Context) -> str:
        check_names(child, (), (attribute_name,), context)
        if attribute_name not in child.attributes:
            raise child.wrong(f"<{name}> needs the attribute {attribute_name}")
        return child.attributes[attribute_name]

    holds = ((attribute_name,), str)
    field: str | None = _field(_Child((name,), read_attribute, holds=holds), None)
    return field


def nested(name: str, cls: type[T], *aliases: str) -> T | None:
    """The field of a child that is a dataclass itself."""
    item = _Child((name, *aliases), _class_reader(cls), holds=((), cls))
    field: T | None = _field(item, None)
    return field


def grouped(wrapper: str, name: str, cls: type[T]) -> tuple[T, ...]:
    """The field of all `name` in the child `wrapper`."""

    def read_group(child: Element, context: Context) -> tuple[T, ...]:
        check_names(child, (name,), (), context)
        return tuple(read(cls, item, context) for item in child.children if item.name == name)

    item = _Child((wrapper,), read_group, holds=((name,), cls))
    field: tuple[T, ...] = _field(item, ())
    return field


def custom(
    name: str,
    reader: Callable[[Element, Context], T],
    default: T,
    *aliases: str,
    many: bool = False,
) -> T:
    """The field of a child that a function reads; with `many` a tuple, of all of that name."""
    item: _Item = (_Children if many else _Child)((name, *aliases), reader)
    field: T = _field(item, default)
    return field


def unused(*names: str) -> Any:  # noqa: ANN401 - a field without use has no type.
    """The field of children that Artemis's schema still has and nothing reads any more."""

    def ignored(child: Element, context: Context) -> None:
        del context
        log.info("%s:%s: <%s> has no effect any more", child.file, child.line, child.name)

    return dataclasses.field(
        default=None, repr=False, compare=False, metadata={"xml": _Unused(names, ignored)}
    )


def read(cls: type[T], parent: Element, context: Context) -> T:
    """An object of a dataclass from the element that it stands for.

    Raises:
        ConfigError: a value that is none, something missing, unknown, or there twice.
    """
    return read_groups((cls,), parent, context)[0]


def read_groups(classes: Iterable[type[T]], parent: Element, context: Context) -> list[T]:
    """Objects of several dataclasses that share the children of one element."""
    classes = tuple(classes)
    fields = [(cls, *field) for cls in classes for field in _items(cls)]
    check_names(
        parent,
        [name for _, _, item, _ in fields for name in item.elements],
        [name for _, _, item, _ in fields for name in item.attributes],
        context,
    )
    values: dict[type[T], dict[str, object]] = {cls: {} for cls in classes}
    for cls, name, item, is_required in fields:
        value = item.value(parent, context)
        if value is not dataclasses.MISSING:
            values[cls][name] = value
        elif is_required:
            wanted = "".join(f"<{one}>" for one in item.elements[:1]) or item.attributes[0]
            raise parent.wrong(f"<{parent.name}> needs {wanted}")
    made = []
    for cls in classes:
        try:
            made.append(cls(**values[cls]))
        except ValueError as error:
            raise parent.wrong(f"<{parent.name}>: {error}") from None
    return made


def check_names(
    parent: Element, elements: Iterable[str], attributes: Iterable[str], context: Context
) -> None:
    """Every child and attribute has one of these names; else an error with the nearest one."""
    elements, attributes = set(elements), set(attributes)
    for child in parent.children:
        if child.name not in elements:
            near = nearest(child.name, elements, "<{}>")
            context.unknown(child, f"no element <{child.name}> in <{parent.name}>{near}")
    for name in parent.attributes:
        if name not in attributes:
            near = nearest(name, attributes, "{}")
            context.unknown(parent, f"no attribute {name} in <{parent.name}>{near}")


def _items(cls: type[Any]) -> list[tuple[str, _Item, bool]]:
    return [
        (
            field.name,
            field.metadata["xml"],
            field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING,
        )
        for field in dataclasses.fields(cls)
        if "xml" in field.metadata
    ]


def _text_reader(kind: ValueType[T]) -> Callable[[Element, Context], T]:
    def read_text(child: Element, context: Context) -> T:
        check_names(child, (), (), context)
        return _parsed(kind, child.text, child, f"<{child.name}>")

    return read_text


def _class_reader(cls: type[T]) -> Callable[[Element, Context], T]:
    return lambda child, context: read(cls, child, context)


def _parsed(kind: ValueType[T], text: str, where: Element, shown: str) -> T:
    if not text and kind is not TEXT:
        raise where.wrong(f"{shown} is empty; it is {kind.name}")
    try:
        return kind.parse(text)
    except ValueError as error:
        raise where.wrong(f"{shown}: {error}") from None

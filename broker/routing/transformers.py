"""Transformers: classes that change messages on the way of a divert or a bridge.

    <transformer><class-name>NAME</class-name><property key="…" value="…"/></transformer>

NAME is that of an entry point of the group `quiver.broker.transformers`, or Artemis's name of one
that is built in. The entry point is called with the properties and gives a `Transformer`:

    class Redact:
        def __init__(self, properties: Mapping[str, str]) -> None: ...
        def transform(self, message: Message) -> Message: ...

Threads: the event loop's alone. transform() must not wait.
"""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Final, Protocol

from broker.model.message import Message
from broker.model.properties import PropertyType

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["GROUP", "AddHeaders", "Transformer", "make_transformer", "transformed"]

GROUP: Final = "quiver.broker.transformers"
_ADD_HEADERS: Final = "org.apache.activemq.artemis.core.server.transformer.AddHeadersTransformer"


class Transformer(Protocol):
    """Changes messages."""

    def transform(self, message: Message) -> Message:
        """Give what goes on in its place: the same one, changed, or another.

        Args:
            message: a copy of its own; the queue's keeps as it is.
        """


class AddHeaders:
    """Sets a property for each of its own (AddHeadersTransformer).

    Args:
        properties: names and texts of properties of messages.
    """

    def __init__(self, properties: Mapping[str, str]) -> None:
        self._headers = dict(properties)

    def transform(self, message: Message) -> Message:
        """Set them."""
        for name, text in self._headers.items():
            message.set(name, PropertyType.STRING, text)
        return message


_BUILT_IN: Final[dict[str, Callable[[Mapping[str, str]], Transformer]]] = {_ADD_HEADERS: AddHeaders}


def make_transformer(class_name: str, properties: Mapping[str, str]) -> Transformer:
    """Make the transformer of a name.

    Args:
        class_name: see the module's text.
        properties: as configured.

    Raises:
        ValueError: no transformer has this name, or it refuses its properties.
    """
    made = _BUILT_IN.get(class_name)
    if made is None:
        found = entry_points(group=GROUP, name=class_name)
        if not found:
            known = sorted({*_BUILT_IN, *(one.name for one in entry_points(group=GROUP))})
            raise ValueError(
                f"no transformer is called {class_name!r}; installed: {', '.join(known)}"
            )
    try:
        if made is None:
            made = next(iter(found)).load()
        transformer: Transformer = made(properties)
    except Exception as error:
        raise ValueError(f"transformer {class_name!r}: {error}") from error
    return transformer


def transformed(transformer: Transformer, message: Message) -> Message:
    """Give what a transformer makes of a message.

    Args:
        transformer: of the bridge or divert.
        message: a copy of its own.

    Raises:
        TypeError: it gave no message: a `return` is missing.
        Exception: whatever it raises.
    """
    made = transformer.transform(message)
    if not isinstance(made, Message):
        raise TypeError(f"transform() gave {type(made).__name__}, it has to give a Message")
    return made

"""Operations and attributes by name, as Artemis calls methods of its controls by reflection.

    @operation("moveMessages", TEXT, TEXT, BOOLEAN)      one signature; a method may have several
    getters = {"getName": …, "isPaused": …}              without parameters: attributes too

An operation is found by its name and the number and kinds of its arguments; an attribute `x` is the
operation `getX` or `isX`. What takes long is a generator, which yields between two parts of its
work, None or seconds to wait, and returns its result: see service.py. A control may be made of
several classes, a group of operations each: it has the operations of all of them.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple, TypeAlias, TypeVar

from broker.management.errors import ManagementError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

__all__ = [
    "BOOLEAN",
    "BOOLEAN_OR_NULL",
    "DOUBLE",
    "INT",
    "INT_OR_NULL",
    "LIST",
    "LONG",
    "LONG_OR_NULL",
    "MAP",
    "NAME",
    "TEXT",
    "ArgumentType",
    "Control",
    "Getters",
    "operation",
]

Getters: TypeAlias = "Mapping[str, Callable[[Any], object]]"

F = TypeVar("F", bound="Callable[..., object]")

_INT_MIN, _INT_MAX = -(2**31), 2**31 - 1
_LONG_MIN, _LONG_MAX = -(2**63), 2**63 - 1


class ArgumentType(Enum):
    """What a parameter takes: the Java type of Artemis's method, and whether it may be null.

    NAME is a String that has to be there.
    """

    TEXT = ("String", True)
    NAME = ("String", False)
    BOOLEAN = ("boolean", False)
    BOOLEAN_OR_NULL = ("Boolean", True)
    INT = ("int", False)
    INT_OR_NULL = ("Integer", True)
    LONG = ("long", False)
    LONG_OR_NULL = ("Long", True)
    DOUBLE = ("double", False)
    MAP = ("Map", True)
    LIST = ("Object[]", False)

    @property
    def java_type(self) -> str:
        """The type's simple name."""
        return self.value[0]

    def accepts(self, value: object) -> bool:
        """Whether a value from JSON fits."""
        if value is None:
            return self.value[1]
        return self.accepts_type(value)

    def accepts_type(self, value: object) -> bool:
        """Whether a value that is not null is of the type, and in its range; null always is."""
        if value is None:
            return True
        java_type = self.java_type
        if java_type == "String":
            return isinstance(value, str)
        if java_type in ("boolean", "Boolean"):
            return isinstance(value, bool)
        if java_type == "Map":
            return isinstance(value, dict)
        if java_type == "Object[]":
            return isinstance(value, list)
        if isinstance(value, bool) or not isinstance(value, int | float):
            return False
        if java_type == "double":
            return True
        low, high = (_LONG_MIN, _LONG_MAX) if "ong" in java_type else (_INT_MIN, _INT_MAX)
        # 1.0 is 1; Artemis cuts off what stands behind the point.
        return low <= value <= high and value == int(value)

    def convert(self, value: object) -> object:
        """Give a value that was accepted as what the operation takes."""
        if self is ArgumentType.DOUBLE and isinstance(value, int):
            return float(value)
        return int(value) if isinstance(value, float) and self is not ArgumentType.DOUBLE else value


TEXT: Final = ArgumentType.TEXT
NAME: Final = ArgumentType.NAME
BOOLEAN: Final = ArgumentType.BOOLEAN
BOOLEAN_OR_NULL: Final = ArgumentType.BOOLEAN_OR_NULL
INT: Final = ArgumentType.INT
INT_OR_NULL: Final = ArgumentType.INT_OR_NULL
LONG: Final = ArgumentType.LONG
LONG_OR_NULL: Final = ArgumentType.LONG_OR_NULL
DOUBLE: Final = ArgumentType.DOUBLE
MAP: Final = ArgumentType.MAP
LIST: Final = ArgumentType.LIST


class _Signature(NamedTuple):
    method: str
    kinds: tuple[ArgumentType, ...]

    @property
    def java_types(self) -> tuple[str, ...]:
        return tuple(kind.java_type for kind in self.kinds)

    def accepts(self, arguments: Sequence[object]) -> bool:
        return len(arguments) == len(self.kinds) and all(
            kind.accepts(value) for kind, value in zip(self.kinds, arguments, strict=True)
        )

    def null_at(self, arguments: Sequence[object]) -> int | None:
        """Where a null stands that may not, in arguments that fit otherwise; None: they do not."""
        if len(arguments) != len(self.kinds):
            return None
        pairs = list(zip(self.kinds, arguments, strict=True))
        if not all(kind.accepts_type(value) for kind, value in pairs):
            return None
        return next(at for at, (kind, value) in enumerate(pairs) if not kind.accepts(value))


def operation(name: str, *kinds: ArgumentType) -> Callable[[F], F]:
    """Let a method of a Control be called by this name with arguments of these kinds."""

    def mark(method: F) -> F:
        signatures: list[tuple[str, tuple[ArgumentType, ...]]] = getattr(method, "signatures", [])
        method.signatures = [*signatures, (name, kinds)]  # type: ignore[attr-defined]
        return method

    return mark


class Control:
    """Something that can be managed.

    Attributes:
        getters: operations without parameters, by name, given the control.
    """

    getters: ClassVar[Getters] = {}
    _operations: ClassVar[dict[str, list[_Signature]]] = {}

    def __init_subclass__(cls) -> None:
        """Collect what is marked, here and in every class that this one is made of."""
        super().__init_subclass__()
        getters: dict[str, Callable[[Any], object]] = {}
        found: dict[str, list[_Signature]] = {}
        for part in reversed(cls.__mro__):
            getters |= vars(part).get("getters", {})
            for method_name, method in vars(part).items():
                for name, kinds in getattr(method, "signatures", ()):
                    signature = _Signature(method_name, kinds)
                    known = found.setdefault(name, [])
                    if signature not in known:
                        known.append(signature)
        cls.getters = getters
        cls._operations = found

    def method_of_attribute(self, attribute: str) -> str:
        """Give the operation that reads an attribute.

        Raises:
            ManagementError: there is none.
        """
        name = attribute[:1].upper() + attribute[1:]
        for prefix in ("get", "is"):
            method = prefix + name
            if self._find(method, ()) is not None:
                return method
        raise ManagementError(f"AMQ229068: no getter method for {attribute}")

    def invoke(self, name: str, arguments: Sequence[object]) -> object:
        """Do it; the result, or a generator that returns it.

        Raises:
            ManagementError: no such operation with such arguments, or what it says itself.
            BrokerError: it is refused.
        """
        found = self._find(name, arguments)
        if found is None:
            raise self._not_found(name, arguments)
        return found()

    def _find(self, name: str, arguments: Sequence[object]) -> Callable[[], object] | None:
        getter = self.getters.get(name)
        if getter is not None and not arguments:
            return lambda: getter(self)
        for signature in self._operations.get(name, ()):
            if signature.accepts(arguments):
                values = [
                    kind.convert(value)
                    for kind, value in zip(signature.kinds, arguments, strict=True)
                ]
                method = getattr(self, signature.method)
                return lambda: method(*values)
        return None

    def _not_found(self, name: str, arguments: Sequence[object]) -> ManagementError:
        known = self._operations.get(name, [])
        for signature in known:
            at = signature.null_at(arguments)
            if at is not None:
                return ManagementError(
                    f"{name}: argument {at + 1} of {_call(name, signature.java_types)} "
                    "must not be null"
                )
        text = f"AMQ229069: no operation {name}/{len(arguments)}"
        calls = [_call(name, one.java_types) for one in known]
        if name in self.getters:
            calls.insert(0, _call(name, ()))
        if calls:
            given = ", ".join(_json_type(value) for value in arguments)
            text += f": ({given}) fits none of {'; '.join(calls)}"
        return ManagementError(text)

    @classmethod
    def signatures(cls) -> set[tuple[str, tuple[str, ...]]]:
        """Give the names of all operations and getters, with the Java types of their parameters."""
        return {(name, ()) for name in cls.getters} | {
            (name, one.java_types) for name, known in cls._operations.items() for one in known
        }

    @classmethod
    def names(cls) -> set[str]:
        """Give the names of all operations and getters."""
        return {*cls.getters, *cls._operations}


def _call(name: str, types: Sequence[str]) -> str:
    return f"{name}({', '.join(types)})"


def _json_type(value: object) -> str:
    """Name the JSON type of an argument; its value may be a secret.

    >>> _json_type(None), _json_type(True), _json_type(1.5), _json_type([])
    ('null', 'boolean', 'number', 'array')
    """
    if value is None:
        return "null"
    names = {bool: "boolean", int: "number", float: "number", str: "string", dict: "object"}
    return names.get(type(value), "array")

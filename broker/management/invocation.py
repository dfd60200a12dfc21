"""Operations and attributes by name, as the reference calls methods of its controls by reflection.

    @operation("moveMessages", TEXT, TEXT, BOOLEAN)      one signature; a method may have several
    getters = {"getName": …, "isPaused": …}              without parameters: attributes too

An operation is found by its name and the number and kinds of its arguments; an attribute `x` is the
operation `getX` or `isX`. What takes long is a generator, which yields between two parts of its
work, None or seconds to wait, and returns its result: see service.py.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple, TypeAlias, TypeVar

from broker.management.errors import ManagementError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

__all__ = [
    "BOOLEAN",
    "INT",
    "INTEGER",
    "LONG",
    "MAP",
    "NAME",
    "TEXT",
    "Control",
    "Getters",
    "Kind",
    "operation",
]

Getters: TypeAlias = "Mapping[str, Callable[[Any], object]]"

F = TypeVar("F", bound="Callable[..., object]")

_INT_MIN, _INT_MAX = -(2**31), 2**31 - 1
_LONG_MIN, _LONG_MAX = -(2**63), 2**63 - 1


class Kind(Enum):
    """What a parameter takes (a Java type of the reference's method).

    Each takes null as well, but for INT and LONG, which are numbers there and no objects, and NAME,
    a text that must be there.
    """

    TEXT = auto()
    NAME = auto()
    BOOLEAN = auto()
    INT = auto()
    INTEGER = auto()
    LONG = auto()
    MAP = auto()

    def accepts(self, value: object) -> bool:
        """Whether a value from JSON fits."""
        if value is None:
            return self not in (Kind.INT, Kind.LONG, Kind.NAME)
        if self is Kind.TEXT or self is Kind.NAME:
            return isinstance(value, str)
        if self is Kind.BOOLEAN:
            return isinstance(value, bool)
        if self is Kind.MAP:
            return isinstance(value, dict)
        if isinstance(value, bool) or not isinstance(value, int | float):
            return False
        low, high = (_LONG_MIN, _LONG_MAX) if self is Kind.LONG else (_INT_MIN, _INT_MAX)
        # 1.0 is 1; the reference cuts off what stands behind the point.
        return low <= value <= high and value == int(value)

    def convert(self, value: object) -> object:
        """Give a value that was accepted as what the operation takes."""
        return int(value) if isinstance(value, float) else value


TEXT: Final = Kind.TEXT
NAME: Final = Kind.NAME
BOOLEAN: Final = Kind.BOOLEAN
INT: Final = Kind.INT
INTEGER: Final = Kind.INTEGER
LONG: Final = Kind.LONG
MAP: Final = Kind.MAP


class _Signature(NamedTuple):
    method: str
    kinds: tuple[Kind, ...]

    def accepts(self, arguments: Sequence[object]) -> bool:
        return len(arguments) == len(self.kinds) and all(
            kind.accepts(value) for kind, value in zip(self.kinds, arguments, strict=True)
        )


def operation(name: str, *kinds: Kind) -> Callable[[F], F]:
    """Let a method of a Control be called by this name with arguments of these kinds."""

    def mark(method: F) -> F:
        signatures: list[tuple[str, tuple[Kind, ...]]] = getattr(method, "signatures", [])
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
        """Collect what is marked."""
        super().__init_subclass__()
        found: dict[str, list[_Signature]] = {
            name: list(known) for name, known in cls._operations.items()
        }
        for method_name, method in vars(cls).items():
            for name, kinds in getattr(method, "signatures", ()):
                found.setdefault(name, []).append(_Signature(method_name, kinds))
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
            raise ManagementError(f"AMQ229069: no operation {name}/{len(arguments)}")
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

    @classmethod
    def names(cls) -> set[str]:
        """Give the names of all operations and getters."""
        return {*cls.getters, *cls._operations}

"""Types of parameters: sizes, durations, the version in a file's header."""

from __future__ import annotations

from typing import Final

import click

from journal.errors import OptionError
from journal.options import USER_VERSION_MAX, USER_VERSION_MIN, parse_duration_ns, parse_size

__all__ = ["DURATION_MS", "DURATION_NS", "SIZE", "USER_VERSION"]

NS_PER_MS: Final = 1_000_000


class Size(click.ParamType):  # type: ignore[type-arg]  # Generic only since click 8.3.
    """Bytes: 10485760, 10M, 10MiB."""

    name = "size"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> int:
        """The text as bytes."""
        if isinstance(value, int):
            return value
        try:
            return parse_size(str(value))
        except OptionError as error:
            self.fail(str(error), param, ctx)


class Duration(click.ParamType):  # type: ignore[type-arg]  # As above.
    """A time: 500000ns, 0.5ms, 2s, 5m, 12h, 7d; a bare number is in the parameter's own unit.

    Args:
        unit_ns: nanoseconds of that unit.
    """

    name = "time"

    def __init__(self, unit_ns: int) -> None:
        self.unit_ns = unit_ns

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> int:
        """The text in the parameter's own unit."""
        if isinstance(value, int):
            return value
        text = str(value).strip()
        if text.lstrip("-").isdigit():
            return int(text)
        try:
            return round(parse_duration_ns(text) / self.unit_ns)
        except OptionError as error:
            self.fail(str(error), param, ctx)


SIZE: Final = Size()
DURATION_NS: Final = Duration(1)
USER_VERSION = click.IntRange(USER_VERSION_MIN, USER_VERSION_MAX)
DURATION_MS: Final = Duration(NS_PER_MS)

"""From Spark's errors to exit statuses; those of the journal are journal.cli.guard's.

What a task raised reaches us as text, a traceback of the worker's Python inside one of Java: the
line that names one of our own errors is the one that people can act on.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import click

from journal.cli import guard

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["plain_error", "run"]

_OURS: Final = re.compile(
    r"^(?:pyspark\S*: )?(?:journal|pipeline|broker)\.[\w.]*?(\w+): (.+)$", re.MULTILINE
)
# Ours that say that data are damaged.
_DAMAGE: Final = ("DataLoss", "JournalDamaged")


def plain_error(text: str) -> tuple[str, bool]:
    r"""The one line of Spark's text that people can act on, and whether it speaks of damage.

    >>> plain_error("Traceback ...\npipeline.errors.DataLoss: a: b\n at org.apache...")
    ('a: b', True)
    >>> plain_error("[PATH_ALREADY_EXISTS] Path file:/out already exists. SQLSTATE: 42K04\n...")
    ('[PATH_ALREADY_EXISTS] Path file:/out already exists. SQLSTATE: 42K04', False)
    """
    found = _OURS.search(text)
    if found is not None:
        return found[2], found[1] in _DAMAGE
    return text.strip().partition("\n")[0], False


def run(command: click.Command, name: str, arguments: Sequence[str] | None = None) -> int:
    """Run a command line; the exit status."""

    class Guarded(click.Group):
        def invoke(self, ctx: click.Context) -> object:
            try:
                return command.invoke(ctx)
            except Exception as error:
                # By name: without PySpark there is no class to compare with.
                if not _is_of_spark(error):
                    raise
                text, is_damage = plain_error(str(error))
                if not is_damage:
                    raise click.ClickException(text) from None
                guard.say(f"{name}: {text}")
                return guard.DAMAGED

        def make_context(
            self,
            info_name: str | None,
            args: list[str],
            parent: click.Context | None = None,
            **extra: object,
        ) -> click.Context:
            return command.make_context(info_name, args, parent, **extra)

    return guard.run(Guarded(name), name, arguments)


def _is_of_spark(error: Exception) -> bool:
    return any(kind.__module__.startswith(("pyspark.", "py4j.")) for kind in type(error).__mro__)

"""The exit status for errors of Spark and brokers; journal.commands.exit_status has the journal's.

What a task raised reaches us as text, a traceback of the worker's Python inside one of Java: the
line that names one of our own errors is the one that people can act on.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from broker.client.errors import ClientError
from journal.commands import exit_status

if TYPE_CHECKING:
    from collections.abc import Sequence

    import click

__all__ = ["plain_error", "run"]

_OURS: Final = re.compile(
    r"(?:^|: )(?:pyspark\S*: )?(?:journal|pipeline|broker)\.[\w.]*?(\w+): (.+)$", re.MULTILINE
)
# Precedes Java's error, unless it is an error of Spark's analysis.
_CALLED: Final = re.compile(r"An error occurred while calling \S+\s*: (?:[\w.$]+: )?")
# Ours that say that data are damaged.
_DAMAGE: Final = ("DataLoss", "JournalDamaged")


def plain_error(text: str) -> tuple[str, bool]:
    r"""The one line of Spark's text that people can act on, and whether it speaks of damage.

    >>> plain_error("Traceback ...\npipeline.errors.DataLoss: a: b\n at org.apache...")
    ('a: b', True)
    >>> plain_error("[PYTHON_DATA_SOURCE_ERROR] Failed: journal.errors.WrongUse: a: no\n SQLSTATE")
    ('a: no', False)
    >>> plain_error("An error occurred while calling o.x.\n: java.io.IOException: no\n\tat a.b")
    ('no', False)
    >>> plain_error("[PATH_ALREADY_EXISTS] Path file:/out already exists. SQLSTATE: 42K04\n...")
    ('[PATH_ALREADY_EXISTS] Path file:/out already exists. SQLSTATE: 42K04', False)
    """
    found = _OURS.search(text)
    if found is not None:
        return found[2], found[1] in _DAMAGE
    return _CALLED.sub("", text.strip(), count=1).partition("\n")[0], False


def run(command: click.Command, name: str, arguments: Sequence[str] | None = None) -> int:
    """Run a command line; the exit status."""
    return exit_status.run(command, name, arguments, _classify)


def _classify(error: Exception) -> exit_status.Failure | None:
    if isinstance(error, ClientError):
        # The command was right, and was not done; as the commands of `broker` have it.
        return exit_status.DAMAGED, str(error)
    # By name: without PySpark the class cannot be imported.
    if not _is_of_spark(error):
        return None
    text, is_damage = plain_error(str(error))
    return (exit_status.DAMAGED if is_damage else exit_status.UNUSABLE), text


def _is_of_spark(error: Exception) -> bool:
    return any(kind.__module__.startswith(("pyspark.", "py4j.")) for kind in type(error).__mro__)

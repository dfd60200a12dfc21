"""The exit status for each error, in one place for every command line of the journal.

0    done
1    the data is damaged, or a check failed
2    wrong usage, or input that cannot be read; one line, no traceback
130  interrupted
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, TypeAlias

import click

from journal.commands.output import say
from journal.errors import JournalDamaged, JournalError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["DAMAGED", "UNUSABLE", "Failure", "attempt", "run"]

# An exit status, and the line that says why.
Failure: TypeAlias = "tuple[int, str]"

DAMAGED = 1
UNUSABLE = 2
INTERRUPTED = 130


def run(
    command: click.Command,
    name: str,
    arguments: Sequence[str] | None = None,
    classify: Callable[[Exception], Failure | None] = lambda error: None,
) -> int:
    """Run a command line; the exit status.

    Args:
        command: what is run.
        name: that it was called by.
        arguments: the words behind it; None takes the process's.
        classify: of errors that the journal does not know; None leaves one to it.
    """

    def invoke() -> object:
        # Not command.main(): that ends the process by itself when the reader of a pipe has gone.
        words = list(sys.argv[1:] if arguments is None else arguments)
        with command.make_context(name, words) as context:
            return command.invoke(context)

    if hasattr(sys.stdout, "reconfigure"):
        # A body may hold any text, and a terminal of any locale has to take it.
        sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace")
    return attempt(invoke, name, classify)


def attempt(
    action: Callable[[], object],
    name: str,
    classify: Callable[[Exception], Failure | None] = lambda error: None,
) -> int:
    """Run a command's function; returns its exit status.

    Args:
        action: what is done.
        name: precedes the line that says what went wrong.
        classify: as of run().
    """
    try:
        result = action()
        sys.stdout.flush()
    except click.exceptions.Exit as end:
        return end.exit_code
    except BrokenPipeError:
        # The reader has what it wanted, as in `| head`. What is still buffered must not complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except Exception as error:
        failure = classify(error) or _classify(error)
        if failure is None:
            raise
        status, text = failure
        say(f"{name}: {text}")
        return status
    return result if isinstance(result, int) else 0


def _classify(error: Exception) -> Failure | None:
    if isinstance(error, click.ClickException):
        return UNUSABLE, error.format_message()
    if isinstance(error, JournalDamaged):
        return DAMAGED, str(error)
    if isinstance(error, JournalError | OSError):
        return UNUSABLE, _line(error)
    return None


def _line(error: Exception) -> str:
    """One line: an OSError without its number, and without a name that the text has already."""
    if isinstance(error, OSError) and error.strerror:
        name = str(error.filename or "")
        return error.strerror if name in error.strerror else f"{name}: {error.strerror}"
    return " ".join(str(error).split())

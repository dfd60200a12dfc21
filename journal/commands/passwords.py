"""How the commands get a password: an option, the environment, or a question on a terminal."""

from __future__ import annotations

import sys

import click

__all__ = ["PASSWORD_VARIABLE", "asked_password"]

PASSWORD_VARIABLE = "QUIVER_PASSWORD"


def asked_password(given: str | None, what: str) -> str:
    """The password that was given, else the one that the user types at the terminal.

    Raises:
        click.UsageError: neither, or an empty one.
    """
    if given == "":
        raise click.UsageError(f"{what}: it is empty")
    if given is not None:
        return given
    if not sys.stdin.isatty():
        raise click.UsageError(f"{what}: give --password, or {PASSWORD_VARIABLE}")
    # click asks again for as long as the answer is empty.
    answer: str = click.prompt(what, hide_input=True, confirmation_prompt=True, err=True)
    return answer

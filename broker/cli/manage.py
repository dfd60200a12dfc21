"""`broker manage`: any operation or attribute of a running broker's management."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, NoReturn

import click

from broker.cli.connect import connected, connecting
from broker.cli.exit_status import REFUSED
from broker.client import BrokerRefused
from journal.commands.output import example, say

if TYPE_CHECKING:
    from broker.client import Session

__all__ = ["manage"]

# How errors begin that say: an operation of that name and these arguments is missing, or such an
# attribute is. The last one is what Artemis says of any attribute that it cannot read.
_UNKNOWN: Final = ("AMQ229069", "AMQ229068", "Problem while retrieving attribute")
# Beginnings of operations that ask and do nothing: false is their answer.
_QUESTIONS: Final = ("is", "get")


@click.command(epilog=example("broker manage queue.orders listConsumersAsJSON"))
@connecting
@click.argument("resource")
@click.argument("name")
@click.argument("arguments", nargs=-1)
@click.option("--json", "is_json", is_flag=True, help="The result as one line of JSON.")
def manage(
    url: str,
    user: str | None,
    password: str | None,
    resource: str,
    name: str,
    arguments: tuple[str, ...],
    *,
    is_json: bool,
) -> int:
    """Call any operation of a running broker, or read an attribute.

    RESOURCE is `broker`, `queue.NAME`, `address.NAME` or another of the guide's; NAME is that of
    the operation or attribute. An argument is JSON where that fits the operation (5, true, null,
    '{"a": 1}'), else a text; '"5"' is always a text. A negative number stands behind `--`.

    The exit status is 1 if an operation answers false. One that asks (`is…`, `get…`) may do so.
    """
    with connected(url, user, password) as session:
        result, is_operation = _asked(session, resource, name, arguments)
    _show(result, is_json=is_json)
    is_undone = result is False and is_operation and not name.startswith(_QUESTIONS)
    return REFUSED if is_undone else 0


def _asked(
    session: Session, resource: str, name: str, arguments: tuple[str, ...]
) -> tuple[object, bool]:
    """Give the result, and whether it is that of an operation."""
    try:
        if arguments:
            return session.manage(resource, name, *map(_value, arguments), timeout_s=None), True
        return session.attribute(resource, name), False
    except BrokerRefused as error:
        if not str(error).startswith(_UNKNOWN):
            raise
        # Nothing was done: it may be an operation without arguments, or one that takes texts.
        return session.manage(resource, name, *arguments, timeout_s=None), True


def _value(argument: str) -> object:
    """What an argument means.

    >>> _value("5"), _value('"5"'), _value("NaN"), _value("colour = 'red'")
    (5, '5', 'NaN', "colour = 'red'")
    """
    try:
        value: object = json.loads(argument, parse_constant=_no_number)
    except ValueError:
        return argument
    return value


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is not of JSON")


def _show(result: object, *, is_json: bool) -> None:
    if is_json:
        click.echo(json.dumps(result, ensure_ascii=False))
    elif result is None:
        say("done")
    elif isinstance(result, str):
        click.echo(result)
    else:
        click.echo(json.dumps(result, ensure_ascii=False, indent=2))

"""Connection options shared by all commands that talk to a running broker: URL, user, password."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from broker.client import AckMode, Client
from journal.commands.passwords import PASSWORD_VARIABLE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from broker.client import Session

__all__ = ["URL_DEFAULT", "Destination", "DestinationType", "connected", "connecting"]

URL_DEFAULT: Final = "tcp://localhost:61616"


def connecting(command: Callable[..., object]) -> Callable[..., object]:
    """Give a command the options `url`, `user` and `password`."""
    for option in (
        click.option(
            "--password", envvar=PASSWORD_VARIABLE, show_envvar=True, help="Password of the user."
        ),
        click.option("--user", help="Log in as this user; anonymous if absent."),
        click.option(
            "--url", default=URL_DEFAULT, show_default=True, help="Connection URI of the broker."
        ),
    ):
        command = option(command)
    return command


@contextlib.contextmanager
def connected(
    url: str,
    user: str | None,
    password: str | None,
    mode: AckMode = AckMode.AUTO,
    **options: Any,  # noqa: ANN401 - those of ClientOptions.
) -> Iterator[Session]:
    """Give a session of a client that is closed behind the block.

    Args:
        url: of the broker.
        user: to log in as; None for an anonymous client.
        password: of that user.
        mode: of the session.
        **options: of the client.

    Raises:
        click.ClickException: the URL is wrong.
        ClientError: no broker is reachable, or it refuses; the command ends with status 1.
    """
    try:
        if user is not None:
            options |= {"user": user, "password": password}
        client = Client(url, **options)
    except ValueError as error:
        raise click.ClickException(f"--url: {error}") from None
    with client, client.session(mode) as session:
        yield session


class Destination(NamedTuple):
    """Where messages go to or come from.

    Attributes:
        name: of the address.
        is_topic: every subscription gets a message, not one queue.
    """

    name: str
    is_topic: bool


class DestinationType(click.ParamType):  # type: ignore[type-arg]  # Generic only since click 8.3.
    """`queue://NAME`, `topic://NAME`, or the name of a queue alone."""

    name = "destination"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> Destination:
        """Read it."""
        if isinstance(value, Destination):
            return value
        text = str(value)
        kind, separator, name = text.partition("://")
        if not separator:
            kind, name = "queue", text
        if kind not in ("queue", "topic") or not name:
            self.fail(f"{text!r} is neither queue://NAME nor topic://NAME", param, ctx)
        return Destination(name, kind == "topic")

"""`broker user`: the users of an instance, whether it runs or not."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from broker.cli.instance import INSTANCE, users_of
from journal.commands.output import example, say
from journal.commands.passwords import PASSWORD_VARIABLE, asked_password

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["user"]

PASSWORD = click.option(
    "--password", envvar=PASSWORD_VARIABLE, show_envvar=True, help="Asked for if it is not given."
)
ROLES = click.option("--role", "roles", multiple=True, help="Role of the user; repeatable.")
PLAINTEXT = click.option("--plaintext", is_flag=True, help="Keep the password in the clear.")


@click.group(
    no_args_is_help=False, epilog=example("broker user add my-broker --user guest --role readers")
)
def user() -> None:
    """List and change the users of an instance.

    A running broker sees a change at the next login.
    """


@user.command(epilog=example("broker user add my-broker --user guest --role readers"))
@click.argument("instance", type=INSTANCE)
@click.option("--user", "name", required=True, help="The new name.")
@PASSWORD
@ROLES
@PLAINTEXT
def add(
    instance: Path, name: str, password: str | None, roles: tuple[str, ...], *, plaintext: bool
) -> None:
    """Add a user."""
    users = users_of(instance)
    users.add(name, asked_password(password, f"Password of {name}"), roles, plaintext=plaintext)
    say(f"added: {name}")


@user.command("list", epilog=example("broker user list my-broker --json"))
@click.argument("instance", type=INSTANCE)
@click.option("--user", "name", help="Only this user.")
@click.option("--json", "is_json", is_flag=True, help="One JSON object a line.")
def list_users(instance: Path, name: str | None, *, is_json: bool) -> None:
    """Show users and their roles."""
    for found in users_of(instance).list():
        if name not in (None, found.name):
            continue
        roles = sorted(found.roles)
        if is_json:
            click.echo(json.dumps({"user": found.name, "roles": roles}))
        else:
            click.echo(f"{found.name} ({','.join(roles)})")


@user.command(epilog=example("broker user reset my-broker --user guest --password new"))
@click.argument("instance", type=INSTANCE)
@click.option("--user", "name", required=True, help="Whose password or roles change.")
@PASSWORD
@ROLES
@PLAINTEXT
def reset(
    instance: Path, name: str, password: str | None, roles: tuple[str, ...], *, plaintext: bool
) -> None:
    """Change a user's password, or roles, or both."""
    users = users_of(instance)
    if password is not None or not roles:
        password = asked_password(password, f"New password of {name}")
    users.reset(name, password=password, roles=roles or None, plaintext=plaintext)
    say(f"changed: {name}")


@user.command(epilog=example("broker user rm my-broker --user guest"))
@click.argument("instance", type=INSTANCE)
@click.option("--user", "name", required=True, help="Who is removed.")
def rm(instance: Path, name: str) -> None:
    """Remove a user."""
    users_of(instance).remove(name)
    say(f"removed: {name}")

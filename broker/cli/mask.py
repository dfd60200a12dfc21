"""`broker mask`: a password as it is written into a configuration or a users file."""

from __future__ import annotations

import json

import click

from broker.security.masking import mask_text
from journal.commands.output import example
from journal.commands.passwords import PASSWORD_VARIABLE, asked_password
from journal.masking import KEY_VARIABLE

__all__ = ["mask"]


@click.command(epilog=example("broker mask --hash --password secret"))
@click.argument("text", required=False)
@click.option("--password", envvar=PASSWORD_VARIABLE, help="The password, in place of TEXT.")
@click.option("--hash", "is_hash", is_flag=True, help="A salted hash, for a users file.")
@click.option("--key", envvar=KEY_VARIABLE, show_envvar=True, help="Key of the cipher.")
@click.option("--json", "is_json", is_flag=True, help="One JSON object.")
def mask(
    text: str | None, password: str | None, key: str | None, *, is_hash: bool, is_json: bool
) -> None:
    """Mask a password as it is written in ENC().

    Without TEXT the password is asked for. A mask keeps a password from being read over somebody's
    shoulder. Everyone who has the file and the key has the password.
    """
    plain = asked_password(text if text is not None else password, "Password")
    try:
        masked = mask_text(plain, key=key, one_way=is_hash)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    if is_json:
        click.echo(json.dumps({"masked": masked, "written": f"ENC({masked})"}))
    else:
        click.echo(f"ENC({masked})")

"""Where the files of an instance are."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from broker.config.errors import ConfigError
from broker.security.login_config import read_login
from broker.storage.layout import BROKER_XML

if TYPE_CHECKING:
    from broker.security import Users

__all__ = ["INSTANCE", "users_of"]

INSTANCE = click.Path(exists=True, file_okay=False, path_type=Path)


def users_of(instance: Path) -> Users:
    """The users of an instance.

    Raises:
        ConfigError: the folder is not an instance.
    """
    if not (instance / BROKER_XML).is_file():
        raise ConfigError(f"{instance}: no instance: it has no {BROKER_XML}")
    try:
        return read_login(instance / "etc").users
    except ValueError as error:
        raise ConfigError(str(error)) from None

"""The files of a new instance, checked in a temporary folder before any is put in its place."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from broker.config import load
from broker.config.bootstrap import BOOTSTRAP_XML, render_bootstrap_xml
from broker.config.errors import ConfigError
from broker.config.template import render_broker_xml, render_login_config
from broker.options.from_config import broker_options, security_of
from broker.security.login_config import LOGIN_CONFIG
from broker.security.users import ROLES_FILE, USERS_FILE, UserError, Users, write_private
from broker.storage.layout import BROKER_XML
from journal.errors import OptionError

if TYPE_CHECKING:
    from broker.config import BrokerConfig
    from broker.config.template import InstanceOptions

__all__ = ["InstanceFiles"]

# broker.xml last: with it a folder is an instance.
_FILES: Final = (USERS_FILE, ROLES_FILE, LOGIN_CONFIG, BOOTSTRAP_XML, BROKER_XML.name)


class InstanceFiles:
    """The texts of etc/, of an instance that a broker can run.

    Args:
        options: what `broker create` was asked for.
        user: the first one.
        password: of that user, in the clear.
        is_anonymous: anonymous clients log in as that user.
        web: host and port of metrics and health; None without.

    Raises:
        click.UsageError: the broker would refuse it. Nothing was left behind.
    """

    def __init__(
        self,
        options: InstanceOptions,
        user: str,
        password: str,
        *,
        is_anonymous: bool,
        web: tuple[str, int] | None,
    ) -> None:
        guest_user = user if is_anonymous else None
        texts = {
            USERS_FILE: "# user = password, or user = ENC(hash): see `broker user`\n",
            ROLES_FILE: "# role = user,user\n",
            LOGIN_CONFIG: render_login_config(guest_user=guest_user, guest_role=options.role),
            BROKER_XML.name: render_broker_xml(options),
        }
        if web is not None:
            texts[BOOTSTRAP_XML] = render_bootstrap_xml(*web)
        with tempfile.TemporaryDirectory(prefix="quiver-create-") as folder:
            etc = Path(folder) / BROKER_XML.parent
            etc.mkdir()
            try:
                for name, text in texts.items():
                    write_private(etc / name, text)
                Users.of_instance(etc).add(user, password, [options.role])
                config = load(etc / BROKER_XML.name)
                broker_options(config)
                security_of(config)
                _check_database(config)
            except (ConfigError, OptionError, UserError) as error:
                said = str(error).replace(f"{etc}/", "")
                raise click.UsageError(f"no broker could run with these files: {said}") from None
            self._texts = {name: (etc / name).read_text(encoding="utf-8") for name in texts}

    def write(self, directory: Path) -> None:
        """Put them below a folder, which is an instance then; its data stay."""
        etc = directory / BROKER_XML.parent
        etc.mkdir(parents=True, exist_ok=True)
        (directory / "data").mkdir(mode=0o700, exist_ok=True)
        for name in _FILES:
            if name in self._texts:
                write_private(etc / name, self._texts[name])
            else:
                (etc / name).unlink(missing_ok=True)


def _check_database(config: BrokerConfig) -> None:
    """See that the URL is understood and its driver there. Nothing is connected."""
    persistence = config.persistence
    if persistence.database is not None:
        from jdbcstore.database import Database

        Database(persistence.database_options()).close()

"""A broker in this process, for one command alone, on data that no other broker runs on.

It listens on a port of the loopback address that the system chooses. Clients need a password that
is made for this command. Nothing in it happens by the clock: no message expires, no queue goes.
"""

from __future__ import annotations

import os
import secrets
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import click

from broker.client.blocking.runner import Runner
from broker.config import load
from broker.errors import BrokerError
from broker.options import BrokerOptions, ManagementOptions
from broker.options.from_config import broker_options
from broker.options.layout import layout_of
from broker.security import SecurityManager
from broker.security.facade import SecurityFacade
from broker.server.server import Broker
from broker.storage.layout import BROKER_XML
from broker.storage.open import FileStoreOptions, bindings_options, messages_options
from broker.transport.acceptor import AcceptorOptions

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["broker_on"]

HOST: Final = "127.0.0.1"
# The cluster's own user may do everything.
USER: Final = "data-import"


@contextmanager
def broker_on(folder: Path) -> Iterator[tuple[str, str, str]]:
    """Run the broker of an instance or a data folder; give the URL, user and password for it.

    Raises:
        click.ClickException: it cannot be started.
        JournalLocked: another one runs on it.
        JournalError: its storage fails.
    """
    # As `broker run`: other users of the machine must not read what is stored.
    os.umask(0o027)
    password = secrets.token_urlsafe()
    security = SecurityManager(None, cluster_user=USER, cluster_password=password)
    broker = Broker(_options(folder), security=SecurityFacade(security))
    runner = Runner("broker")
    try:
        try:
            runner.wait(broker.start())
        except BrokerError as error:
            raise click.ClickException(str(error)) from None
        try:
            yield f"tcp://{HOST}:{broker.acceptors[0].port}", USER, password
        finally:
            runner.wait(broker.stop())
    finally:
        runner.close()


def _options(folder: Path) -> BrokerOptions:
    if (folder / BROKER_XML).is_file():
        options = broker_options(load(folder / BROKER_XML, lenient=True))
        if options.store is None:
            raise click.ClickException(f"{folder}: it keeps nothing (persistence-enabled)")
    else:
        layout = layout_of(folder)
        options = BrokerOptions(
            store=FileStoreOptions(
                bindings=bindings_options(layout.bindings),
                messages=messages_options(layout.messages),
                large_messages=layout.large_messages,
                paging=layout.paging,
            )
        )
    return replace(
        options,
        acceptors=(AcceptorOptions(host=HOST, port=0),),
        management=ManagementOptions(),
        message_expiry_scan_period=-1,
        address_queue_scan_period=-1,
        deletes_unconfigured=False,
        bridges=None,
        graceful_shutdown_timeout=0,
        web=(),
    )

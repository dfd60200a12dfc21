"""Artemis's broker and ours on one folder, in turn."""

import asyncio
import contextlib

from broker.options import BrokerOptions
from broker.server.server import Broker
from broker.storage.open import FileStoreOptions, bindings_options, messages_options
from broker.transport.acceptor import AcceptorOptions
from tests.interop.artemis_broker import ArtemisBroker


@contextlib.asynccontextmanager
async def ours(data):
    """Our broker on a folder of data that is Artemis's, too."""
    store = FileStoreOptions(
        bindings=bindings_options(data / "bindings"),
        messages=messages_options(data / "journal", journal_type="NIO"),
        large_messages=data / "large-messages",
        paging=data / "paging",
    )
    acceptors = (AcceptorOptions(host="127.0.0.1", port=0),)
    broker = Broker(BrokerOptions(store=store, acceptors=acceptors))
    await broker.start()
    try:
        yield broker.acceptors[0].port
    finally:
        await broker.stop()


class Artemis(ArtemisBroker):
    """One whose data another broker reads when it is stopped."""

    @property
    def data(self):
        return self._folder / "data"

    @contextlib.asynccontextmanager
    async def serving(self):
        await asyncio.to_thread(self.start)
        try:
            yield self.port
        finally:
            await asyncio.to_thread(self.stop)

"""A broker inside a Python program: in its event loop, or in a thread of its own.

    async with EmbeddedBroker.in_folder("data") as broker:      # asyncio
        ... AsyncClient(f"tcp://127.0.0.1:{broker.port}")

    with EmbeddedBroker.in_folder("data") as broker:            # threads
        ... Client(f"tcp://127.0.0.1:{broker.port}")

`broker.server.server.Broker` has all of it; here is what a program would write around that each
time.
docs/guide/embedding.md has both at length.
"""

from __future__ import annotations

import asyncio
import threading
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Self

from broker.options import BrokerOptions
from broker.options.file import ConfigurationFile
from broker.options.from_config import broker_options, security_of
from broker.server.server import Broker
from broker.storage.layout import BRIDGES
from broker.storage.open import FileStoreOptions, bindings_options, messages_options
from broker.transport.acceptor import AcceptorOptions
from journal.errors import JournalError

if TYPE_CHECKING:
    import os
    from types import TracebackType

    from broker.ports import Security
    from broker.server.reload import ConfigurationSource

__all__ = ["EmbeddedBroker"]


class EmbeddedBroker:
    """One broker, started by the block that it is used in and stopped at its end.

    Args:
        options: what it is to be; None keeps nothing and listens on a port that the system chooses.
        security: who may do what; None lets everybody do everything.
        configuration: what is read again while it runs; None is never.

    Attributes:
        broker: inside the block; its parts, sessions and management are for its own thread.
    """

    broker: Broker

    def __init__(
        self,
        options: BrokerOptions | None = None,
        *,
        security: Security | None = None,
        configuration: ConfigurationSource | None = None,
    ) -> None:
        self.options = options or BrokerOptions(acceptors=(_listener("127.0.0.1", 0),))
        self._security = security
        self._configuration = configuration
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping: asyncio.Event | None = None
        self._started = threading.Event()
        self._failure: BaseException | None = None

    @classmethod
    def in_folder(
        cls, folder: str | os.PathLike[str], *, host: str = "127.0.0.1", port: int = 0
    ) -> Self:
        """One that keeps its journals below a folder, with every other option's default.

        Args:
            folder: made where it is missing; no other broker may use it at the same time.
            host: where it listens.
            port: 0 lets the system choose; see `port`.
        """
        data = Path(folder)
        store = FileStoreOptions(
            bindings=bindings_options(data / "bindings"),
            messages=messages_options(data / "journal"),
            large_messages=data / "large-messages",
            paging=data / "paging",
        )
        return cls(BrokerOptions(store=store, acceptors=(_listener(host, port),)))

    @classmethod
    def from_xml(cls, path: str | os.PathLike[str], *, lenient: bool = False) -> Self:
        """One that a broker.xml describes, with its users; it is read again when it changes.

        Args:
            path: of the file; relative paths in it are below the folder that has `etc/`, or the
                file's own folder where it is elsewhere.
            lenient: unknown names in it are logged, not refused.

        Raises:
            ConfigError: it is not to be read, or says what cannot be.
        """
        file = ConfigurationFile(Path(path), lenient=lenient)
        config = file.load()
        options = replace(broker_options(config), jms_bridges=Path(path).parent / BRIDGES.name)
        return cls(options, security=security_of(config), configuration=file)

    @property
    def port(self) -> int:
        """Where its first acceptor listens."""
        return self.broker.acceptors[0].port

    # --- in the caller's event loop ---------------------------------------------------------------

    async def __aenter__(self) -> Self:
        """Start it in the running loop, whose handler of exceptions it becomes.

        Raises:
            JournalError: the storage is in use, damaged, or cannot be reached.
            BrokerError: the options cannot be; a port is taken.
        """
        self.broker = Broker(
            self.options, security=self._security, configuration=self._configuration
        )
        await self.broker.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.broker.stop()

    # --- in a thread of its own -------------------------------------------------------------------

    def __enter__(self) -> Self:
        """Start it in a thread; returns once clients may come. Errors as in asyncio."""
        self._thread = threading.Thread(target=self._run, name="broker", daemon=True)
        self._thread.start()
        self._started.wait()
        if self._failure is not None:
            self._thread.join()
            raise self._failure
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._thread is not None
        assert self._loop is not None
        assert self._stopping is not None
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join()
        if self._failure is not None:
            raise self._failure

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as error:  # noqa: BLE001 - raised by the thread that asked.
            # Whatever it is, the thread that asked for the broker has to hear of it.
            self._failure = error
        finally:
            self._started.set()

    async def _serve(self) -> None:
        self._loop, self._stopping = asyncio.get_running_loop(), asyncio.Event()
        try:
            async with self:
                self._started.set()
                ends = [
                    asyncio.ensure_future(self._stopping.wait()),
                    asyncio.ensure_future(self.broker.failed()),
                ]
                await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
                for end in ends:
                    end.cancel()
        except JournalError:
            # What a failed storage raises when it is closed is its failure once more.
            if self.broker.failure is None:
                raise
        # The broker has stopped, as `broker run` does; the block goes on until its end, which
        # raises the failure.
        if self.broker.failure is not None:
            await self._stopping.wait()
            raise self.broker.failure


def _listener(host: str, port: int) -> AcceptorOptions:
    return AcceptorOptions(host=host, port=port)

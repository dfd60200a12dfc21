"""A JMS bridge in a program: `JMSBridge(...)`, used from any thread."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, Unpack

from broker.bridges.jms.blocking.own_thread import OneCallEach
from broker.bridges.jms.blocking.providers import adapted
from broker.bridges.jms.connecting import Factories
from broker.bridges.jms.control import JMSBridgeControl
from broker.bridges.jms.coordinator import Coordinator
from broker.bridges.jms.decision_log import DecisionLog
from broker.bridges.jms.engine import Engine
from broker.bridges.jms.errors import BridgeConfigError
from broker.bridges.jms.options import JMSBridgeOptions
from broker.bridges.jms.state import BridgeState
from broker.client.blocking.runner import Runner
from broker.environment import Environment
from broker.security.masking import Masking
from broker.storage.open import transaction_log_store

if TYPE_CHECKING:
    import os
    from types import TracebackType

    from broker.bridges.jms.control import ManagementServer
    from broker.bridges.jms.options import BridgeSettings
    from broker.bridges.jms.providers import ConnectionFactoryFactory, DestinationFactory
    from broker.bridges.jms.transactions import TransactionManager

__all__ = ["JMSBridge"]

_PASSWORDS = ("source_password", "target_password")


class JMSBridge:
    """Moves messages from a source to a target, in a thread of its own.

        bridge = JMSBridge(
            lambda: CoreConnectionFactory("tcp://a:61616"),
            lambda: CoreConnectionFactory("tcp://b:61616"),
            lambda: Destination.queue("orders"),
            lambda: Destination.queue("orders"),
            quality_of_service=QualityOfService.ONCE_AND_ONLY_ONCE,
            max_batch_size=100,
            max_batch_time=50,
        )
        with bridge:
            ...

    May be used from any thread but its own. Factories are called before each connection, in
    threads of their own: one that hangs delays nothing else.

    Args:
        source_connection_factory_factory: gives the connection factory of the source.
        target_connection_factory_factory: gives that of the target. The same callable, or an equal
            factory with the same user, makes both one provider: messages move in one local
            transaction, with any quality of service.
        source_destination_factory_factory: gives the destination that is consumed from.
        target_destination_factory_factory: gives the destination that is sent to.
        transaction_manager: for ONCE_AND_ONLY_ONCE by two-phase commit; None is the bridge's own,
            which needs `transaction_log`.
        transaction_log: folder of the decisions of the bridge's own transaction manager; no other
            bridge may use it.
        mbean_server: where the bridge is managed; needs `object_name`.
        object_name: its name there, which nothing else has.
        environment: clock and ids; None is the machine's.
        **parameters: all others; see `JMSBridgeOptions`. Passwords may be masked: ENC(...).

    Attributes:
        options: the parameters.
        control: what management has of it.

    Raises:
        BridgeConfigError: a parameter is wrong, or parameters do not go together.
    """

    def __init__(
        self,
        source_connection_factory_factory: ConnectionFactoryFactory,
        target_connection_factory_factory: ConnectionFactoryFactory,
        source_destination_factory_factory: DestinationFactory,
        target_destination_factory_factory: DestinationFactory,
        *,
        transaction_manager: TransactionManager | None = None,
        transaction_log: str | os.PathLike[str] | None = None,
        mbean_server: ManagementServer | None = None,
        object_name: str | None = None,
        environment: Environment | None = None,
        **parameters: Unpack[BridgeSettings],
    ) -> None:
        self.options = _options(parameters)
        self._factories = Factories(
            source=_callable(
                "source_connection_factory_factory", source_connection_factory_factory
            ),
            target=_callable(
                "target_connection_factory_factory", target_connection_factory_factory
            ),
            source_destination=_callable(
                "source_destination_factory_factory", source_destination_factory_factory
            ),
            target_destination=_callable(
                "target_destination_factory_factory", target_destination_factory_factory
            ),
        )
        if transaction_manager is not None and transaction_log is not None:
            raise BridgeConfigError(
                "transaction_log is the log of the bridge's own transaction manager: give it or "
                "transaction_manager, not both"
            )
        if (mbean_server is None) != (object_name is None):
            raise BridgeConfigError("mbean_server and object_name need each other")
        self._manager = transaction_manager
        self._log_folder = None if transaction_log is None else Path(transaction_log)
        self._mbean_server, self._object_name = mbean_server, object_name
        self._environment = environment or Environment()
        self._runner: Runner | None = None
        self._engine: Engine | None = None
        self._log: DecisionLog | None = None
        self._last: dict[str, object] = {}
        # Held by start() and stop(): of two at once the second one finds what the first has done.
        self._changing = threading.RLock()
        self.control = JMSBridgeControl(self)

    # --- lifecycle ----------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to connect and move; returns at once. Idempotent while it runs.

        Raises:
            BridgeConfigError: another bridge has the object_name.
            JournalError: the transaction log cannot be opened.
        """
        with self._changing:
            if self._engine is None or not self._engine.progress.is_running:
                self.stop()
                self._start()

    def _start(self) -> None:
        manager = self._manager
        if manager is None and self._log_folder is not None:
            self._log = DecisionLog(transaction_log_store(self._log_folder), self._environment.ids)
            self._log.open()
            manager = Coordinator(self._log, self.options.name, self._environment.clock)
        try:
            self._register()
        except BaseException:
            self._close_log()
            raise
        runner = self._runner = Runner(f"jms-bridge-{self.options.name}")

        def begin() -> Engine:
            engine = Engine(
                self.options,
                self._factories,
                clock=self._environment.clock,
                call=OneCallEach(),
                adapt=partial(adapted, threads={}),
                transactions=manager,
            )
            engine.start()
            return engine

        self._engine = runner.call(begin)

    def pause(self) -> None:
        """Move nothing until `resume()`.

        Returns when nothing is on its way any more, or failover_timeout has passed.
        """
        runner, engine = self._running()

        async def rest() -> None:
            engine.pause()
            with suppress(TimeoutError):
                async with asyncio.timeout(self.options.failover_timeout_s):
                    await engine.wait_until_idle()

        runner.wait(rest())

    def resume(self) -> None:
        """Move messages again."""
        runner, engine = self._running()
        runner.call(engine.resume)

    def stop(self) -> None:
        """Stop; a batch on its way is waited for, up to failover_timeout. Idempotent."""
        with self._changing:
            runner, self._runner = self._runner, None
            engine, self._engine = self._engine, None
            if runner is None or engine is None:
                return
            try:
                runner.wait(engine.stop())
            finally:
                self._last = engine.snapshot()
                runner.close()
                self._close_log()
                if self._mbean_server is not None and self._object_name is not None:
                    self._mbean_server.unregister(self._object_name)

    def _running(self) -> tuple[Runner, Engine]:
        if self._runner is None or self._engine is None:
            raise BridgeConfigError(f"JMS bridge {self.options.name} was not started")
        return self._runner, self._engine

    def _register(self) -> None:
        if self._mbean_server is not None and self._object_name is not None:
            self._mbean_server.register(self._object_name, self.control)

    def _close_log(self) -> None:
        found, self._log = self._log, None
        if found is not None:
            found.close()

    def __enter__(self) -> Self:
        """Start it."""
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    # --- what it does -------------------------------------------------------------------------

    @property
    def state(self) -> BridgeState:
        """What it does."""
        return BridgeState.STOPPED if self._engine is None else self._engine.state

    @property
    def is_started(self) -> bool:
        """Whether it moves messages: connected, and not paused."""
        return self.state is BridgeState.STARTED

    @property
    def why(self) -> str | None:
        """Why no message moves, in words; None if messages do."""
        return "not started" if self._engine is None else self._engine.why()

    def snapshot(self) -> dict[str, Any]:
        """Give name, state, why, mode, counters and lag, as JSON has them."""
        if self._engine is not None:
            return dict(self._engine.snapshot())
        return {**self._last, "name": self.options.name, "state": "stopped", "why": "not started"}

    def wait_until(self, *states: BridgeState, timeout_s: float) -> bool:
        """Wait for one of these states; False if it did not come in time.

        Args:
            *states: any of them ends the wait.
            timeout_s: seconds at most.
        """
        runner, engine = self._running()

        async def wait() -> bool:
            try:
                async with asyncio.timeout(timeout_s):
                    while engine.state not in states:  # noqa: ASYNC110 - for programs and tests.
                        await asyncio.sleep(_LOOK_S)
            except TimeoutError:
                return False
            return True

        return runner.wait(wait())

    def __repr__(self) -> str:
        """Its name and what it does."""
        return f"<JMSBridge {self.options.name}: {self.state.value}>"


_LOOK_S = 0.01


def _options(parameters: BridgeSettings) -> JMSBridgeOptions:
    plain: dict[str, Any] = dict(parameters)
    unknown = sorted(set(plain) - set(JMSBridgeOptions.__dataclass_fields__))
    if unknown:
        raise BridgeConfigError(f"a JMS bridge has no parameter {unknown[0]!r}")
    for name in _PASSWORDS:
        if plain.get(name) is not None:
            plain[name] = _unmasked(name, plain[name])
    return JMSBridgeOptions(**plain)


def _unmasked(name: str, text: str) -> str:
    try:
        return Masking.configured(None, mask_password=None).unmask(text)
    except ValueError as error:
        raise BridgeConfigError(f"{name} cannot be unmasked: {error}") from error


def _callable(name: str, value: Any) -> Any:  # noqa: ANN401 - whatever was given.
    if not callable(value):
        raise BridgeConfigError(f"{name} is {value!r}; it must be callable")
    return value

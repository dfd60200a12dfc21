"""A node under a service manager: a process that ends by itself is started again.

Subclasses say what the process runs, and why it ends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from broker.bridges.jms.errors import BridgeError
from broker.errors import BrokerError
from journal.errors import JournalError
from tests.sim.node import Node

if TYPE_CHECKING:
    from tests.sim.loop import Process

RESTART_S = 1.0


class ServedNode(Node):
    """See the module's text.

    Attributes:
        exits: why processes of it ended by themselves.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.exits: list[Exception] = []
        self._is_wanted = False

    async def start(self) -> None:
        """Start a process; returns at once."""
        self._launch()

    def _launch(self) -> None:
        assert self.process is None, "it runs"
        self._is_wanted = True
        self.process_number += 1
        process = self.process = self.loop.process(self.name, self.host)
        self.loop.note(b"start %b" % self.name.encode())
        self.ended = self.loop.create_future()
        process.spawn(self._serve(process))

    async def _serve(self, process: Process) -> None:
        error: Exception
        try:
            error = await self._run(process)
        except (JournalError, BrokerError, BridgeError) as failure:
            error = failure
        self.loop.call_in(self.loop.director, self.loop.time(), self._exited, process, error)

    async def _run(self, process: Process) -> Exception:
        """What the process does, until it ends by itself; why it does."""
        raise NotImplementedError

    def _exited(self, process: Process, error: Exception) -> None:
        if self.process is process:
            self.exits.append(error)
            self.loop.note(b"exit %b" % self.name.encode())
            self._end()
            self.storage.crash(is_power=False)
            self.loop.call_later(RESTART_S, self._start_again)

    def _start_again(self) -> None:
        if self._is_wanted and self.process is None and self.host.is_up:
            self._launch()

    async def stop(self) -> None:
        """Stop what runs in good order, and end its process."""
        self._is_wanted = False
        if not self._is_there:
            # Its process, if there is one, has not come so far.
            self.kill()
            return
        await super().stop()
        # What goes on beside it ends with the process.
        self.storage.crash(is_power=False)

    @property
    def _is_there(self) -> bool:
        """Whether there is something to stop."""
        return self.broker is not None

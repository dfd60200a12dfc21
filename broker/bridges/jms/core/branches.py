"""Branches of distributed transactions on their way at once, in one session of the Core client.

    send_branch() ─▶ begin · each message · end · prepare ─▶ (all are answered) ─▶ done(None)

Requests do not wait for the answers to earlier ones, which come in the order of the requests. With
the connection everything ends: what a new one of the client sent would belong to no branch.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from broker.bridges.jms.core.batch_messages import fail_without_reply
from broker.bridges.jms.errors import XaError
from broker.protocols.core import packet_xa as xa

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from broker.bridges.jms.core.batch_messages import BatchMessages
    from broker.bridges.jms.message import JMSMessage
    from broker.bridges.jms.providers import Done
    from broker.client.replies import Reply
    from broker.client.session_state import SessionState
    from broker.model.xid import Xid
    from broker.protocols.core.packet import Packet

__all__ = ["Branches", "CoreBranchSender"]

# Begin, end, prepare.
_ANSWERS: Final = 3


@dataclass(slots=True, eq=False)
class _Branch:
    """One whose work has no outcome yet.

    Attributes:
        xid: its name.
        done: is told the outcome.
        missing: answers that are still to come.
    """

    xid: Xid
    done: Done
    missing: int = _ANSWERS


class Branches:
    """The requests of one session about branches.

    Args:
        state: of the session.
        on_failure: called before anything is told of it.
    """

    def __init__(
        self, state: SessionState, on_failure: Callable[[], object] = lambda: None
    ) -> None:
        self._state = state
        self._on_failure = on_failure
        self._open: dict[_Branch, None] = {}
        self._failure: Exception | None = None

    def fail(self, error: Exception) -> None:
        """Ask nothing any more: nothing that was asked has an outcome.

        Args:
            error: why.
        """
        if self._failure is not None:
            return
        self._failure = error
        self._on_failure()
        waiting, self._open = self._open, {}
        for one in waiting:
            one.done(error)

    def begin(self, xid: Xid, done: Done) -> _Branch | None:
        """Begin a branch: what is sent and acknowledged from now on belongs to it.

        Args:
            xid: its name.
            done: with None once it is prepared; with an error it is only to be rolled back.

        Returns:
            For prepare(); None where the session has failed, which `done` was told.
        """
        made = self.expect(xid, done)
        if made is not None:
            self.start(made)
        return made

    def expect(self, xid: Xid, done: Done) -> _Branch | None:
        """Take note of a branch that is begun a little later; as begin() else.

        Args:
            xid: its name.
            done: as for begin().
        """
        return self._noted(_Branch(xid, done))

    def _noted(self, made: _Branch) -> _Branch | None:
        if self._failure is not None:
            made.done(self._failure)
            return None
        self._open[made] = None
        return made

    def start(self, made: _Branch) -> None:
        """Begin what is expected.

        Args:
            made: of expect().
        """
        self._ask(xa.XaStart(made.xid), made)

    def prepare(self, made: _Branch) -> None:
        """End the work for a branch, and prepare it.

        Args:
            made: of begin().
        """
        self._ask(xa.XaEnd(made.xid), made)
        self._ask(xa.XaPrepare(made.xid), made)

    def commit(self, xid: Xid, done: Done) -> None:
        """Commit a branch.

        Args:
            xid: of a prepared one.
            done: with None once that is durable.
        """
        made = self._noted(_Branch(xid, done, missing=1))
        if made is not None:
            self._ask(xa.XaCommit(xid), made)

    def _ask(self, packet: Packet, made: _Branch) -> None:
        if self._failure is not None:
            return
        reply = self._state.channel.call(packet, xa.XaResponse, ahead=True)
        fail_without_reply(reply, self._state, type(packet).__name__, self.fail)
        reply.when_done(partial(self._answered, made))

    def _answered(self, made: _Branch, reply: Reply[Packet]) -> None:
        error = reply.error
        if error is None:
            answer = reply.result()
            assert isinstance(answer, xa.XaResponse), "the channel gives no other"
            if answer.error:
                code = answer.response_code
                error = XaError(code, answer.message or f"XA code {code}")
        made.missing -= 1
        if made in self._open and (error is not None or not made.missing):
            del self._open[made]
            made.done(error)


class CoreBranchSender:
    """Sends batches to one address, each in a branch; see `BranchSender`.

    Args:
        messages: sends over a session for distributed transactions.
    """

    def __init__(self, messages: BatchMessages) -> None:
        self._messages = messages
        messages.open(on_failed=self.fail)
        # Nothing may be sent behind a branch that has not begun.
        self._branches = Branches(messages.state, messages.close)

    def send_branch(self, xid: Xid, messages: Sequence[JMSMessage], done: Done) -> None:
        """Send a batch behind the others; see `BranchSender`."""
        made = self._branches.expect(xid, done)
        if made is None:
            return
        self._messages.call_behind(partial(self._branches.start, made))
        if self._messages.put(messages):
            self._messages.call_behind(partial(self._branches.prepare, made))

    def commit_branch(self, xid: Xid, done: Done) -> None:
        """Commit a branch; see `BranchSender`."""
        self._branches.commit(xid, done)

    def fail(self, error: Exception) -> None:
        """Send nothing any more; no branch has its outcome yet, and none will.

        Args:
            error: why.
        """
        self._branches.fail(error)

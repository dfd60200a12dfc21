"""What has to be durable before a client may be told: one FIFO for the whole broker.

    append ─▶ appended += 1 ─▶ (store) ─▶ durable += 1 ─▶ run_due: callbacks with that number

Every append that asks for a sync carries the same bound method as its `done`, so nothing is made
for it. A store calls them in append order, and behind the last that is due run_due(): once for a
group. The FIFO below is in the order of the calls of after(), and its head waits for the numbers,
one a store, that were current then. So callbacks run in the order they were asked for, whatever
store is slower. Pages are a store of their own here.

A commit record may be appended only once pages are durable. It goes through an Admission: its place
in the FIFO is taken at once, and its numbers are known when it opens.

A callback that raises is a bug, and what it should have done is not done: a message is in no queue,
or an answer not written, though its records are durable. What else follows from that is unknown,
so it ends the broker as a failed store does; the next start has all that is durable.

An acknowledgement that wants no answer is appended without flush_now: it is synced with what comes
next, or when the store's timer says. A caller that waits for a later answer has it flushed now.

An OperationContext is one session's view: what the session itself appended. Where that is durable
already its callbacks run at once, so that a session without persistent work never waits for the
disk on behalf of another one.

Threads: the event loop's alone.
"""

from __future__ import annotations

import logging
import math
from collections import deque
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from journal.errors import JournalError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Admission", "After", "Completions", "OperationContext"]

log = logging.getLogger("broker")

# after(error, *arguments): the error is what ended the store, or None.
After: TypeAlias = "Callable[..., object]"

# So long one proof that the stores are this broker's is good. A clock is read for each answer.
PROOF_S: Final = 0.001
# Until an answer that waits for a proof asks for one again.
_HELD_S: Final = 0.05


def _nothing_waits() -> None:
    """For stores that have no timer."""


def _no_clock() -> float:
    """Without a clock each answer is proved: no difference of this is below PROOF_S."""
    return math.inf


class Completions:
    """Counts appends of the stores, and runs what waits for them.

    Args:
        on_failure: called once with the error that ended a store, or that a callback raised,
            before anybody else is told.
        flush_now: of the store of messages.
        check: sees that the stores are still this broker's, before a success is told, also where
            nothing had to become durable. It raises JournalError if they are not, for good; while
            it gives True, since that is in doubt, answers wait.
        clock: monotonic seconds.

    Attributes:
        call_later: call_later(seconds, callback) of the event loop, once it runs.
    """

    __slots__ = (
        "_check",
        "_clock",
        "_failure",
        "_flush_now",
        "_is_held",
        "_is_running",
        "_on_failure",
        "_proved_s",
        "_waiting",
        "bindings",
        "call_later",
        "messages",
        "pages",
    )

    def __init__(
        self,
        on_failure: Callable[[Exception], object],
        flush_now: Callable[[], object] = _nothing_waits,
        check: Callable[[], object] | None = None,
        clock: Callable[[], float] = _no_clock,
    ) -> None:
        self.messages = Counter(self)
        self.bindings = Counter(self)
        self.pages = Counter(self)
        self._waiting: deque[_Call] = deque()
        self._on_failure = on_failure
        self._flush_now = flush_now
        self._check = check
        self._clock = clock
        self._proved_s = -PROOF_S
        self._failure: Exception | None = None
        self._is_running = False
        self._is_held = False
        self.call_later: Callable[[float, Callable[[], object]], object] | None = None

    @property
    def failure(self) -> Exception | None:
        """What ended a store; from then on no success is reported."""
        return self._failure

    @property
    def is_idle(self) -> bool:
        """Whether all that was appended is durable, and no callback waits."""
        return not self._waiting and self._is_durable()

    def _is_durable(self) -> bool:
        messages, bindings, pages = self.messages, self.bindings, self.pages
        return (
            messages.appended == messages.durable
            and bindings.appended == bindings.durable
            and pages.appended == pages.durable
        )

    def after(self, callback: After, *arguments: object) -> None:
        """Call `callback(error, *arguments)` once all that was appended so far is durable.

        At once where it is, and no callback waits before.
        """
        if self._waiting or not self._is_durable() or not self.may_tell():
            self.wait(None, None, callback, arguments)
        else:
            callback(self._failure, *arguments)

    def wait(
        self,
        context: OperationContext | None,
        admission: Admission | None,
        callback: After,
        arguments: tuple[Any, ...],
    ) -> None:
        """Put a call behind all that wait.

        Args:
            context: whose call it is, counted in its `pending`.
            admission: what is appended when it opens has to be durable too.
            callback: called with the error or None, and `arguments`.
            arguments: for it.
        """
        call = _Call.__new__(_Call)
        call.fill(self, context, admission, callback, arguments)
        self._waiting.append(call)
        if self._failure is not None:
            self.run_due()

    def flush_now(self) -> None:
        """Have what was appended without flush_now synced as soon as can be: a caller waits."""
        messages = self.messages
        if messages.unflushed > messages.durable:
            messages.unflushed = 0
            self._flush_now()

    def after_reap(self) -> None:
        """What a store calls: run_due(), which the compiled form does not give as a value."""
        self.run_due()

    def run_due(self) -> None:
        """Call what is due. A callback may append, and wait, again: it comes behind the others."""
        if self._is_running:
            return
        self._is_running = True
        waiting = self._waiting
        try:
            while waiting:
                call = waiting[0]
                if self._failure is None and not (call.is_due(self) and self.may_tell()):
                    return
                waiting.popleft()
                call.run(self)
        finally:
            self._is_running = False

    def may_tell(self) -> bool:
        """Whether what is due may be told now: a success that is proved, or a failure."""
        if self._check is None or self._failure is not None:
            return True
        now_s = self._clock()
        return now_s - self._proved_s < PROOF_S or self._prove(now_s)

    def _prove(self, now_s: float) -> bool:
        """Ask for a proof; False if there is none yet: run_due() comes by itself then."""
        assert self._check is not None
        try:
            is_in_doubt = self._check()
        except JournalError as error:
            self.fail(error)
            return True
        if not is_in_doubt:
            self._proved_s = now_s
        elif not self._is_held:
            assert self.call_later is not None, "the loop runs"
            self._is_held = True
            self.call_later(_HELD_S, self._ask_again)
        return not is_in_doubt

    def _ask_again(self) -> None:
        self._is_held = False
        self.run_due()

    def fail(self, error: Exception) -> None:
        """A store, or a callback, has failed: who waits now, or later, gets the error."""
        if self._failure is not None:
            return
        self._failure = error
        self._on_failure(error)
        self.run_due()


class _Call:
    """What waits, and for which numbers of appends."""

    __slots__ = ("admission", "arguments", "bindings", "callback", "context", "messages", "pages")

    def fill(
        self,
        completions: Completions,
        context: OperationContext | None,
        admission: Admission | None,
        callback: After,
        arguments: tuple[Any, ...],
    ) -> None:
        """Wait for all that was appended by now. In place of __init__, which costs more."""
        self.messages = completions.messages.appended
        self.bindings = completions.bindings.appended
        self.pages = completions.pages.appended
        self.context = context
        self.admission = admission
        self.callback = callback
        self.arguments = arguments

    def is_due(self, completions: Completions) -> bool:
        """Whether all of it is durable."""
        admission = self.admission
        if admission is not None:
            if not admission.is_open:
                return False
            self.messages = admission.messages
        return (
            self.messages <= completions.messages.durable
            and self.bindings <= completions.bindings.durable
            and self.pages <= completions.pages.durable
        )

    def run(self, completions: Completions) -> None:
        """Call it; one that raises ends the broker."""
        context = self.context
        if context is not None:
            context.pending -= 1
        callback, arguments = self.callback, self.arguments
        try:
            if len(arguments) == 1:
                callback(completions.failure, arguments[0])
            elif len(arguments) == 2:
                callback(completions.failure, arguments[0], arguments[1])
            else:
                callback(completions.failure, *arguments)
        except JournalError as error:
            # The store ended behind what this waited for: no fault of the callback.
            log.error("a callback of the storage failed: %r: %s", self.callback, error)
            completions.fail(error)
        except Exception as error:
            log.exception("a callback of the storage failed: %r", self.callback)
            completions.fail(error)


class Admission:
    """Something that will be appended to the messages later, behind what has to come first.

    Attributes:
        is_open: it was appended.
        messages: the number of appends then.
    """

    __slots__ = ("is_open", "messages")

    def __init__(self) -> None:
        self.is_open = False
        self.messages = 0

    def open(self, messages: Counter) -> None:
        """It was appended just now, to the store that counts so."""
        self.is_open = True
        self.messages = messages.appended


class Counter:
    """How many appends of one store asked to be told, and how many of those are durable.

    Attributes:
        unflushed: what `appended` was behind the last append that was without flush_now.
    """

    __slots__ = ("_owner", "appended", "durable", "unflushed")

    def __init__(self, owner: Completions) -> None:
        self._owner = owner
        self.appended = 0
        self.durable = 0
        self.unflushed = 0

    @property
    def is_durable(self) -> bool:
        """Whether everything appended is durable."""
        return self.appended == self.durable

    def done(self, error: Exception | None) -> None:
        """One more is durable, or the store failed: the `done` of every append that syncs.

        Callbacks run behind the last one that is due: the store calls run_due() then.
        """
        if error is None:
            self.durable += 1
        else:
            self._owner.fail(error)


class OperationContext:
    """What one session appended last, and what of the session waits.

    Args:
        completions: of the broker.

    Attributes:
        pending: calls of this session that wait.
    """

    __slots__ = ("_bindings", "_completions", "_messages", "_pages", "pending")

    def __init__(self, completions: Completions) -> None:
        self._completions = completions
        self._messages = 0
        self._bindings = 0
        self._pages = 0
        self.pending = 0

    def note(self) -> None:
        """The session appended something just now."""
        completions = self._completions
        self._messages = completions.messages.appended
        self._bindings = completions.bindings.appended
        self._pages = completions.pages.appended

    @property
    def is_durable(self) -> bool:
        """Whether what the session appended is durable, and nothing of it waits."""
        return self._is_durable()

    def _is_durable(self) -> bool:
        completions = self._completions
        return (
            self.pending == 0
            and self._messages <= completions.messages.durable
            and self._bindings <= completions.bindings.durable
            and self._pages <= completions.pages.durable
        )

    def after(self, callback: After, *arguments: object) -> None:
        """Call `callback(error, *arguments)` once what the session appended is durable.

        In the order of the calls; at once where nothing of this session is pending.
        """
        self.then(callback, arguments)

    def then(self, callback: After, arguments: tuple[Any, ...]) -> None:
        """As after()."""
        self.count(callback, arguments)
        if self.pending:
            self._completions.flush_now()

    def count(self, callback: After, arguments: tuple[Any, ...]) -> None:
        """As then(), where no client waits: it is called when the store comes to it."""
        completions = self._completions
        if self._is_durable() and completions.may_tell():
            callback(completions.failure, *arguments)
            return
        self.pending += 1
        completions.wait(self, None, callback, arguments)

    def after_admission(self, admission: Admission, callback: After, *arguments: object) -> None:
        """The same, where what it waits for is appended when the admission opens."""
        self.pending += 1
        self._completions.wait(self, admission, callback, arguments)

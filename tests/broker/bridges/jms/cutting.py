"""A relay in the test's event loop that cuts at a chosen frame of the Core protocol.

    async with CuttingProxy(port) as proxy:
        proxy.cut_at(UP, 12, is_passed=True)    # the 12th frame to the broker arrives; a reset

Frames are counted over all connections, those of one kind if one is given. The cut comes once;
connections afterwards go through. `late_at` holds a frame, and what is behind it, back for a while.
"""

import asyncio

UP, DOWN = "to the broker", "from the broker"
PREAMBLE = b"ARTEMIS"


class CuttingProxy:
    """Relays every connection to `target_port` of this machine.

    Attributes:
        counts: frames so far, by direction; of the kind that is to be cut.
        has_cut: whether the cut has come.
    """

    def __init__(self, target_port):
        self._target_port = target_port
        self._tasks = set()
        self._writers = set()
        self._cut = None
        self._kind = None
        self._on_cut = None
        self._late_s = None
        self._flows = asyncio.Event()
        self._flows.set()
        self.counts = {UP: 0, DOWN: 0}
        self.has_cut = False

    def late_at(self, direction, number, late_s):
        """Hold back everything, in both directions, from the frame of this number on.

        Args:
            direction: UP or DOWN.
            number: of the frame, from 1, counted from now on.
            late_s: for so many seconds.
        """
        self.cut_at(direction, number, is_passed=True)
        self._late_s = late_s

    def cut_at(self, direction, number, *, is_passed, kind=None, on_cut=None):
        """Reset the connection at the frame of this number, from 1, counted from now on.

        Args:
            direction: UP or DOWN.
            number: of the frame.
            is_passed: whether it arrives.
            kind: frames of this type count alone; None counts all.
            on_cut: called at once, before the connection is reset.
        """
        self.counts = {UP: 0, DOWN: 0}
        self.has_cut = False
        self._kind = kind
        self._on_cut = on_cut
        self._late_s = None
        self._cut = (direction, number, is_passed)

    async def __aenter__(self):
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *error):
        self._server.close()
        self.reset()
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def reset(self):
        """Reset every connection."""
        for writer in tuple(self._writers):
            writer.transport.abort()

    async def _accept(self, reader, writer):
        try:
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._target_port)
        except OSError:
            writer.transport.abort()
            return
        self._writers |= {writer, far_writer}
        pumps = [
            asyncio.ensure_future(self._pump(UP, reader, far_writer)),
            asyncio.ensure_future(self._pump(DOWN, far_reader, writer)),
        ]
        self._tasks |= set(pumps)
        await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        for one in (writer, far_writer):
            one.transport.abort()
            self._writers.discard(one)
        await asyncio.gather(*pumps, return_exceptions=True)
        self._tasks -= set(pumps)

    async def _begin(self, direction, reader, writer):
        if direction is UP:
            writer.write(await reader.readexactly(len(PREAMBLE)))

    async def _frame(self, reader):
        head = await reader.readexactly(4)
        return head, await reader.readexactly(int.from_bytes(head, "big"))

    async def _pump(self, direction, reader, writer):
        await self._begin(direction, reader, writer)
        while True:
            try:
                head, body = await self._frame(reader)
            except (asyncio.IncompleteReadError, OSError):
                return
            counts = self._kind is None or body[0] == self._kind % 256
            self.counts[direction] += counts
            at = (direction, self.counts[direction])
            if counts and self._cut is not None and self._cut[:2] == at:
                is_passed, self._cut = self._cut[2], None
                self.has_cut = True
                if self._on_cut is not None:
                    self._on_cut()
                if self._late_s is not None:
                    self._flows.clear()
                    await asyncio.sleep(self._late_s)
                    self._flows.set()
                    writer.write(head + body)
                    continue
                if is_passed:
                    writer.write(head + body)
                    await writer.drain()
                    # The socket has it; a reset would drop what the kernel has not sent yet.
                    await asyncio.sleep(0.002)
                return
            await self._flows.wait()
            writer.write(head + body)


class AmqpCuttingProxy(CuttingProxy):
    """The same for AMQP 1.0, whose size is in the size; a protocol header is a frame."""

    async def _begin(self, direction, reader, writer):
        pass

    async def _frame(self, reader):
        head = await reader.readexactly(4)
        size = 8 if head == b"AMQP" else int.from_bytes(head, "big")
        return head, await reader.readexactly(size - 4)

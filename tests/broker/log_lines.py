"""Tests that wait for lines of the log."""

import asyncio
import logging

WAIT_S = 60


class Lines(logging.Handler):
    """Waits for lines of the log."""

    def __init__(self):
        super().__init__()
        self._lines = asyncio.Queue()
        self._loop = asyncio.get_running_loop()

    def emit(self, record):
        self._loop.call_soon_threadsafe(self._lines.put_nowait, record.getMessage())

    async def until(self, text):
        async with asyncio.timeout(WAIT_S):
            while text not in await self._lines.get():
                pass

"""Tests that are coroutines."""

import asyncio
import functools

# A loaded machine is slow; a test that hangs shall still end.
TIMEOUT_S = 120


def asynchronous(test):
    """Run a coroutine test in a loop of its own, with warnings about what it left behind."""

    @functools.wraps(test)
    def run(*arguments, **named):
        async def limited():
            async with asyncio.timeout(TIMEOUT_S):
                await test(*arguments, **named)

        asyncio.run(limited())

    return run

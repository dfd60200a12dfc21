"""Tests that are coroutines."""

import asyncio
import functools

# A loaded machine is slow; a test that hangs shall still end.
TIMEOUT_S = 120
# Of a test whose rounds `make soak` multiplies, in full.
SOAK_TIMEOUT_S = 3600


def asynchronous(test):
    """Run a coroutine test in a loop of its own, with warnings about what it left behind."""

    @functools.wraps(test)
    def run(*arguments, **named):
        timeout_s = TIMEOUT_S
        if "effort" in named:
            timeout_s = named["effort"](SOAK_TIMEOUT_S, least=TIMEOUT_S)

        async def limited():
            async with asyncio.timeout(timeout_s):
                await test(*arguments, **named)

        asyncio.run(limited())

    return run

"""What a broker answers over HTTP: metrics, and whether it lives and serves.

    GET /metrics    Prometheus; `?all` gives series for all queues and addresses
    GET /livez      200 as long as the event loop turns; from before the lock is waited for
    GET /readyz     200 while clients may come, else 503 and why
    GET /healthz    the same as /readyz

Everything runs in the broker's event loop, so nothing is seen in the middle of a change, and a loop
that is stuck does not answer. No password is asked for: it listens on localhost unless
told otherwise.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from uvicorn import Config, Server

from broker.errors import BrokerError, ErrorCode
from broker.management.metrics import Metrics
from broker.management.web_connection import WebConnection

if TYPE_CHECKING:
    from collections.abc import Iterator

    from starlette.requests import Request

    from broker.management.access import ManagedBroker
    from broker.options import WebOptions

__all__ = ["WebServer"]

log = logging.getLogger("broker")

# Only scrapers and probes connect.
_BACKLOG = 64
_KEEP_ALIVE_S = 15
_HEADER_MAX = 16 * 1024  # Bytes of a request's head.


class _Server(Server):
    """Without handlers of signals: those are the broker's."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


async def _listening(server: _Server, serving: asyncio.Task[None]) -> None:
    """Wait, some turns of the loop, until a server listens.

    One that is told to exit before that leaves its socket open.
    """
    while not server.started and not serving.done():  # noqa: ASYNC110 - it has no event.
        await asyncio.sleep(0)


class WebServer:
    """See the module's text. Belongs to the event loop.

    Args:
        broker: that it tells of.
        options: where it listens.
    """

    def __init__(self, broker: ManagedBroker, options: WebOptions) -> None:
        self._broker = broker
        self._options = options
        self._metrics = Metrics(broker)
        self._server: _Server | None = None
        self._serving: asyncio.Task[None] | None = None
        self.host, self.port = options.host, options.port

    async def start(self) -> None:
        """Listen.

        Raises:
            BrokerError: the address is in use or not of this machine.
        """
        listening = self._listen()
        self.port = listening.getsockname()[1]
        routes = [
            Route("/metrics", self._answer_metrics),
            Route("/livez", self._answer_alive),
            Route("/readyz", self._answer_ready),
            Route("/healthz", self._answer_ready),
        ]
        config = Config(
            Starlette(routes=routes),
            lifespan="off",
            log_config=None,
            access_log=False,
            http=WebConnection,
            # Nothing here speaks it; its modules would be imported all the same.
            ws="none",
            h11_max_incomplete_event_size=_HEADER_MAX,
            timeout_keep_alive=_KEEP_ALIVE_S,
        )
        self._server = _Server(config)
        self._serving = asyncio.create_task(self._server.serve(sockets=[listening]))
        await _listening(self._server, self._serving)
        log.info("AMQ241001: HTTP Server started at http://%s:%d", self._options.host, self.port)

    def _listen(self) -> socket.socket:
        options = self._options
        try:
            family, kind, number, _, place = socket.getaddrinfo(
                options.host, options.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
            )[0]
            listening = socket.socket(family, kind, number)
            try:
                listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                listening.bind(place)
                listening.listen(_BACKLOG)
            except OSError:
                listening.close()
                raise
        except OSError as error:
            raise BrokerError(
                ErrorCode.ILLEGAL_STATE,
                f"the web server cannot listen on {options.host}:{options.port}: "
                f"{error.strerror or error}",
            ) from error
        listening.setblocking(False)
        return listening

    @property
    def is_serving(self) -> bool:
        """Whether it listens."""
        return self._server is not None

    async def stop(self) -> None:
        """Listen no more, and end what is open. Idempotent."""
        server, self._server = self._server, None
        serving, self._serving = self._serving, None
        if server is not None and serving is not None:
            await _listening(server, serving)
            server.should_exit = server.force_exit = True
            await serving

    # --- answers ------------------------------------------------------------------------------

    async def _answer_metrics(self, request: Request) -> Response:
        content_type, text = self._metrics.answer(
            request.headers.get("accept"), is_whole="all" in request.query_params
        )
        return Response(text, media_type=content_type)

    async def _answer_alive(self, request: Request) -> Response:
        return PlainTextResponse("alive\n")

    async def _answer_ready(self, request: Request) -> Response:
        why = self._broker.lifecycle.not_ready
        if why is None:
            return PlainTextResponse("ready\n")
        return PlainTextResponse(f"not ready: {why}\n", status_code=503)

"""RabbitMQ beside ours: the system's (`apt install rabbitmq-server`), with a plugin or without."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from benchmarks.peers.process import Broker, Process, Unavailable, refuse_database
from tests.interop.fetched import tool
from tests.servers import free_port

if TYPE_CHECKING:
    from tests.servers import Database

# What the server makes for itself.
USER, PASSWORD = "guest", "guest"


class Plugin(NamedTuple):
    """What speaks another protocol.

    Args:
        name: as RabbitMQ calls it.
        listener: the option with its address; none: it listens where RabbitMQ does.
        hello: bytes that a client sends once it listens.
        greeting: how its answer to that begins.
    """

    name: str
    listener: str
    hello: bytes
    greeting: bytes


def rabbitmq(folder: Path, database: Database | None, plugin: Plugin | None = None) -> Broker:
    """RabbitMQ as it comes, without its plugins; with one, the port is that of its protocol."""
    refuse_database(database)
    # The wrapper in /usr/sbin changes the user.
    server = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")
    if not server.exists():
        raise Unavailable(f"no {server}")
    port, names = free_port(), str(free_port())
    environment = {
        "HOME": str(folder),
        "RABBITMQ_NODENAME": f"bench{port}@localhost",
        "RABBITMQ_NODE_PORT": str(port),
        "RABBITMQ_DIST_PORT": str(free_port()),
        "ERL_EPMD_PORT": names,
        "RABBITMQ_MNESIA_BASE": str(folder / "data"),
        "RABBITMQ_LOG_BASE": str(folder / "logs"),
        "RABBITMQ_PID_FILE": str(folder / "pid"),
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "plugins"),
        "RABBITMQ_CONFIG_FILE": str(folder / "rabbitmq"),
    }
    lines = ["loopback_users = none", "disk_free_limit.absolute = 1MB"]
    if plugin is not None and plugin.listener:
        port = free_port()
        lines.append(f"{plugin.listener} = 127.0.0.1:{port}")
    (folder / "plugins").write_text("[].\n" if plugin is None else f"[{plugin.name}].\n")
    (folder / "rabbitmq.conf").write_text("\n".join([*lines, ""]))
    return Process(
        [str(server)],
        port,
        folder / "log",
        environment,
        hello=b"AMQP\0\0\x09\x01" if plugin is None else plugin.hello,
        greeting=b"\x01\0\0" if plugin is None else plugin.greeting,
        # Its name server, which it has started, stays otherwise.
        behind=[tool("epmd"), "-port", names, "-kill"],
    )

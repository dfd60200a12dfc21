"""Mosquitto beside ours: the system's (`apt install mosquitto`).

It writes nothing before it confirms a message: `persistence` saves its memory now and then, every
half an hour unless `autosave_interval` says otherwise, and at its end.
"""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

from benchmarks.peers.process import Broker, Process, Unavailable
from tests.servers import free_port

if TYPE_CHECKING:
    from pathlib import Path

# Without a limit of its own it drops no message, and without Nagle's delay none waits.
CONFIGURATION = """
listener {port} 127.0.0.1
allow_anonymous true
persistence true
persistence_location {folder}/
max_queued_messages 0
set_tcp_nodelay true
"""
# It gives up root's rights otherwise, and cannot write into the folder.
AS_ROOT = "user root\n"


def mosquitto(folder: Path, hello: bytes, greeting: bytes) -> Broker:
    """A mosquitto that answers `hello` by `greeting`."""
    server = shutil.which("mosquitto", path=f"{os.environ['PATH']}:/usr/sbin")
    if server is None:
        raise Unavailable("no `mosquitto`")
    port = free_port()
    file = folder / "mosquitto.conf"
    text = CONFIGURATION.format(port=port, folder=folder.resolve())
    file.write_text(text + (AS_ROOT if os.geteuid() == 0 else ""))
    command = [server, "-c", str(file)]
    return Process(command, port, folder / "log", hello=hello, greeting=greeting)

"""A broker in a process of its own, started by BrokerProcess.

`python -m tests.broker.serve FOLDER PORT MESSAGES SECONDS TYPE SIZE HISTORY DELIVERIES`: behind so
many MESSAGES an address pages, in pages of 64 KiB. A handshake may take so many SECONDS. The
message journal is of that TYPE, in files of SIZE bytes; HISTORY is 1 where its history is kept. A
message may be delivered so often, -1 as often as one likes. FOLDER `-` keeps nothing, and may be
the URL of a database.
Prints `READY port` when it serves; ends with the broker's exit status.
"""

import asyncio
import logging
import os
import signal
import subprocess
import sys
from pathlib import Path

from broker.cli.serving import serve
from broker.errors import BrokerError
from broker.options import BrokerOptions
from broker.server.server import Broker
from broker.settings.settings import AddressSettings
from broker.settings.settings_repository import SettingsRepository
from broker.storage.open import FileStoreOptions, bindings_options, messages_options
from broker.transport.acceptor import AcceptorOptions
from jdbcstore.options import DatabaseStoreOptions
from journal.errors import JournalError

ROOT = Path(__file__).resolve().parents[2]
START_S = 60


def options(
    folder,
    port,
    max_messages,
    handshake_s,
    journal_type="NIO",
    file_size=10 << 20,
    keeps_history=False,
    max_deliveries=-1,
):
    """What the broker of a folder is: an expiry and a dead letter address."""
    settings = SettingsRepository()
    settings.add(
        "#",
        AddressSettings(
            dead_letter_address="DLQ",
            expiry_address="ExpiryQueue",
            # Each connection that a client loses counts for all that was on its way: after as many
            # as in a soak a message would be a dead letter.
            max_delivery_attempts=max_deliveries,
            max_size_messages=max_messages,
            page_size_bytes=64 * 1024,
        ),
    )
    store = None
    if "://" in str(folder):
        # A machine that stands still for a while is not a failure.
        store = DatabaseStoreOptions(
            connection_url=str(folder), lock_expiration_ms=60_000, ride_out_ms=60_000
        )
    elif folder != "-":
        history = {}
        if keeps_history:
            history = {
                "retention_directory": Path(folder) / "retention",
                "retention_period_ms": 10**9,
            }
        store = FileStoreOptions(
            bindings=bindings_options(Path(folder) / "bindings"),
            messages=messages_options(
                Path(folder) / "journal", journal_type=journal_type, file_size=file_size, **history
            ),
        )
    return BrokerOptions(
        store=store,
        acceptors=(AcceptorOptions(host="127.0.0.1", port=port, handshake_timeout_s=handshake_s),),
        settings=settings,
    )


class BrokerProcess:
    """A running broker; `kill()` is -9, `stop()` is SIGTERM."""

    def __init__(
        self,
        folder,
        port=0,
        max_messages=-1,
        handshake_s=10.0,
        journal_type="NIO",
        file_size=10 << 20,
        keeps_history=False,
        max_deliveries=-1,
    ):
        command = [sys.executable, "-m", "tests.broker.serve"]
        values = (folder, port, max_messages, handshake_s, journal_type, file_size)
        command += map(str, (*values, int(keeps_history), max_deliveries))
        self.process = subprocess.Popen(
            command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        line = self.process.stdout.readline()
        if not line.startswith("READY"):
            said = line + self.process.stderr.read()
            self._end()
            raise AssertionError(f"no start: {said}")
        self.port = int(line.split()[1])

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self._end()

    def stop(self):
        """Stop it; the exit status."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self._end()

    def _end(self):
        status = self.process.wait(START_S)
        self.process.stdout.close()
        self.process.stderr.close()
        return status


def main():
    logging.basicConfig(level=logging.ERROR)
    folder, port, max_messages, handshake_s, journal_type, file_size, *others = sys.argv[1:]
    has_history, max_deliveries = others

    async def live():
        broker = Broker(
            options(
                folder,
                int(port),
                int(max_messages),
                float(handshake_s),
                journal_type,
                int(file_size),
                has_history == "1",
                int(max_deliveries),
            )
        )
        return await serve(
            broker, on_start=lambda one: print("READY", one.acceptors[0].port, flush=True)
        )

    try:
        status = asyncio.run(live())
    except (BrokerError, JournalError) as error:
        print(error, file=sys.stderr)
        status = 2
    sys.stdout.flush()
    # A process that was told to end does not wait for anybody's threads.
    os._exit(status)


if __name__ == "__main__":
    main()

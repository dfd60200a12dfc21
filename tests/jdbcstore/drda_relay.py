"""A relay by which IBM's driver speaks to Derby's network server, which both speak DRDA.

No DB2 server is to be had. Derby takes its own client only, so the relay changes three things. It
replaces the client's product id. It corrects the length of TYPDEFOVR in what the server says, since
Derby nests two fields in it. It removes QRYINSID, which Derby does not know, from DSCSQLSTT.

    with DrdaRelay(derby.port) as relay:
        relay.port              # for IBM's driver
        relay.cut()             # ends every connection
"""

import contextlib
import re
import socket
import struct
import threading

from tests.jdbcstore.tds_wire import read_exactly

IBM, DERBY = "SQL12014", "DNC10030"  # A later client of Derby's would be sent session data.
# Its length, code and first field; what Derby nests in it depends on the user's name.
TYPDEFOVR = re.compile(rb"\x00[\x11-\xff](\x00\x35\x00\x06\x11\x9c)")
ACCRDBRM, DSCSQLSTT = 0x2201, 0x2008
QRYINSID = bytes.fromhex("000c215b")
QRYINSID_SIZE = 12


def read_segment(connection):
    """One data stream structure with its header; None if the peer has closed the connection."""
    header = read_exactly(connection, 2)
    if header is None:
        return None
    (size,) = struct.unpack(">H", header)
    assert not size & 0x8000, "a structure of more than 32,767 bytes"
    rest = read_exactly(connection, size - 2)
    return None if rest is None else header + rest


def from_client(segment):
    """What Derby takes of it."""
    segment = segment.replace(IBM.encode(), DERBY.encode())
    segment = segment.replace(IBM.encode("cp500"), DERBY.encode("cp500"))
    (code,) = struct.unpack_from(">H", segment, 8)
    if code == DSCSQLSTT and QRYINSID in segment:
        at = segment.index(QRYINSID)
        segment = segment[:at] + segment[at + QRYINSID_SIZE :]
        size = len(segment)
        segment = struct.pack(">H", size) + segment[2:6] + struct.pack(">H", size - 6) + segment[8:]
    return segment


def from_server(segment):
    """What IBM's driver takes of it."""
    (code,) = struct.unpack_from(">H", segment, 8)
    return TYPDEFOVR.sub(b"\x00\x10\\1", segment) if code == ACCRDBRM else segment


class DrdaRelay:
    """The relay: its port, and the connections that pass through it."""

    def __init__(self, server_port):
        self._server_port = server_port
        self._sockets, self._threads = [], []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._accept, name="drda-relay")
        self._thread.start()

    def _accept(self):
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.create_connection(("127.0.0.1", self._server_port))
            self._sockets += [client, server]
            for source, target, change in (
                (client, server, from_client),
                (server, client, from_server),
            ):
                thread = threading.Thread(target=self._pass_on, args=(source, target, change))
                self._threads.append(thread)
                thread.start()

    @staticmethod
    def _pass_on(source, target, change):
        with contextlib.suppress(OSError):  # Either side may go at any time.
            while (segment := read_segment(source)) is not None:
                target.sendall(change(segment))
        for end in (source, target):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def cut(self):
        """End every connection."""
        for end in self._sockets:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def stop_listening(self):
        """Refuse every connection from now on."""
        with contextlib.suppress(OSError):  # Done before.
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()

    def close(self):
        """End it; its threads have ended."""
        self.stop_listening()
        self.cut()
        for thread in self._threads:
            thread.join()
        for end in self._sockets:
            end.close()

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()

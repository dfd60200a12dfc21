"""A TCP relay on this machine that a test cuts, stalls and resets.

with Proxy(server.port) as proxy:
    ... connect to 127.0.0.1:proxy.port ...
    proxy.stall()    # nothing goes through, connections stay open: a network that lost packets
    proxy.resume()
    proxy.cut()      # every connection is reset, and new ones are, until resume()
    proxy.reset()    # every connection is reset once
"""

import contextlib
import socket
import struct
import threading

CHUNK = 65536


class Proxy:
    """Relays every connection to `target_host:target_port`; listens at `host`."""

    def __init__(self, target_port, target_host="127.0.0.1", host="127.0.0.1"):
        self._target = (target_host, target_port)
        self._listener = socket.create_server((host, 0))
        self.port = self._listener.getsockname()[1]
        self._flows = threading.Event()
        self._flows.set()
        self._is_cut = False
        self._open = set()
        self._lock = threading.Lock()
        threading.Thread(target=self._accept, name="proxy", daemon=True).start()

    def stall(self):
        self._flows.clear()

    def cut(self):
        self._is_cut = True
        self.reset()
        self._flows.set()

    def resume(self):
        self._is_cut = False
        self._flows.set()

    def reset(self):
        with self._lock:
            sockets, self._open = self._open, set()
        for one in sockets:
            end_by_reset(one)

    def close(self):
        self._listener.close()
        self.cut()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close()

    def _accept(self):
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            if self._is_cut:
                end_by_reset(near)
                continue
            try:
                far = socket.create_connection(self._target)
            except OSError:
                end_by_reset(near)
                continue
            with self._lock:
                self._open |= {near, far}
            for source, target in ((near, far), (far, near)):
                threading.Thread(target=self._pump, args=(source, target), daemon=True).start()

    def _pump(self, source, target):
        try:
            while data := source.recv(CHUNK):
                self._flows.wait()
                target.sendall(data)
            self._flows.wait()
            target.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # One end went away, or the test reset it: the other pump ends by itself.
        else:
            return
        with self._lock:
            self._open -= {source, target}
        for one in (source, target):
            end_by_reset(one)


def end_by_reset(one):
    """Close a socket so that its peer gets an RST instead of an orderly end."""
    with contextlib.suppress(OSError):
        one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    with contextlib.suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)  # A thread in recv() of this process wakes up.
    one.close()

"""A broker that is killed and started again, and a producer that survives it."""

import contextlib
import threading
import time

from broker.client import Client, ClientError
from broker.client.errors import DuplicateId
from tests.broker.serve import BrokerProcess

PROGRESS_S = 300


class Outages:
    """A broker that keeps its folder and its port.

    Args:
        folder: of its data.
    """

    def __init__(self, folder):
        self.folder = folder
        self.count = 0
        self.error = None
        self._broker = BrokerProcess(folder)
        self.port = self._broker.port
        self._thread = None

    @property
    def url(self):
        return f"tcp://127.0.0.1:{self.port}"

    def kill(self):
        self._broker.kill()

    def start(self):
        self._broker = BrokerProcess(self.folder, self.port)

    def restart(self):
        self.kill()
        self.start()

    def begin(self, count, luck, progress):
        """Kill and start it again so often, beside what the caller does.

        Args:
            count: how often.
            luck: says when.
            progress: of the caller; there is some between two kills.
        """
        given = (count, luck, progress)
        self._thread = threading.Thread(target=self._run, args=given, daemon=True)
        self._thread.start()

    def _run(self, count, luck, progress):
        try:
            for number in range(count):
                before = progress()
                end = time.monotonic() + PROGRESS_S
                while progress() == before:
                    assert time.monotonic() < end, "nothing goes on"
                    time.sleep(0.002)
                time.sleep(luck.random() / 2)
                # Mostly -9; sometimes as an operator does it.
                self._broker.stop() if number % 5 == 4 else self.kill()
                time.sleep(luck.random())
                self.start()
                self.count += 1
        except BaseException as error:
            self.error = error
            raise

    @property
    def is_over(self):
        return not self._thread.is_alive()

    def check(self):
        """See that all went as it should."""
        assert self.error is None
        assert self.is_over

    def stop(self):
        if self._thread is not None:
            self._thread.join()
        self._broker.stop()


class Persistent:
    """Sends numbers to an address, each once, in its own thread, until stopped.

    Attributes:
        count: of numbers that were sent.
    """

    def __init__(self, url, address):
        self.url, self.address = url, address
        self.count = 0
        self.error = None
        self._is_over = threading.Event()
        # A number was sent, and its confirmation has not come: it may be there.
        self._is_unsure = False
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self):
        try:
            while self._is_unsure or not self._is_over.is_set():
                try:
                    self._send()
                except ClientError:
                    time.sleep(0.1)
        except BaseException as error:
            self.error = error
            raise

    def _send(self):
        with (
            Client(self.url) as client,
            client.session() as session,
            session.producer(self.address) as producer,
        ):
            while self._is_unsure or not self._is_over.wait(0.02):
                text = str(self.count)
                self._is_unsure = True
                with contextlib.suppress(DuplicateId):
                    producer.send(text, duplicate_id=f"n{text}", priority=self.count % 10)
                self.count += 1
                self._is_unsure = False

    def stop(self):
        """Stop; True once no more is sent, the last number that may be there counted."""
        if not self._is_over.is_set():
            self._is_over.set()
            self._thread.join()
        assert self.error is None
        return True

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *error):
        self._is_over.set()
        self._thread.join()

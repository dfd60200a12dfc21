"""A message that is delivered later: it waits in its queue, and a restart does not forget it.

python examples/scheduled.py
"""

import time

from broker.client import Client
from broker.embedded import EmbeddedBroker

DELAY_MS = 1000


def main() -> None:
    """Send one for later and one for now."""
    with (
        EmbeddedBroker() as broker,
        Client(f"tcp://127.0.0.1:{broker.port}") as client,
        client.session() as session,
    ):
        session.create_queue("reminders")
        sent = time.monotonic()
        with session.producer("reminders") as producer:
            producer.send("later", deliver_in_ms=DELAY_MS)
            producer.send("now")
        with session.consumer("reminders") as consumer:
            for _ in range(2):
                message = consumer.receive(10)
                assert message is not None
                waited_s = time.monotonic() - sent
                when = "after its delay" if waited_s * 1000 >= DELAY_MS else "at once"
                print(f"{message.text}: {when}")


if __name__ == "__main__":
    main()

"""Two workers share a queue; one fails, and its message is done by the other.

    python examples/work_queue.py

A message stays in the queue until its transaction is committed. A worker that rolls back, or loses
its connection, gives it back; a redelivered message says so.
"""

import threading

from broker.client import AckMode, Client
from broker.embedded import EmbeddedBroker

JOBS = 6


def work(url: str, name: str, *, fails_at: str | None, screen: threading.Lock) -> None:
    """Do jobs until there are none for a second."""
    with Client(url) as client, client.session(AckMode.TRANSACTED) as session:
        with session.consumer("jobs") as jobs:
            while (job := jobs.receive(1)) is not None:
                if job.text == fails_at and not job.is_redelivered:
                    with screen:
                        print(f"{name}: {job.text} failed, it goes back to the queue")
                    session.rollback()
                    continue
                session.commit()
                again = " (redelivered)" if job.is_redelivered else ""
                with screen:
                    print(f"{name}: {job.text} done{again}")


def main() -> None:
    """Send the jobs, then work."""
    with EmbeddedBroker() as broker:
        url = f"tcp://127.0.0.1:{broker.port}?consumerWindowSize=0"
        with Client(url) as client, client.session() as session:
            session.create_queue("jobs")
            with session.producer("jobs") as producer:
                for number in range(JOBS):
                    producer.send(f"job {number}")
        screen = threading.Lock()
        workers = [
            threading.Thread(
                target=work, args=(url, name), kwargs={"fails_at": "job 2", "screen": screen}
            )
            for name in ("first", "second")
        ]
        for one in workers:
            one.start()
        for one in workers:
            one.join()


if __name__ == "__main__":
    main()

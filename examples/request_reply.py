"""Questions and answers: each asker has a temporary queue that its answers come by.

python examples/request_reply.py
"""

import threading

from broker.client import Client
from broker.embedded import EmbeddedBroker

QUESTIONS = ("2 3", "20 22", "1 -1")


def answer(url: str) -> None:
    """Add numbers, for as many questions as there are."""
    with Client(url) as client, client.session() as session, session.consumer("sums") as questions:
        for _ in QUESTIONS:
            question = questions.receive(10)
            assert question is not None
            session.reply(question, str(sum(map(int, question.text.split()))))


def main() -> None:
    """Ask."""
    with EmbeddedBroker() as broker:
        url = f"tcp://127.0.0.1:{broker.port}"
        with Client(url) as client, client.session() as session:
            session.create_queue("sums")
            server = threading.Thread(target=answer, args=(url,))
            server.start()
            for question in QUESTIONS:
                print(f"{question}: {session.request('sums', question, timeout_s=10).text}")
            server.join()


if __name__ == "__main__":
    main()

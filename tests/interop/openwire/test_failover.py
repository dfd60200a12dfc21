"""Classic's JMS client with its failover transport goes over to the backup of a pair of ours."""

import pytest

from tests.interop.jms_outlives import made_by
from tests.interop.openwire.client import OpenWireClient
from tests.interop.test_pairs import (
    COUNT,
    ended,
    folder_store,
    our_pair,
    told_of_backup_and_at_work,
)

pytestmark = [pytest.mark.interop, pytest.mark.slow]


def test_messages_are_sent_and_received_once_while_a_backup_takes_over(tmp_path):
    pair = our_pair(tmp_path, folder_store(tmp_path))
    places = ",".join(f"tcp://127.0.0.1:{one.port}" for one in (pair.primary, pair.backup))
    login = f"jms.userName={pair.login['user']}&jms.password={pair.login['password']}"
    url = f"failover:({places})?randomize=false&maxReconnectDelay=200&{login}"
    with ended(pair), made_by(lambda _: OpenWireClient(url)) as new:
        pair.primary.start()
        pair.backup.begin()
        producer, consumer = new(pair), new(pair)
        consumer.begin("consume", "q", f"m{COUNT * 10 - 1}")
        producer.begin("send", "q", COUNT * 10, "m")
        told_of_backup_and_at_work(pair, "q")
        pair.primary.kill()
        assert producer.end() == str(COUNT * 10)
        found = consumer.end().strip("[]").split(", ")

    # What was delivered, and not known to be acknowledged when the broker died, comes again.
    assert list(dict.fromkeys(found)) == [f"m{number}" for number in range(COUNT * 10)]

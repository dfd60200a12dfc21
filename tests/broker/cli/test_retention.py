"""journal-retention-directory of a broker.xml: a running broker keeps what it says, and no more."""

import time
from datetime import datetime, timedelta

import pytest

from journal.folder import JournalName
from journal.retention import TIME_FORMAT, list_history
from tests.pipeline.instances import FILE_SIZE, Instance

WAIT_S = 120
OLD = 3


def run_with(folder, attributes):
    return Instance(
        folder / "instance",
        f"<journal-retention-directory {attributes}>data/kept</journal-retention-directory>",
    ).start()


def copies(instance):
    return list_history(instance.data / "kept", JournalName())


def fill(instance, count):
    """Send until the history has had so many more copies; the ids of their files."""
    seen = set()
    known = {copy.file_id for copy in copies(instance)}
    end = time.monotonic() + WAIT_S
    with instance.client() as client, client.session() as session:
        if not session.query_queue("q").exists:
            session.create_queue("q")
        with session.producer("q") as producer, session.consumer("q") as consumer:
            while len(seen) < count:
                assert time.monotonic() < end, "no copy comes"
                producer.send(b"x" * (FILE_SIZE // 8))
                consumer.receive(WAIT_S).acknowledge()
                # One that was removed at once would be missed by looking at the end alone.
                seen |= {copy.file_id for copy in copies(instance)} - known
    return sorted(seen)


def make_old(instance, hours):
    """Have the copies that there are made so long ago; their file ids."""
    time_ = (datetime.now() - timedelta(hours=hours)).strftime(TIME_FORMAT)  # noqa: DTZ005 - names
    found = copies(instance)
    for copy in found:
        copy.path.rename(copy.path.with_name(f"activemq-data-{time_}-{copy.file_id}.amq"))
    return [copy.file_id for copy in found]


@pytest.mark.parametrize(
    ("attributes", "hours", "is_kept"),
    [
        ('unit="HOURS" period="2"', 1, True),
        ('period="2"', 49, False),
        # Less than one file: no limit.
        ('storage-limit="1K"', 24 * 365 * 20, True),
    ],
)
def test_what_is_older_than_the_period_goes(tmp_path, attributes, hours, is_kept):
    instance = run_with(tmp_path, attributes)
    try:
        fill(instance, OLD)
        old = make_old(instance, hours)
        new = fill(instance, 2)
    finally:
        assert instance.stop() == 0

    found = {copy.file_id for copy in copies(instance)}
    assert set(new) <= found
    assert set(old) & found == (set(old) if is_kept else set())


def test_over_the_limit_the_oldest_go_and_the_newest_stays(tmp_path):
    instance = run_with(tmp_path, f'period="365" storage-limit="{3 * FILE_SIZE}"')
    try:
        made = fill(instance, 6)
    finally:
        assert instance.stop() == 0

    found = [copy.file_id for copy in copies(instance)]
    assert len(found) == 3
    assert min(found) >= made[2]
    assert max(found) >= made[-1]


def test_a_start_removes_nothing_that_is_not_followed_by_something_newer(tmp_path):
    instance = run_with(tmp_path, 'unit="HOURS" period="1"')
    try:
        fill(instance, 1)
        assert instance.stop() == 0
        # Years go by.
        old = make_old(instance, 24 * 365)
        instance.start()
        assert max(old) in {copy.file_id for copy in copies(instance)}
    finally:
        assert instance.stop() == 0

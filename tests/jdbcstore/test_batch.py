"""A batch does to a table what its operations would do one after the other."""

from hypothesis import given, settings
from hypothesis import strategies as st

from jdbcstore.batch import Batch, StagedEnd
from jdbcstore.rows import ADD_RECORD, ADD_RECORD_TX, UPDATE_RECORD

IDS = st.integers(1, 6)
# What a store lets through: (kind, id).
STEPS = st.lists(st.tuples(st.sampled_from(["add", "update", "delete", "stage"]), IDS), max_size=40)


def row(record_id, record_type, seq, tx_id=0):
    return (record_id, record_type, 1, b"body", tx_id, b"", seq)


def applied(table, batch):
    """The table, a list of rows, after one transaction of the database."""
    kept = [one for one in table if one[0] not in batch.deleted_ids or one[1] not in (11, 12)]
    return kept + batch.live_rows()


@settings(deadline=None)
@given(stored=st.sets(IDS), steps=STEPS, again=st.booleans())
def test_a_batch_does_what_its_operations_do_one_by_one(stored, steps, again):
    table = [row(record_id, ADD_RECORD, seq) for seq, record_id in enumerate(sorted(stored))]
    expected, live, batch, seq = list(table), set(stored), Batch(), 100
    for kind, record_id in steps:
        seq += 1
        if kind == "add" and (again or record_id not in live):
            one = row(record_id, ADD_RECORD, seq)
            batch.insert(one, is_again=record_id in live)
            expected.append(one)
            live.add(record_id)
        elif kind == "update" and record_id in live:
            one = row(record_id, UPDATE_RECORD, seq)
            batch.insert(one)
            expected.append(one)
        elif kind == "delete":
            batch.delete(record_id)
            expected = [one for one in expected if one[0] != record_id or one[1] > 12]
            live.discard(record_id)
        elif kind == "stage":
            one = row(record_id, ADD_RECORD_TX, seq, tx_id=50)
            batch.stage(one)
            expected.append(one)

    assert applied(table, batch) == expected


def test_an_add_and_its_delete_leave_nothing_to_do():
    batch = Batch()
    batch.insert(row(1, ADD_RECORD, 1))
    batch.insert(row(1, UPDATE_RECORD, 2))
    batch.delete(1)

    assert batch.live_rows() == []
    assert batch.deleted_ids == set()
    assert batch


def test_a_record_deleted_and_added_again_is_deleted_first():
    batch = Batch()
    batch.delete(1)
    batch.insert(row(1, ADD_RECORD, 2))

    assert batch.deleted_ids == {1}
    assert batch.live_rows() == [row(1, ADD_RECORD, 2)]


def test_ends_of_staged_transactions_stand_alone():
    batch = Batch()
    batch.end(StagedEnd(50, is_commit=True, deleted_ids=(1,), seq_offset=7))

    assert not batch.has_other
    assert batch.ends[0].tx_id == 50

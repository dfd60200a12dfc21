"""Loading folders built by hand: transactions, damage, what the running journal takes over."""

import pytest

from journal import Journal, JournalOptions
from journal.errors import JournalDamaged, JournalError, JournalIOError, OptionError
from journal.folder import JournalName, list_files
from journal.index import RecordIndex
from journal.loader import Loader
from tests.journal.build import Built, flip_byte, poke, truncate


def load(folder, **how):
    """(result, loader) of a folder; records that vanished do not stop it unless asked for."""
    how.setdefault("damage", "quarantine")
    loader = Loader(list_files(folder, JournalName()), RecordIndex(), **how)
    return loader.load(), loader


def live_ids(loader):
    return [record.record_id for record in loader.records()]


# --- order and deletes ---


def test_transaction_comes_out_at_its_commit(tmp_path):
    built = Built()
    built.tx_add(9, 1)
    built.add(2)
    built.tx_add(9, 3)
    built.commit(9, 2)
    built.mark().save(tmp_path)

    result, loader = load(tmp_path)

    assert live_ids(loader) == [2, 1, 3]
    assert (result.record_count, result.max_id) == (3, 3)


def test_deletes_count_whatever_their_place(tmp_path):
    built = Built()
    built.add(1)
    built.delete(1)
    built.add(1)
    built.mark().save(tmp_path)

    _, loader = load(tmp_path)

    assert live_ids(loader) == []


@pytest.mark.parametrize("prune_count", [1, 2, 5])
def test_what_is_pruned_while_loading_stays_deleted(tmp_path, prune_count):
    built = Built()
    for number in range(1, 11):
        built.add(number)
        if number % 2:
            built.delete(number)
    built.add(1)
    built.mark().save(tmp_path)

    _, loader = load(tmp_path, prune_count=prune_count)

    assert live_ids(loader) == [2, 4, 6, 8, 10]


def test_update_of_an_unknown_record_is_given(tmp_path):
    built = Built()
    built.update(5)
    built.mark().save(tmp_path)

    result, loader = load(tmp_path)

    assert live_ids(loader) == [5]
    assert result.record_count == 0


def test_files_are_taken_by_id_and_not_by_name(tmp_path):
    for file_id, number in ((1, 9), (2, 3)):
        built = Built(file_id=file_id)
        built.add(file_id)
        built.end().save(tmp_path, number)

    result, loader = load(tmp_path)

    assert live_ids(loader) == [1, 2]
    assert result.last_file_id == 9


def test_empty_folder_loads_nothing(tmp_path):
    result, loader = load(tmp_path)

    assert (result.files, result.record_count, result.max_id) == ([], 0, -1)
    assert live_ids(loader) == []


# --- transactions across files and damage ---


def test_transaction_across_files_is_whole(tmp_path):
    first = Built(file_id=1)
    first.tx_add(9, 1)
    first.end().save(tmp_path)
    second = Built(file_id=2)
    second.tx_add(9, 2)
    second.commit(9, 1)
    second.mark().save(tmp_path)

    _, loader = load(tmp_path)

    assert live_ids(loader) == [1, 2]


@pytest.mark.parametrize("place", ["body", "type", "leader"])
def test_transaction_that_lost_an_operation_in_an_earlier_file_is_dropped_whole(tmp_path, place):
    first = Built(file_id=1)
    first.tx_add(9, 1)
    offset = first.tx_add(9, 2)
    first.add(3)
    path = first.end().save(tmp_path)
    second = Built(file_id=2)
    second.commit(9, 0)
    second.add(4)
    second.mark().save(tmp_path)
    flip_byte(path, offset + {"body": 28, "type": 0, "leader": -9}[place])

    result, loader = load(tmp_path)

    assert live_ids(loader) == [3, 4]
    assert any("dropped" in damage.reason for damage in result.damages)


def test_transaction_begun_behind_a_vanished_record_is_dropped_too(tmp_path):
    """What vanished may have been its first operation."""
    first = Built(file_id=1)
    offset = first.tx_add(9, 1)
    first.tx_add(9, 2)
    path = first.end().save(tmp_path)
    second = Built(file_id=2)
    second.commit(9, 0)
    second.mark().save(tmp_path)
    flip_byte(path, offset)

    _, loader = load(tmp_path)

    assert live_ids(loader) == []


def test_transaction_that_ended_where_a_record_vanished_is_checked_by_its_count(tmp_path):
    built = Built()
    built.tx_add(9, 1)
    offset = built.add(2)
    built.tx_add(9, 3)
    built.commit(9, 2)
    path = built.mark().save(tmp_path)
    flip_byte(path, offset)

    _, loader = load(tmp_path)

    assert live_ids(loader) == [1, 3]


def test_prepared_transaction_outlives_a_record_that_vanished_elsewhere(tmp_path):
    built = Built()
    built.tx_add(9, 1)
    built.prepare(9, 1)
    offset = built.add(2)
    built.add(3)
    path = built.mark().save(tmp_path)
    flip_byte(path, offset)

    result, _ = load(tmp_path)

    assert [tx.tx_id for tx in result.prepared] == [9]


def test_partial_transaction_of_artemis_is_loaded_as_it_does(tmp_path):
    """Without checksums its own view counts; the hole is reported."""
    first = Built(file_id=1, has_leaders=False)
    first.tx_add(9, 1)
    offset = first.tx_add(9, 2)
    first.add(3)
    path = first.save(tmp_path)
    second = Built(file_id=2, has_leaders=False)
    second.commit(9, 0)
    second.save(tmp_path)
    poke(path, offset, b"\x63")

    result, loader = load(tmp_path, damage="fail")

    assert live_ids(loader) == [3, 1]
    assert [damage.offset for damage in result.damages] == [offset]


def test_commit_with_another_count_drops_the_transaction(tmp_path):
    built = Built(has_leaders=False)
    built.tx_add(9, 1)
    built.commit(9, 2)
    built.save(tmp_path)

    result, loader = load(tmp_path)

    assert live_ids(loader) == []
    assert "lacks operations" in result.damages[0].reason


def test_commit_of_an_invalid_prepare_is_dropped_where_artemis_dies(tmp_path):
    first = Built(file_id=1, has_leaders=False)
    first.tx_add(9, 1)
    first.prepare(9, 2)
    first.save(tmp_path)
    second = Built(file_id=2, has_leaders=False)
    second.commit(9, 0)
    second.add(2)
    second.save(tmp_path)

    result, loader = load(tmp_path)

    assert live_ids(loader) == [2]
    assert (result.prepared, result.failed) == ([], [])
    assert "prepared" in result.damages[0].reason


def test_prepared_and_open_transactions_are_reported_in_order(tmp_path):
    built = Built()
    built.tx_add(8, 1)
    built.tx_add(9, 2, b"two")
    built.tx_delete(9, 7)
    built.prepare(9, 2, b"extra")
    built.prepare(10, 0, b"")
    built.mark().save(tmp_path)

    result, _ = load(tmp_path)

    (first, second), (failed,) = result.prepared, result.failed
    assert (first.tx_id, first.extra) == (9, b"extra")
    assert [(r.record_id, r.body) for r in first.records] == [(2, b"two")]
    assert [delete.record_id for delete in first.deletes] == [7]
    assert (second.tx_id, second.extra, second.records) == (10, b"", ())
    assert (failed.tx_id, [r.record_id for r in failed.records]) == (8, [1])


def test_torn_commit_leaves_the_transaction_open(tmp_path):
    built = Built()
    built.tx_add(9, 1)
    built.mark()
    offset = built.commit(9, 1)
    path = built.save(tmp_path)
    flip_byte(path, offset + 8)

    result, loader = load(tmp_path, damage="fail")

    assert live_ids(loader) == []
    assert [tx.tx_id for tx in result.failed] == [9]
    assert [damage.torn for damage in result.damages] == [True]


# --- policies ---


def test_damage_before_a_mark_fails_the_load_and_names_every_place(tmp_path):
    built = Built()
    offsets = [built.add(number) for number in range(1, 6)]
    path = built.mark().save(tmp_path)
    flip_byte(path, offsets[1] + 20)
    flip_byte(path, offsets[3] + 20)

    with pytest.raises(JournalDamaged) as failure:
        load(tmp_path, damage="fail")

    assert [damage.offset for damage in failure.value.damages] == [offsets[1], offsets[3]]
    assert "journal verify" in str(failure.value)


def test_quarantine_goes_on_without_the_damaged_record(tmp_path):
    built = Built()
    built.add(1)
    offset = built.add(2)
    built.add(3)
    path = built.mark().save(tmp_path)
    flip_byte(path, offset + 20)

    result, loader = load(tmp_path)

    assert live_ids(loader) == [1, 3]
    assert len(result.damages) == 1


def test_torn_tail_never_fails_the_load(tmp_path):
    built = Built()
    built.add(1)
    built.mark()
    offset = built.add(2)
    path = built.save(tmp_path)
    flip_byte(path, offset + 20)

    result, loader = load(tmp_path, damage="fail")

    (file,) = result.files
    assert live_ids(loader) == [1]
    assert (file.torn_offset, file.torn_size) == (offset - 9, 36)
    assert (file.append_position, file.next_ordinal) == (offset - 9, 1)
    assert result.torn == result.damages


@pytest.mark.parametrize("how", [{"damage": "ignore"}, {"readahead": 0}, {"readahead": 65}])
def test_wrong_options_are_refused(how):
    with pytest.raises(OptionError):
        Loader([], RecordIndex(), **how)


# --- a header whose leader disowns it ---


def test_flipped_file_id_of_a_data_file_is_damage(tmp_path):
    built = Built()
    built.add(1)
    path = built.end().save(tmp_path)
    Built(file_id=2).save(tmp_path)
    flip_byte(path, 14)

    with pytest.raises(JournalDamaged, match="header damaged"):
        load(tmp_path, damage="fail")


def test_file_of_ours_used_again_by_artemis_is_not_damage(tmp_path):
    """It writes 16 bytes of header, and leaves our leader and records behind them."""
    old = Built()
    old.add(1)
    path = old.end().save(tmp_path)
    reference = Built(file_id=5, has_leaders=False)
    reference.add(2)
    reference.save(tmp_path)
    poke(path, 8, (6).to_bytes(8, "big"))

    result, loader = load(tmp_path, damage="fail")

    assert live_ids(loader) == [2]
    assert result.damages == []


def freed_by_artemis(folder, *, new_id, deleted=True):
    """A file of ours, all dead if `deleted`, under a new id; Artemis wrote no record."""
    old = Built(file_id=3)
    old.add(1)
    old.tx_add(7, 2)
    old.rollback(7)
    if deleted:
        old.delete(1)
    path = old.end().save(folder)
    live = Built(file_id=4)
    live.add(10)
    live.mark().save(folder)
    poke(path, 8, new_id.to_bytes(8, "big"))


def test_file_that_artemis_freed_without_a_record_is_not_damage(tmp_path):
    freed_by_artemis(tmp_path, new_id=5)

    result, loader = load(tmp_path, damage="fail")

    assert live_ids(loader) == [10]
    assert result.damages == []


def test_live_record_in_a_file_with_a_new_id_is_damage(tmp_path):
    """The newest file's id with its lowest bit flipped is the very one that comes next."""
    freed_by_artemis(tmp_path, new_id=5, deleted=False)

    with pytest.raises(JournalDamaged, match="header damaged"):
        load(tmp_path, damage="fail")


def test_delete_of_a_live_record_in_a_file_with_a_new_id_is_damage(tmp_path):
    first = Built(file_id=1)
    first.add(10)
    first.end().save(tmp_path)
    second = Built(file_id=2)
    second.delete(10)
    path = second.mark().save(tmp_path)
    poke(path, 8, (3).to_bytes(8, "big"))

    with pytest.raises(JournalDamaged, match="header damaged"):
        load(tmp_path, damage="fail")


@pytest.mark.parametrize("new_id", [0, 1, 4])
def test_id_that_no_file_could_be_given_is_damage(tmp_path, new_id):
    """Even if the file is dead: a new id is above all others."""
    freed_by_artemis(tmp_path, new_id=new_id)

    with pytest.raises(JournalDamaged, match="header damaged"):
        load(tmp_path, damage="fail")


def test_artemis_records_before_ours_do_not_excuse_a_bad_header(tmp_path):
    reference = Built(file_id=1, has_leaders=False)
    reference.add(1)
    reference.save(tmp_path)
    for file_id in (2, 3):
        built = Built(file_id=file_id)
        built.add(file_id)
        path = built.end().save(tmp_path)
    poke(path, 8, (4).to_bytes(8, "big"))

    with pytest.raises(JournalDamaged, match="header damaged"):
        load(tmp_path, damage="fail")


# --- what the running journal takes over ---


def test_files_say_where_to_go_on(tmp_path):
    first = Built(file_id=1)
    first.add(1)
    first.end().save(tmp_path)
    second = Built(file_id=2)
    second.add(2)
    second.mark().save(tmp_path)
    Built(file_id=3).save(tmp_path)

    result, _ = load(tmp_path)

    assert [(f.file_id, f.has_data, f.is_ended, f.next_ordinal) for f in result.files] == [
        (1, True, True, 1),
        (2, True, False, 1),
        (3, False, False, 0),
    ]
    assert result.files[1].append_position == result.files[1].last_data_position + 9
    assert len({file.slot for file in result.files}) == 3


def test_index_goes_on_with_what_was_loaded(tmp_path):
    built = Built()
    built.add(1)
    built.add(2)
    built.delete(1)
    built.mark().save(tmp_path)
    index = RecordIndex()

    Loader(list_files(tmp_path, JournalName()), index).load()

    assert 2 in index
    assert 1 not in index


def test_shares_find_the_file_that_nothing_needs(tmp_path):
    first = Built(file_id=1)
    first.add(1)
    first.end().save(tmp_path)
    second = Built(file_id=2)
    second.delete(1)
    second.add(2, b"0123456789")
    second.end().save(tmp_path)
    current = Built(file_id=3)
    current.add(3)
    current.mark().save(tmp_path)

    _, loader = load(tmp_path)

    assert [(share.is_reclaimable, share.live_bytes) for share in loader.shares()] == [
        (True, 0),
        (False, 33),
        (False, 27),
    ]


def test_progress_is_told_after_each_file(tmp_path):
    for file_id in (1, 2, 3):
        built = Built(file_id=file_id, size=1024)
        built.add(file_id)
        built.end().save(tmp_path)
    told = []

    load(tmp_path, progress=lambda *done: told.append(done))

    assert told == [(1, 3, 1024, 3072), (2, 3, 2048, 3072), (3, 3, 3072, 3072)]


@pytest.mark.parametrize("readahead", [1, 2, 64])
def test_reading_ahead_changes_nothing(tmp_path, readahead):
    for file_id in range(1, 21):
        built = Built(file_id=file_id, size=1024)
        built.add(file_id)
        built.end().save(tmp_path)

    _, loader = load(tmp_path, readahead=readahead)

    assert live_ids(loader) == list(range(1, 21))


def test_file_that_changes_between_load_and_deliver_is_an_error(tmp_path):
    built = Built()
    built.add(1)
    path = built.mark().save(tmp_path)
    _, loader = load(tmp_path)
    truncate(path, 30)

    with pytest.raises(JournalIOError, match="changed"):
        list(loader.records())


def test_file_that_vanishes_is_an_error_and_no_hang(tmp_path):
    for file_id in (1, 2, 3):
        built = Built(file_id=file_id)
        built.add(file_id)
        path = built.end().save(tmp_path)
    files = list_files(tmp_path, JournalName())
    path.unlink()

    with pytest.raises(JournalIOError, match="cannot open"):
        Loader(files, RecordIndex()).load()


def test_deleted_records_are_not_given(tmp_path):
    built = Built(size=1, has_leaders=False)
    for number in range(1000):
        built.add(number)
        built.delete(number)
    built.add(5000)
    built.save(tmp_path)

    _, loader = load(tmp_path)

    assert live_ids(loader) == [5000]


# --- no flip is silent ---


@pytest.mark.slow
def test_every_flipped_bit_is_reported_or_harmless(tmp_path):
    built = Built(size=1024)
    built.add(1, b"first")
    built.tx_add(9, 2)
    built.update(1)
    built.commit(9, 1)
    built.mark()
    built.delete(1)
    built.add(3)
    path = built.end().save(tmp_path)
    whole = path.read_bytes()
    _, loader = load(tmp_path)
    expected = [(r.record_id, r.body) for r in loader.records()]
    silent = []

    for bit in range(8 * len(built.data)):
        flipped = bytearray(whole)
        flipped[bit // 8] ^= 1 << bit % 8
        path.write_bytes(flipped)
        try:
            result, loader = load(tmp_path, damage="fail")
        except JournalError:
            continue
        if [(r.record_id, r.body) for r in loader.records()] != expected and not result.damages:
            silent.append((bit // 8, bit % 8))

    assert silent == []


# --- what earlier uses of files leave ---


def used_again(folder, old, file_id):
    """A file of ours, free under a new id: our header, and behind it what it held before."""
    path = old.save(folder, 99)
    poke(path, 0, bytes(Built(file_id=file_id).data))
    return path


def test_stale_bytes_that_read_like_a_record_s_head_make_no_file_the_newest(tmp_path):
    """A delete of record 11 ends in 0b, and its size, 18: a transaction's add in file 18."""
    newest = Built(file_id=10)
    newest.add(1)
    newest.mark()
    offset = newest.add(2, bytes(600))
    newest.add(3)
    newest.data[offset : offset + 500] = bytes(500)
    newest.save(tmp_path)
    old = Built(file_id=5)
    old.delete(11)
    used_again(tmp_path, old.end(), 18)

    result, loader = load(tmp_path, damage="fail")

    assert live_ids(loader) == [1]
    assert [damage.torn for damage in result.damages] == [True]
    assert [file.has_data for file in result.files] == [True, False]


def test_delete_outlives_an_update_whose_add_is_gone(tmp_path):
    """Or the update came back, alone, once the file with the delete had been used again."""
    first = Built(file_id=2)
    first.update(14)
    first.add(19)
    first.end().save(tmp_path)
    second = Built(file_id=3)
    second.delete(14)
    second.end().save(tmp_path)
    third = Built(file_id=4)
    third.add(20)
    third.mark().save(tmp_path)

    for _ in range(2):
        journal = Journal(JournalOptions(directory=tmp_path, journal_type="NIO", file_size=16384))
        ids = []
        journal.open()
        journal.load(lambda batch, ids=ids: ids.extend(record.record_id for record in batch))
        journal.reclaim()
        negatives = {file.file_id: file.negatives for file in journal.file_counts()}
        journal.close()

        assert ids == [19, 20]
        assert negatives[3] == {2: 1}


def test_update_without_add_or_delete_pins_nothing(tmp_path):
    built = Built(file_id=2)
    built.update(14)
    built.update(14)
    built.add(19)
    built.end().save(tmp_path)

    result, loader = load(tmp_path, damage="fail")

    assert [record.record_id for record in loader.records()] == [14, 14, 19]
    assert result.record_count == 1

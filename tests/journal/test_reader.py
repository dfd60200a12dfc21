"""What is believed of one file: leaders and marks, torn tails, Artemis's records."""

import mmap

import pytest

from journal.errors import JournalIOError, UnsupportedFormat
from journal.folder import JournalName, list_files
from journal.format import header_block
from journal.reader import FileView, check_headers, read_bytes, read_file, read_folder
from tests.journal.build import Built, flip_byte, poke, record, truncate


def ids(view, verdict="live"):
    return [r.record_id for r in view if r.verdict == verdict]


def three_adds(tmp_path, *, synced=True):
    """Records 1, 2, 3, all synced by a mark behind them unless said otherwise."""
    built = Built()
    offsets = [built.add(1), built.add(2), built.add(3)]
    if synced:
        built.mark()
    return built.save(tmp_path), offsets


# --- whole files ---


def test_whole_file_is_live_and_free_of_damage(tmp_path):
    path, offsets = three_adds(tmp_path)

    view = read_file(path)

    assert [(r.record_id, r.offset, r.checksum, r.ordinal) for r in view] == [
        (number + 1, offset, "ok", number) for number, offset in enumerate(offsets)
    ]
    assert view.damages == []
    assert (view.next_ordinal, view.synced_count, view.is_ended) == (3, 3, False)
    assert view.last_data_position == offsets[2] + 27
    assert view.append_position == view.last_data_position + 9


def test_fields_of_every_kind_are_read(tmp_path):
    built = Built()
    built.add(1, b"a")
    built.update(1, b"u")
    built.tx_add(9, 2, b"t")
    built.tx_delete(9, 1)
    built.prepare(9, 2, b"xid")
    built.commit(9, 2)
    built.rollback(10)
    built.delete(2)
    built.event(5)
    view = read_file(built.save(tmp_path))

    fields = [(r.kind, r.record_id, r.tx_id, r.body, r.records_in_file) for r in view]

    assert fields == [
        ("add", 1, None, b"a", None),
        ("update", 1, None, b"u", None),
        ("add_tx", 2, 9, b"t", None),
        ("delete_tx", 1, 9, b"", None),
        ("prepare", None, 9, b"xid", 2),
        ("commit", None, 9, None, 2),
        ("rollback", None, 10, None, None),
        ("delete", 2, None, None, None),
        ("event", 5, None, b"", None),
    ]
    assert view.damages == []


def test_file_closed_by_an_end_mark_is_ended(tmp_path):
    built = Built()
    built.add(1)

    view = read_file(built.end().save(tmp_path), is_newest=False)

    assert view.is_ended
    assert view.damages == []


def test_event_only_file_holds_no_data(tmp_path):
    built = Built()
    built.event(1)

    assert not read_file(built.save(tmp_path)).has_data


# --- damage before the last mark ---


def test_flipped_body_byte_before_the_mark_is_damage(tmp_path):
    path, offsets = three_adds(tmp_path)
    flip_byte(path, offsets[1] + 20)

    view = read_file(path)

    assert ids(view) == [1, 3]
    assert ids(view, "damaged") == [2]
    (damage,) = view.damages
    assert (damage.offset, damage.torn) == (offsets[1], False)
    assert "checksum" in damage.reason


def test_flipped_type_byte_before_the_mark_is_a_missing_record(tmp_path):
    path, offsets = three_adds(tmp_path)
    poke(path, offsets[1], b"\x63")

    view = read_file(path)

    assert ids(view) == [1, 3]
    assert [damage.torn for damage in view.damages] == [False]
    assert "missing" in view.damages[0].reason


def test_flipped_check_size_before_the_mark_is_damage_at_the_record(tmp_path):
    path, offsets = three_adds(tmp_path)
    flip_byte(path, offsets[1] + 26)

    view = read_file(path)

    assert ids(view) == [1, 3]
    assert view.damages[0].offset == offsets[1]


def test_lost_leader_makes_its_record_suspect(tmp_path):
    path, offsets = three_adds(tmp_path)
    flip_byte(path, offsets[1] - 9)

    view = read_file(path)

    assert ids(view) == [1, 3]
    assert ids(view, "suspect") == [2]
    assert not any(damage.torn for damage in view.damages)


def test_last_record_lost_before_the_mark_is_damage(tmp_path):
    path, offsets = three_adds(tmp_path)
    poke(path, offsets[2] - 9, bytes(36))

    view = read_file(path)

    assert ids(view) == [1, 2]
    assert [damage.torn for damage in view.damages] == [False]
    assert view.next_ordinal == 3


def test_all_records_lost_before_the_mark_is_damage(tmp_path):
    path, offsets = three_adds(tmp_path)
    poke(path, 25, bytes(offsets[2] + 27 - 25))

    view = read_file(path)

    assert list(view) == []
    assert view.has_data
    assert "3 records are missing" in view.damages[0].reason


def test_record_in_a_body_stays_in_it_when_the_record_around_is_damaged(tmp_path):
    """One flipped bit in the size of a record must not bring its body to life."""
    inner = Built(has_leaders=False)
    inner.add(666)
    built = Built()
    built.add(1)
    offset = built.add(2, bytes(5) + bytes(inner.data[16:]) + bytes(5))
    built.add(3)
    path = built.mark().save(tmp_path)
    flip_byte(path, offset + 17, 0x01)

    view = read_file(path)

    assert ids(view) == [1, 3]
    assert ids(view, "suspect") == [666]


def test_copy_of_our_own_record_in_a_damaged_body_is_suspect(tmp_path):
    built = Built()
    offset = built.add(1)
    copied = bytes(built.data[offset - 9 :])
    outer = built.add(2, b"xx" + copied)
    built.add(3)
    path = built.mark().save(tmp_path)
    flip_byte(path, outer + 17, 0x01)

    view = read_file(path)

    assert ids(view) == [1, 3]
    assert any("copy" in damage.reason for damage in view.damages)


def test_damage_in_an_older_file_without_end_mark_is_damage(tmp_path):
    path, offsets = three_adds(tmp_path, synced=False)
    flip_byte(path, offsets[2] + 20)

    view = read_file(path, is_newest=False)

    assert [damage.torn for damage in view.damages] == [False]


def test_mark_claims_records_and_not_places(tmp_path):
    """A mark opens a flush with what is synced, which may be less than what stands before it."""
    built = Built()
    built.add(1)
    second = built.add(2)
    built.mark(1)
    built.add(3)
    path = built.save(tmp_path)
    flip_byte(path, second + 20)

    view = read_file(path)

    assert ids(view) == [1]
    assert [damage.torn for damage in view.damages] == [True]


# --- the torn tail ---


def test_bad_last_record_after_the_mark_is_torn(tmp_path):
    built = Built()
    built.add(1)
    built.mark()
    offset = built.add(2)
    path = built.save(tmp_path)
    flip_byte(path, offset + 20)

    view = read_file(path)

    assert ids(view) == [1]
    (damage,) = view.damages
    assert damage.torn
    assert (damage.offset, damage.size) == (offset - 9, 9 + 27)
    assert view.append_position == offset - 9
    assert view.next_ordinal == 1


def test_good_records_behind_the_first_failure_are_cut(tmp_path):
    path, offsets = three_adds(tmp_path, synced=False)
    poke(path, offsets[1] - 9, bytes(36))

    view = read_file(path)

    assert ids(view) == [1]
    assert ids(view, "torn") == [3]
    assert (view.next_ordinal, view.append_position) == (1, offsets[0] + 27)


def test_stale_mark_and_leader_of_an_earlier_use_are_nothing(tmp_path):
    old = Built(file_id=1)
    for number in range(1, 9):
        old.add(number)
    old.end()
    new = Built(file_id=7)
    new.add(100)
    new.mark()
    new.data += old.data[len(new.data) :]

    view = read_file(new.save(tmp_path))

    assert ids(view) == [100]
    assert view.damages == []
    assert view.next_ordinal == 1


@pytest.mark.parametrize("cut", range(25, 25 + 9 + 27))
def test_file_cut_within_its_only_record_has_none_and_is_reported(tmp_path, cut):
    built = Built()
    built.add(1)
    path = built.save(tmp_path)
    truncate(path, cut)

    view = read_file(path)

    assert list(view) == []
    assert f"cut from 16384 to {cut} bytes" in [damage.reason for damage in view.damages]
    assert not all(damage.torn for damage in view.damages)


@pytest.mark.parametrize("cut", range(16, 25))
def test_file_cut_within_its_header_leader_is_reported(tmp_path, cut):
    path = Built().save(tmp_path)
    truncate(path, cut)

    (damage,) = read_file(path).damages

    assert damage.reason == f"cut to {cut} bytes, within its header or right behind it"


@pytest.mark.parametrize("size", [0, 1, 511, 512, 16383, 16384, 20000, 1 << 33, 1 << 40])
def test_header_says_the_size_in_whole_sectors_where_it_fits(size):
    block = header_block(1, file_size=size)
    said = size // 512 * 512 if size < 1 << 33 else 0

    short = FileView("1.amq", block.ljust(max(25, min(said - 1, 16000)), b"\0"))
    long = FileView("1.amq", block.ljust(max(25, min(said, 1 << 16)), b"\0"))

    assert short.header_checksum == long.header_checksum == "ok"
    assert len(short.damages) == (said > 25)
    assert long.damages == []


# --- records of Artemis among ours ---


def test_record_appended_by_artemis_is_live(tmp_path):
    built = Built()
    built.add(1)
    built.add(2, by_artemis=True)
    built.add(3, by_artemis=True)

    view = read_file(built.save(tmp_path))

    assert ids(view) == [1, 2, 3]
    assert [r.checksum for r in view] == ["ok", "none", "none"]
    assert view.damages == []


def test_record_appended_by_artemis_at_a_block_is_live(tmp_path):
    built = Built()
    built.add(1)
    built.mark()
    built.pad(4096)
    built.add(2, by_artemis=True)

    view = read_file(built.save(tmp_path))

    assert ids(view) == [1, 2]
    assert view.damages == []


def test_ours_after_those_of_artemis_after_ours_are_all_live(tmp_path):
    built = Built()
    built.add(1)
    built.add(2, by_artemis=True)
    built.mark()
    built.add(3)

    view = read_file(built.mark().save(tmp_path))

    assert ids(view) == [1, 2, 3]
    assert view.damages == []


def test_record_far_behind_our_last_one_is_not_of_artemis(tmp_path):
    """It may be part of a body whose record's first sector never reached the disk."""
    built = Built()
    built.add(1)
    built.mark()
    built.data += bytes(100)
    built.add(666, by_artemis=True)

    view = read_file(built.save(tmp_path))

    assert ids(view) == [1]
    assert [damage.torn for damage in view.damages] == [True]


# --- Artemis went on after our crash ---


def torn_then(*, tear_at=100, body=600):
    """One synced record, then one whose bytes from `tear_at` on never reached the disk."""
    built = Built()
    built.add(1)
    built.mark()
    offset = built.add(2, b"\xaa" * body)
    del built.data[offset + tear_at :]
    return built, offset


def appended_behind(built, *, is_newest=True):
    data = bytes(built.data).ljust(built.size, b"\0")
    return FileView("appended_behind", data, is_newest=is_newest)


@pytest.mark.parametrize("is_newest", [True, False])
def test_record_right_at_the_end_of_our_last_whole_one_is_of_artemis(is_newest):
    """There a leader, a mark or padding of ours would stand."""
    built, offset = torn_then()
    torn = bytes(built.data[offset - 18 :])
    del built.data[offset - 18 :]
    built.add(50, by_artemis=True)
    built.data += torn[45:]

    view = appended_behind(built, is_newest=is_newest)

    assert ids(view) == [1, 50]
    assert all(damage.torn and damage.size == 0 for damage in view.damages)


@pytest.mark.parametrize("is_newest", [True, False])
def test_whole_records_of_the_torn_tail_count_once_artemis_went_on(is_newest):
    """It has loaded them, and what it wrote may rest on them."""
    built, _ = torn_then()
    built.pad()
    built.data += bytes(512)
    built.add(3)
    built.add(50, by_artemis=True)

    view = appended_behind(built, is_newest=is_newest)

    assert ids(view) == [1, 3, 50]
    assert [damage.torn for damage in view.damages] == [True]
    assert view.is_closed
    assert view.next_ordinal == 3


def test_bad_record_of_the_torn_tail_stays_out_when_artemis_went_on():
    built = Built()
    built.add(1)
    built.mark()
    offset = built.add(2)
    built.data[offset + 20] ^= 0xFF
    built.add(50, by_artemis=True)

    view = appended_behind(built)

    assert ids(view) == [1, 50]
    assert ids(view, "torn") == [2]


def test_record_at_a_block_beyond_what_the_torn_one_claims_is_live():
    built, _ = torn_then(body=200)
    built.pad()
    built.add(50, by_artemis=True)

    view = appended_behind(built)

    assert ids(view) == [1, 50]
    assert [damage.torn for damage in view.damages] == [True]


def test_records_that_run_past_what_the_torn_one_claims_are_live():
    built, _ = torn_then(body=600)
    built.pad()
    built.add(50, bytes(400), by_artemis=True)
    built.pad()
    built.add(51, by_artemis=True)

    view = appended_behind(built)

    assert ids(view) == [1, 50, 51]
    assert [damage.torn for damage in view.damages] == [True]


@pytest.mark.parametrize("is_newest", [True, False])
def test_record_at_a_block_within_what_the_torn_one_claims_stops_the_load(is_newest):
    """It may be Artemis's or part of the torn body: not believed, and never cut."""
    built, _ = torn_then(body=4000)
    built.pad()
    built.add(50, by_artemis=True)

    view = appended_behind(built, is_newest=is_newest)

    assert ids(view) == [1]
    assert ids(view, "suspect") == [50]
    assert [damage.torn for damage in view.damages] == [False, True]
    assert view.is_closed


def test_record_off_every_block_within_a_torn_body_is_cut_with_it():
    built, _ = torn_then(body=4000)
    built.data += bytes(3)
    built.add(666, by_artemis=True)
    built.add(667, by_artemis=True)

    view = appended_behind(built)

    assert ids(view) == [1]
    assert ids(view, "torn") == [666, 667]
    assert not view.is_closed


def test_artemis_record_before_our_torn_tail_is_not_cut_with_it():
    built = Built()
    built.add(1)
    built.add(50, by_artemis=True)
    end = len(built.data)
    built.add(2)
    built.add(3)
    built.data[end : end + 36] = bytes(36)

    view = appended_behind(built)

    assert ids(view) == [1, 50]
    assert ids(view, "torn") == [3]
    assert not view.is_closed
    assert view.append_position == end


# --- files of Artemis ---


def test_hole_between_records_without_checksums_is_reported(tmp_path):
    built = Built(has_leaders=False)
    built.add(1)
    offset = built.add(2)
    built.add(3)
    path = built.save(tmp_path)
    flip_byte(path, offset + 26)

    view = read_file(path)

    assert ids(view) == [1, 3]
    (damage,) = view.damages
    assert (damage.offset, damage.size, damage.torn) == (offset, 27, False)


def test_broken_tail_without_checksums_is_torn(tmp_path):
    built = Built(has_leaders=False)
    built.add(1)
    offset = built.add(2)
    path = built.save(tmp_path)
    flip_byte(path, offset + 26)

    view = read_file(path)

    assert ids(view) == [1]
    assert [(damage.offset, damage.torn) for damage in view.damages] == [(offset, True)]


def test_zeros_between_flushes_are_not_a_hole(tmp_path):
    built = Built(has_leaders=False)
    built.pad(4096)
    built.add(1)
    built.pad(4096)
    built.add(2)

    assert read_file(built.save(tmp_path)).damages == []


@pytest.mark.parametrize("size", [-1, -(2**31), 2**31 - 1])
def test_impossible_length_is_skipped_without_allocation(tmp_path, size):
    built = Built(has_leaders=False)
    built.add(1)
    offset = built.add(2)
    built.add(3)
    path = built.save(tmp_path)
    poke(path, offset + 14, size.to_bytes(4, "big", signed=True))

    view = read_file(path)

    assert ids(view) == [1, 3]
    assert len(view.damages) == 1


# --- headers ---


def test_foreign_version_is_refused(tmp_path):
    path = Built(has_leaders=False).save(tmp_path)
    poke(path, 3, b"\x09")

    with pytest.raises(UnsupportedFormat, match="format version 9"):
        read_file(path)
    with pytest.raises(UnsupportedFormat, match="format version 9"):
        check_headers(list_files(tmp_path, JournalName()))


def test_headers_of_another_user_version_are_refused(tmp_path):
    three_adds(tmp_path)
    files = list_files(tmp_path, JournalName())

    check_headers(files)

    with pytest.raises(UnsupportedFormat, match="user version 0"):
        check_headers(files, user_version=1)


@pytest.mark.parametrize("offset", [0, 3, 5, 7])
def test_flipped_version_of_a_checksummed_header_is_damage(tmp_path, offset):
    path, _ = three_adds(tmp_path)
    flip_byte(path, offset, 0x04)

    view = read_file(path)
    check_headers(list_files(tmp_path, JournalName()))

    assert any(damage.offset == 0 for damage in view.damages)
    assert not view.damages[0].torn


def test_flipped_file_id_names_the_id_that_the_header_leader_vouches_for(tmp_path):
    path, _ = three_adds(tmp_path)
    flip_byte(path, 15, 0x40)

    view = read_file(path)

    assert view.header_claim == 1
    assert list(view) == []


def test_short_file_is_said_to_be_short(tmp_path):
    path = Built().save(tmp_path)
    truncate(path, 15)

    assert read_file(path).is_short


def test_random_bytes_never_raise_anything_else(tmp_path):
    import random

    noise = random.Random(11)
    for _ in range(50):
        data = bytearray(noise.randbytes(4096))
        data[:16] = bytes.fromhex("00000002000000000000000000000001")

        view = FileView("noise", bytes(data))

        assert isinstance(view.damages, list)


# --- folders and files ---


def test_newest_file_with_data_alone_may_be_torn(tmp_path):
    for file_id in (1, 2):
        built = Built(file_id=file_id)
        offset = built.add(file_id)
        path = built.save(tmp_path)
        flip_byte(path, offset + 20)
    Built(file_id=3).save(tmp_path)

    views = list(read_folder(list_files(tmp_path, JournalName())))

    assert [[damage.torn for damage in view.damages] for view in views] == [[False], [True], []]


def test_link_is_not_followed(tmp_path):
    target = Built().save(tmp_path)
    link = tmp_path / "activemq-data-2.amq"
    link.symlink_to(target)

    with pytest.raises(JournalIOError, match="not a regular file"):
        read_bytes(link)


def test_folder_named_like_a_file_is_refused(tmp_path):
    (tmp_path / "activemq-data-2.amq").mkdir()

    with pytest.raises(JournalIOError, match="not a regular file"):
        list_files(tmp_path, JournalName())


def test_buffer_is_used_again_and_grows(tmp_path):
    buffer = bytearray()
    small, large = Built(size=1024).save(tmp_path), Built(file_id=2, size=4096).save(tmp_path)

    for path in (large, small):
        view = read_bytes(path, buffer)
        assert bytes(view) == path.read_bytes()
        view.release()

    assert len(buffer) == 4096


def test_file_of_more_than_256_mib_is_mapped(tmp_path):
    built = Built()
    built.add(1)
    path = built.mark().save(tmp_path)
    with path.open("r+b") as file:
        file.truncate((256 << 20) + 4096)

    data = read_bytes(path)

    assert isinstance(data.obj, mmap.mmap)
    assert bytes(data[: len(built.data)]) == built.data
    assert ids(FileView(path.name, data)) == [1]


def test_record_of_format_one_is_read(tmp_path):
    import struct

    path = tmp_path / "activemq-data-1.amq"
    body = struct.pack(">qi", 5, 2) + b"\7hi"
    path.write_bytes(struct.pack(">iiq", 1, 0, 1) + record(11, 1, body, version=1))

    assert [(r.record_id, r.body) for r in read_file(path)] == [(5, b"hi")]

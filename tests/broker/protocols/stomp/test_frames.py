"""Frames from bytes, cut in all ways, and from bytes that are none."""

import random
import time

import pytest

from broker.protocols.stomp.errors import StompError
from broker.protocols.stomp.frames import FrameReader, Limits, Part, encode_frame
from broker.protocols.stomp.versions import Version

LIMITS = Limits(head_size=1000, header_count=20, body_size=2000, stream_size=500)
V1_0, V1_1, V1_2 = Version


def read(data, version=V1_2, cut=None, limits=LIMITS):
    """What a reader gives for bytes that come in pieces: (command, headers, body)."""
    reader = FrameReader(limits)
    reader.version = version
    found, streamed = [], None
    pieces = [data] if cut is None else [data[at : at + cut] for at in range(0, len(data), cut)]
    for piece in pieces:
        reader.feed(piece)
        while (one := reader.next()) is not None:
            if isinstance(one, Part):
                streamed[2] += one.data
                if one.is_last:
                    found.append(tuple(streamed))
            elif one.is_streamed:
                streamed = [one.command, one.headers, b""]
            else:
                found.append((one.command, one.headers, one.body))
    return found


def refusal(data, version=V1_2, limits=LIMITS):
    """The error about bytes, which is the same however they are cut."""
    errors = []
    for cut in (None, 1, 7):
        with pytest.raises(StompError) as caught:
            read(data, version, cut, limits)
        errors.append(caught.value)
    assert all(one.closes for one in errors)
    return errors[0].text


CONVERSATION = b"".join(
    (
        b"SEND\ndestination:a\ncontent-length:3\n\n\0b\0\0\n\n\r\n",
        b"SUBSCRIBE\nid:1\ndestination:q\\c\\\\\\n\\r\n\n\0",
        b"SEND\r\ndestination:a\r\nempty:\r\nspaces:  x \r\n\r\ntext\0\n",
        b"SEND\ndestination:b\ncontent-length:900\n\n" + b"\0\n" * 450 + b"\0",
        b"DISCONNECT\n\n\0\n",
    )
)
MEANT = [
    ("SEND", {"destination": "a", "content-length": "3"}, b"\0b\0"),
    ("SUBSCRIBE", {"id": "1", "destination": "q:\\\n\r"}, b""),
    ("SEND", {"destination": "a", "empty": "", "spaces": "  x "}, b"text"),
    ("SEND", {"destination": "b", "content-length": "900"}, b"\0\n" * 450),
    ("DISCONNECT", {}, b""),
]


@pytest.mark.parametrize("cut", [None, 1, 2, 3, 5, 64, 1000])
def test_frames_are_the_same_however_they_are_cut(cut):
    assert read(CONVERSATION, cut=cut) == MEANT


def test_many_frames_come_out_of_one_feed_and_pieces_between_them():
    data = CONVERSATION * 40

    for cut in (None, 4096, 100):
        assert read(data, cut=cut) == MEANT * 40


@pytest.mark.parametrize(
    ("version", "raw", "meant"),
    [
        (V1_0, r"a\nb", r"a\nb"),
        (V1_0, "  two blanks ", "two blanks "),
        (V1_1, r"a\nb\c\\", "a\nb:\\"),
        (V1_1, "  two blanks ", "  two blanks "),
        (V1_1, "a\rb", "a\rb"),
        (V1_2, r"a\nb\c\\\r", "a\nb:\\\r"),
        (V1_2, "  two blanks ", "  two blanks "),
        # Artemis drops colons that are not escaped: `a::b` would be another address.
        (V1_0, "queue://a::b", "queue://a::b"),
        (V1_1, "queue://a::b", "queue://a::b"),
        (V1_2, "queue://a::b", "queue://a::b"),
        (V1_2, "äöü €", "äöü €"),
    ],
)
def test_a_value_is_what_its_version_says(version, raw, meant):
    ((_, headers, _),) = read(f"SEND\nn:{raw}\n\n\0".encode(), version)

    assert headers == {"n": meant}


def test_names_have_escapes_too():
    ((_, headers, _),) = read(b"SEND\na\\cb:1\n\n\0")

    assert headers == {"a:b": "1"}


@pytest.mark.parametrize(("version", "kept"), [(V1_0, "2"), (V1_1, "2"), (V1_2, "1")])
def test_of_repeated_headers_the_first_counts_in_1_2_and_the_last_before(version, kept):
    ((_, headers, _),) = read(b"SEND\nn:1\nn:2\n\n\0", version)

    assert headers == {"n": kept}


def test_the_first_frame_has_the_rules_of_1_0_and_its_line_ends_stay():
    reader = FrameReader(LIMITS)
    reader.feed(b"CONNECT\r\naccept-version:1.1\r\nlogin: a\\n\r\n\r\n\0\r\n")

    first = reader.next()
    reader.version = V1_1
    reader.feed(b"SEND\r\nn: \\c\r\n\r\nbody\0")
    second = reader.next()

    assert first.headers == {"accept-version": "1.1", "login": "a\\n"}
    assert (second.headers, second.body) == ({"n": " :"}, b"body")


@pytest.mark.parametrize(
    ("version", "data", "text"),
    [
        (V1_2, b"SEN\n\n\0", "AMQ339023"),
        (V1_2, b"send\n\n\0", "AMQ339023"),
        (V1_2, b"GET / HTTP/1.1\r\n\r\n", "AMQ339023"),
        (V1_2, b"A" * 50, "AMQ339023"),
        (V1_1, b"SEND\r\n\r\n\0", "AMQ339023"),
        (V1_2, b"SEND\nno colon\n\n\0", "AMQ339023"),
        (V1_2, b"SEND\n:no name\n\n\0", "AMQ339023"),
        (V1_2, b"SEND\ndestination:a\0", "AMQ339023"),
        (V1_2, b"SEND\nn:\xff\n\n\0", "AMQ339023"),
        (V1_2, b"SEND\nn:\\t\n\n\0", "AMQ339040"),
        (V1_2, b"SEND\nn:\\\n\n\0", "AMQ339040"),
        (V1_1, b"SEND\nn:\\r\n\n\0", "AMQ339040"),
        (V1_2, b"SEND\nn:a\rb\n\n\0", "AMQ339020"),
        (V1_2, b"SEND\nn:a\r\r\n\n\0", "AMQ339019"),
        (V1_2, b"\n\rSEND\n\n\0", "AMQ339020"),
        (V1_2, b"SEND\ncontent-length:x\n\n\0", "content-length"),
        (V1_2, b"SEND\ncontent-length:-1\n\n\0", "content-length"),
        (V1_2, b"SEND\ncontent-length:99999999999999999999\n\n\0", "content-length"),
        (V1_2, b"SEND\ncontent-length:2\n\nabc\0", "no NUL behind"),
        (V1_2, b"SEND\ncontent-length:600\n\n" + b"a" * 601 + b"\0", "no NUL behind"),
        (V1_2, b"SEND\n" + b"n:1\n" * 21 + b"\n\0", "too large"),
        (V1_2, b"SEND\nn:" + b"1" * 1000, "too large"),
        (V1_2, b"SEND\n\n" + b"1" * 2001, "too large"),
        (V1_2, b"ACK\ncontent-length:2001\n\n", "too large"),
    ],
)
def test_bytes_that_are_no_frame_are_refused_however_they_are_cut(version, data, text):
    assert text in refusal(data, version)


def test_behind_an_error_nothing_is_read():
    reader = FrameReader(LIMITS)
    reader.feed(b"NO\n\n\0SEND\n\n\0")

    with pytest.raises(StompError):
        reader.next()

    assert reader.next() is None


def test_a_large_body_takes_no_memory_and_its_end_is_seen():
    reader = FrameReader(Limits(1000, 20, 2000, 1000))
    size = 3_000_000
    reader.feed(b"SEND\ncontent-length:%d\n\n" % size)
    assert reader.next().is_streamed
    got = 0
    for _ in range(size // 100_000):
        reader.feed(bytes(100_000))
        while (part := reader.next()) is not None:
            assert not part.is_last
            got += len(part.data)
    # The last byte waits for the NUL behind it.
    assert got == size - 1
    reader.feed(b"\0")

    assert reader.next() == Part(b"\0", True)


def test_a_body_that_comes_byte_by_byte_costs_no_more_than_its_size():
    """Each byte looked at once: not the whole again for every one that comes."""
    reader = FrameReader(Limits(1000, 20, 1 << 20, -1))
    reader.feed(b"SEND\n\n")
    began = time.process_time()
    for _ in range(200_000):
        reader.feed(b"x")
        assert reader.next() is None
    reader.feed(b"\0")

    assert len(reader.next().body) == 200_000
    assert time.process_time() - began < 20


@pytest.mark.parametrize(
    ("version", "raw"),
    [(V1_0, "a:b\\n\\"), (V1_1, r"a\cb\n" + "\\\\"), (V1_2, r"a\cb\n" + "\\\\")],
)
def test_what_is_written_has_the_escapes_of_its_version(version, raw):
    data = encode_frame("MESSAGE", [("n", "a:b\n\\")], version, b"body")

    assert data == f"MESSAGE\nn:{raw}\n\nbody\0\n".encode()


def test_connected_is_written_without_escapes():
    assert b"response-id:a:b\n" in encode_frame("CONNECTED", [("response-id", "a:b")], V1_2)


def test_nothing_in_a_header_ends_the_frame_or_begins_another_header():
    for version in Version:
        data = encode_frame("MESSAGE", [("a\nb:c", "x\0y\nz:1")], version)
        head = data.removesuffix(b"\n\n\0\n")

        assert head.count(b"\n") == 1, data
        assert b"\0" not in head, data


def mutated(seeded, data):
    """Bytes with some changed, left out, doubled or put in."""
    made = bytearray(data)
    for _ in range(seeded.randrange(1, 8)):
        at = seeded.randrange(len(made))
        kind = seeded.randrange(5)
        if kind == 0:
            made[at] = seeded.randrange(256)
        elif kind == 1:
            del made[at : at + seeded.randrange(1, 10)]
        elif kind == 2:
            made[at:at] = made[at : at + seeded.randrange(1, 30)]
        elif kind == 3:
            made[at:at] = seeded.choice((b"\0", b"\n", b"\r", b":", b"\\", b"\n\n", b"\xff"))
        else:
            made[at:at] = seeded.choice((b"content-length:", b"SEND\n", b"99999999999"))
        made = made or bytearray(b"x")
    return bytes(made)


def outcome(data, version, cut):
    """What comes of bytes: frames, and whether they end in an error."""
    reader = FrameReader(LIMITS)
    reader.version = version
    found = []
    try:
        for at in range(0, len(data), cut):
            reader.feed(data[at : at + cut])
            while (one := reader.next()) is not None:
                if isinstance(one, Part):
                    found[-1][2] += one.data
                    found[-1][3] = one.is_last
                else:
                    found.append([one.command, one.headers, bytearray(one.body), False])
    except StompError:
        return found, True
    return found, False


def complete(found):
    return [one for one in found if one[3] or not one[1].get("content-length", "0") > "4"]


@pytest.mark.parametrize("seed", range(4))
def test_mutated_frames_are_the_same_whole_and_cut_and_raise_nothing_else(seed):
    """A corpus of mutations: whole, byte by byte, cut at any place."""
    seeded = random.Random(seed)
    for _ in range(120):
        data = mutated(seeded, CONVERSATION)
        version = seeded.choice(list(Version))
        whole = outcome(data, version, len(data))
        for cut in (1, seeded.randrange(2, 200)):
            pieces = outcome(data, version, cut)
            assert pieces[1] == whole[1], (seed, data)
            assert [one[:2] for one in pieces[0]] == [one[:2] for one in whole[0]], (seed, data)


@pytest.mark.slow
def test_a_minute_of_mutations_crashes_hangs_and_grows_nothing(effort):
    seeded = random.Random(20)
    deadline = time.monotonic() + effort(60, least=15)
    count = 0
    while time.monotonic() < deadline:
        data = mutated(seeded, CONVERSATION)
        version = seeded.choice([None, *Version])
        outcome(data, version, seeded.choice((1, 2, 7, 64, len(data))))
        count += 1
    assert count > 1000

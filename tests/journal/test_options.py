"""Every parameter's limits, what is said beyond them, and the corrections of Artemis."""

import doctest
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Literal, get_type_hints

import pytest

import journal.options
from journal.errors import OptionError
from journal.options import (
    PARSED,
    JournalChanges,
    JournalOptions,
    JournalSettings,
    JournalType,
    parse_duration_ns,
    parse_size,
)

# Name, smallest, largest value that is taken (None: no limit), and what a message calls it.
BOUNDS = [
    ("file_size", 1024, 0x7FFFFFFF, "journal-file-size"),
    ("min_files", 2, None, "journal-min-files"),
    ("pool_files", -1, None, "journal-pool-files"),
    ("max_io", 1, None, "journal-max-io"),
    ("buffer_timeout_ns", 0, None, "journal-buffer-timeout"),
    ("buffer_size", 1024, None, "journal-buffer-size"),
    ("compact_min_files", 0, None, "journal-compact-min-files"),
    ("compact_percentage", 0, 100, "journal-compact-percentage"),
    ("lock_acquisition_timeout_ms", -1, None, "journal-lock-acquisition-timeout"),
    ("device_block_size", 512, 65536, "journal-device-block-size"),
    ("max_attic_files", 0, None, "journal-max-attic-files"),
    ("retention_period_ms", -1, None, "journal-retention-period"),
    ("retention_max_bytes", -1, None, "journal-retention-max-bytes"),
]


def options(**changes):
    return JournalOptions(directory="here", **changes)


def refusal(**changes):
    """What is said about it: one line."""
    with pytest.raises(OptionError) as refused:
        options(**changes)
    message = str(refused.value)
    assert "\n" not in message
    return message


def test_examples_in_the_docstrings_hold():
    assert doctest.testmod(journal.options).failed == 0


def test_defaults_are_those_of_artemis():
    defaults = options()

    assert defaults.journal_type is JournalType.ASYNCIO
    assert (defaults.file_size, defaults.min_files, defaults.pool_files) == (10 << 20, 2, -1)
    assert (defaults.compact_min_files, defaults.compact_percentage) == (10, 30)
    assert defaults.buffer_size == 501_760
    assert defaults.lock_acquisition_timeout_ms == -1
    assert defaults.datasync
    assert defaults.sync_transactional
    assert defaults.sync_non_transactional
    assert defaults.create_directory
    assert (defaults.prefix, defaults.extension) == ("activemq-data", "amq")
    assert (defaults.max_attic_files, defaults.file_open_timeout_s) == (10, 5)
    assert (defaults.retention_period_ms, defaults.retention_max_bytes) == (-1, -1)


@pytest.mark.parametrize(
    ("kind", "max_io", "timeout_ns"),
    [
        ("NIO", 1, 3_333_333),
        ("MAPPED", 1, 3_333_333),
        ("ASYNCIO", 4096, 500_000),
        ("IO_URING", 4096, 500_000),
    ],
)
def test_some_defaults_are_the_type_s(kind, max_io, timeout_ns):
    by_default = options(journal_type=kind)
    given = options(journal_type=kind, max_io=7, buffer_timeout_ns=0)

    assert by_default.effective_max_io() == max_io
    assert by_default.effective_buffer_timeout_ns() == timeout_ns
    assert given.effective_max_io() == 7
    assert given.effective_buffer_timeout_ns() == 0


@pytest.mark.parametrize(("name", "least", "most", "shown"), BOUNDS)
def test_the_limits_themselves_are_taken(name, least, most, shown):
    assert getattr(options(**{name: least}), name) == least
    if most is not None:
        assert getattr(options(**{name: most}), name) == most


@pytest.mark.parametrize(("name", "least", "most", "shown"), BOUNDS)
def test_what_is_beyond_a_limit_is_refused_by_name_and_value(name, least, most, shown):
    beyond = [least - 1] if most is None else [least - 1, most + 1]

    for value in beyond:
        message = refusal(**{name: value})
        assert message.startswith(f"{shown} is {value};")
        assert any(str(limit) in message for limit in (least, most))


@pytest.mark.parametrize("name", [name for name, *_ in BOUNDS if name != "device_block_size"])
@pytest.mark.parametrize("value", ["many", 1.5, True])
def test_a_number_is_a_whole_number(name, value):
    assert repr(value) in refusal(**{name: value})


@pytest.mark.parametrize("size", [513, 1000, 3072, 0, -512])
def test_a_block_is_a_power_of_two(size):
    assert refusal(device_block_size=size).endswith("a power of two from 512 to 65536")


@pytest.mark.parametrize("seconds", [0, -1, float("nan")])
def test_the_time_to_open_a_file_is_not_nothing(seconds):
    assert refusal(file_open_timeout_s=seconds).endswith("more than 0 seconds")


def test_a_type_that_does_not_exist_is_refused_with_those_that_do():
    message = refusal(journal_type="NIO2")

    assert message == "journal-type is 'NIO2'; it is one of NIO, ASYNCIO, MAPPED, IO_URING"


@pytest.mark.parametrize("name", ["prefix", "extension"])
@pytest.mark.parametrize("value", ["", "../x", "a/b", ".", "a b", "a\n", "-x", "ä"])
def test_parts_of_a_file_name_lead_nowhere_else(name, value):
    assert refusal(**{name: value}).startswith(f"{name} is {value!r};")


def test_damage_fails_or_is_quarantined():
    assert options(damage="quarantine").damage == "quarantine"
    assert refusal(damage="ignore") == "damage is 'ignore'; it is 'fail' or 'quarantine'"


def test_a_history_needs_a_limit():
    assert "retention" in refusal(retention_directory="history")
    kept = options(retention_directory="history", retention_period_ms=1)

    assert kept.retention_directory == Path("history")


def test_a_copy_is_checked_as_well():
    first = options()

    assert first.replace(min_files=5).min_files == 5
    assert first.min_files == 2
    with pytest.raises(OptionError, match="journal-min-files is 1"):
        first.replace(min_files=1)
    with pytest.raises(OptionError, match="no option is called 'min_flies'"):
        first.replace(min_flies=5)


@pytest.mark.parametrize(
    ("size", "alignment", "corrected"),
    [
        (10240, 1, 10240),
        (10240, 512, 10240),
        (1024, 4096, 4096),
        (4096, 4096, 4096),
        (6143, 4096, 4096),
        (6144, 4096, 8192),
        (8191, 4096, 8192),
        (8193, 4096, 8192),
        (1025, 1, 1025),
    ],
)
def test_a_file_is_a_whole_number_of_blocks_the_nearest(size, alignment, corrected):
    assert options(file_size=size).corrected_file_size(alignment) == corrected


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("0", 0),
        ("1024", 1024),
        ("1k", 1024),
        ("1KB", 1024),
        ("1 KiB", 1024),
        ("490K", 501_760),
        ("10M", 10 << 20),
        (" 2G ", 2 << 30),
        ("1TiB", 1 << 40),
        ("-1", -1),
    ],
)
def test_sizes(text, size):
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "x", "1.5M", "10P", "M", "10 M B", "0x10", "1e3"])
def test_invalid_size(text):
    with pytest.raises(OptionError, match="is not a size"):
        parse_size(text)


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        ("0", 0),
        ("500000", 500_000),
        ("500000ns", 500_000),
        ("0.5ms", 500_000),
        ("3us", 3000),
        ("2s", 2 * 10**9),
        ("1m", 60 * 10**9),
        ("12h", 12 * 3600 * 10**9),
        ("7d", 7 * 86400 * 10**9),
        ("-1", -1),
    ],
)
def test_durations(text, ns):
    assert parse_duration_ns(text) == ns


@pytest.mark.parametrize("text", ["", "ms", "1w", "1e3", "1 2", "1,5ms"])
def test_invalid_duration(text):
    with pytest.raises(OptionError, match="is not a time"):
        parse_duration_ns(text)


# --- what type checkers see -----------------------------------------------------------------------


def test_type_checkers_see_the_same_options():
    names = {"Callable": Callable, "Iterable": Iterable}
    keywords = get_type_hints(JournalChanges, localns=names)
    fields = get_type_hints(JournalOptions, localns=names)

    assert keywords.keys() == fields.keys()
    assert keywords.keys() - JournalSettings.__annotations__.keys() == {"directory"}
    # What is kept may be given, and in some cases a text or another kind of collection, too.
    wider = {
        "directory": str | os.PathLike[str],
        "retention_directory": str | os.PathLike[str] | None,
        "journal_type": JournalType | Literal[*(kind.value for kind in JournalType)],
        "replaceable_types": Iterable[int],
        "damage": Literal["fail", "quarantine"],
    }
    for name, kind in fields.items():
        assert keywords[name] == wider.get(name, kind | str if name in PARSED else kind), name

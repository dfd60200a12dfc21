"""Bit rot: with checksums every flipped bit is reported or harmless, never a silent change.

Harmless: the load gives exactly what was written. Reported: it refuses with JournalDamaged or
UnsupportedFormat, or names damage. A torn tail counts as reported only where the flip lies behind
what the last mark vouches for: a cut of acknowledged data would be silent.

The same sweep over files in Artemis's own format is printed beside it; nothing can be
promised there.
"""

from journal.errors import JournalError
from journal.journal import Journal
from tests.crash.model import open_and_load, read_folder_view
from tests.crash.states import copy_out, seeded
from tests.crash.workload import small_options

SECTOR = 512


def small_journal(folder, *, checksums):
    """A journal with every kind of record, closed cleanly: ({name: bytes}, its view)."""
    copy_out({}, folder)
    journal = Journal(
        small_options(folder, "NIO", file_size=1024, checksums=checksums, buffer_timeout_ns=0)
    )
    open_and_load(journal)
    for i in range(1, 8):
        journal.add(i, i, bytes([64 + i]) * (20 * i), sync=True)
    journal.update(2, 9, b"updated", sync=True)
    journal.delete(3, sync=True)
    journal.add(20, 1, b"in a transaction", tx=30)
    journal.update(4, 1, b"there too", tx=30)
    journal.delete(5, b"why", tx=30)
    journal.commit(30, sync=True)
    journal.add(21, 1, b"rolled back", tx=31)
    journal.rollback(31, sync=True)
    journal.add(22, 1, b"prepared", tx=32)
    journal.prepare(32, b"extra", sync=True)
    journal.event(40, 1, b"event", sync=True)
    journal.close()
    files = {file.name: file.read_bytes() for file in sorted(folder.iterdir()) if file.is_file()}
    view, damages = read_folder_view(folder)
    assert damages == []
    return files, view


def outcome(folder, view):
    """What came of it: "harmless", "reported" or "silent"."""
    try:
        found, damages = read_folder_view(folder)
    except JournalError:
        return "reported"
    if found == view:
        return "harmless"
    return "reported" if [damage for damage in damages if not damage.torn] else "silent"


def sweep(folder, files, view, changes):
    """Apply one change after the other; the number of each outcome and the silent ones."""
    copy_out(files, folder)
    counts = {"harmless": 0, "reported": 0, "silent": 0}
    silent = []
    for name, content, what in changes:
        (folder / name).write_bytes(content)
        result = outcome(folder, view)
        (folder / name).write_bytes(files[name])
        counts[result] += 1
        if result == "silent":
            silent.append(what)
    return counts, silent


def used(content):
    """Bytes up to the last that is not zero."""
    return len(content.rstrip(b"\0"))


def flips(files, step=1):
    """Every `step`th bit of the used bytes, flipped."""
    number = 0
    for name, content in files.items():
        for bit in range(used(content) * 8):
            number += 1
            if number % step == 0:
                changed = bytearray(content)
                changed[bit // 8] ^= 1 << bit % 8
                yield name, bytes(changed), f"{name} byte {bit // 8} bit {bit % 8}"


def sector_faults(files, rng, count):
    """Sectors zeroed, filled with junk, or taken from elsewhere."""
    names = sorted(files)
    for _ in range(count):
        name = rng.choice(names)
        content = files[name]
        start = rng.randrange(len(content) // SECTOR) * SECTOR
        kind = rng.choice(("zero", "junk", "other"))
        if kind == "zero":
            new = bytes(SECTOR)
        elif kind == "junk":
            new = rng.randbytes(SECTOR)
        else:
            other = files[rng.choice(names)]
            from_offset = rng.randrange(len(other) // SECTOR) * SECTOR
            new = other[from_offset : from_offset + SECTOR]
        changed = content[:start] + new + content[start + SECTOR :]
        yield name, changed, f"{name}: {kind} at {start}"


def test_every_flipped_bit_is_reported_or_harmless(memory, effort, figures):
    step = max(1, round(1 / effort(100) * 20))
    files, view = small_journal(memory / "journal", checksums=True)
    counts, silent = sweep(memory / "journal", files, view, flips(files, step))

    plain_files, plain_view = small_journal(memory / "plain", checksums=False)
    plain, _ = sweep(memory / "plain", plain_files, plain_view, flips(plain_files, step))
    figures("flipped bits, with checksums", **counts)
    figures("flipped bits, in Artemis's format", **plain)

    assert silent == []
    assert counts["reported"] > counts["harmless"]
    # The planted bug: without checksums the sweep has to find something.
    assert plain["silent"] > 0


def test_a_sector_gone_bad_is_reported_or_harmless(memory, effort, figures):
    files, view = small_journal(memory / "journal", checksums=True)
    rng = seeded("sectors")

    counts, silent = sweep(
        memory / "journal", files, view, sector_faults(files, rng, effort(5_000, least=200))
    )

    figures("bad sectors", **counts)
    assert silent == []


def test_a_file_that_was_cut_is_reported(memory, figures):
    files, view = small_journal(memory / "journal", checksums=True)
    cuts = [
        (name, content[:size], f"{name} cut at {size}")
        for name, content in files.items()
        for size in range(16, len(content))
    ]

    counts, silent = sweep(memory / "journal", files, view, cuts)

    figures("files cut short", **counts)
    assert silent == []

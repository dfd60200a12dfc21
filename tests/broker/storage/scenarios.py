"""The broker folders that Artemis wrote, read by a scanner of the tests' own.

The scanner knows only format 2 and what compaction leaves behind. So the decoders are
tested without the journal's reader, which has tests of its own.
"""

import json
import re
import struct
import tarfile
from dataclasses import dataclass, field
from pathlib import Path

GOLDEN = Path(__file__).parents[2] / "golden"
SCENARIOS = sorted(folder.name for folder in GOLDEN.glob("broker_*"))
JOURNALS = {"messages": "messages_journal", "bindings": "bindings_journal"}

_KINDS = {
    10: "event",
    11: "add",
    12: "update",
    13: "add_tx",
    14: "update_tx",
    15: "delete_tx",
    16: "delete",
    17: "prepare",
    18: "commit",
    19: "rollback",
}


@dataclass
class Record:
    kind: str
    file: str = ""
    offset: int = 0
    record_id: int | None = None
    tx_id: int | None = None
    user_type: int | None = None
    compact_count: int = 0
    body: bytes | None = None
    records_in_file: int | None = None

    @property
    def is_update(self):
        return self.kind in ("update", "update_tx")


@dataclass
class Live:
    record_id: int
    user_type: int
    body: bytes
    is_update: bool = False
    compact_count: int = 0


@dataclass
class Delete:
    record_id: int
    body: bytes = b""


@dataclass
class File:
    name: str
    file_id: int
    size: int
    records: list[Record] = field(default_factory=list)

    def __iter__(self):
        return iter(self.records)


@dataclass
class Transaction:
    tx_id: int
    records: list[Live]
    deletes: list[Delete]


@dataclass
class Load:
    committed: list[Live]
    prepared: list[Transaction]
    failed: list[Transaction]


class Scenario:
    """One golden folder: journal files as bytes, and what Artemis said of them."""

    def __init__(self, name):
        self.folder = GOLDEN / name
        self._files = {}
        self.expected = json.loads((self.folder / "expected.json").read_text("utf-8"))

    def files(self, journal):
        """Give the files of "messages" or "bindings" in the order of their file ids."""
        if journal not in self._files:
            self._files[journal] = self._read_files(journal)
        return self._files[journal]

    def _read_files(self, journal):
        folder, ending = {
            "messages": ("journal", ".amq"),
            "bindings": ("bindings", ".bindings"),
        }[journal]
        found = []
        with tarfile.open(self.folder / "broker.tar.gz") as archive:
            for member in archive.getmembers():
                path = Path(member.name)
                if path.parent.name == folder and path.name.endswith(ending):
                    found.append(scan_file(path.name, archive.extractfile(member).read()))
        return sorted(found, key=lambda file: file.file_id)

    def records(self, journal):
        return [record for file in self.files(journal) for record in file.records]

    def expected_records(self, journal):
        files = self.expected[JOURNALS[journal]]["raw"]["files"]
        return [record for file in files for record in file["records"]]

    def load(self, journal):
        """Give what Artemis's load gave."""
        load = self.expected[JOURNALS[journal]]["load"]
        return Load(
            [_loaded_record(record) for record in load["committed"]],
            [_loaded_transaction(item) for item in load["prepared"]],
            [_loaded_transaction(item) for item in load["failed_transactions"]],
        )

    def printed(self, journal):
        """Give the lines of data_print.txt that belong to one journal."""
        lines = (self.folder / "data_print.txt").read_text("utf-8").splitlines()
        split = lines.index("** MESSAGES **")
        return lines[split + 1 :] if journal == "messages" else lines[1:split]


def _loaded_record(record):
    return Live(
        record_id=record["id"],
        user_type=record["user_type"] & 0xFF,
        is_update=record["update"],
        compact_count=record["compact_count"],
        body=bytes.fromhex(record["hex"]),
    )


def _loaded_transaction(item):
    deletes = item.get("records_to_delete", item.get("deletes"))
    assert deletes == [], "no golden transaction deletes"
    return Transaction(item["tx"], [_loaded_record(record) for record in item["records"]], deletes)


def scan_file(name, data):
    version, _, file_id = struct.unpack_from(">iiq", data)
    assert version == 2
    file = File(name, file_id, len(data))
    stamp = re.escape(struct.pack(">i", file_id & 0x7FFFFFFF))
    start = re.compile(b"[\x0a-\x13]" + stamp, re.DOTALL)
    found = start.search(data, 16)
    while found:
        record, end = _scan_record(data, found.start())
        if record is not None:
            record.file = name
            file.records.append(record)
        found = start.search(data, found.start() + 1 if record is None else end)
    return file


def _scan_record(data, offset):
    position = offset

    def read(layout):
        nonlocal position
        value = struct.unpack_from(layout, data, position)[0]
        position += struct.calcsize(layout)
        return value

    kind = _KINDS[read(">B")]
    read(">i")
    record = Record(kind, offset=offset, compact_count=read(">b"))
    if kind.endswith("_tx") or kind in ("prepare", "commit", "rollback"):
        record.tx_id = read(">q")
    if kind not in ("prepare", "commit", "rollback"):
        record.record_id = read(">q")
    if kind in ("prepare", "commit"):
        record.records_in_file = read(">i")
    if kind not in ("delete", "commit", "rollback"):
        size = read(">i")
        if kind not in ("prepare", "delete_tx"):
            record.user_type = read(">B")
        if not 0 <= size <= len(data) - position - 4:
            return None, None
        record.body = data[position : position + size]
        position += size
    check_size = read(">i")
    return (record, position) if check_size == position - offset else (None, None)

"""What reached a disk, and what a power cut can leave of it.

`Recorder` listens on the tap and keeps a log of steps. `Disk` plays the log: at every moment it
knows what is surely on disk (`contents`, `names`) and what is only on its way (`writes`,
`name_changes`). A power cut keeps any part of the latter: `Disk.folder()` builds one such state.

The model is stricter than a real file system. Writes reach the disk in any order and in pieces of
512 bytes. A name made, renamed or removed is on disk only once its directory was synced. A sync
covers the writes that had ended when it began.
"""

import os
import threading
from dataclasses import dataclass, field

from journal.files.tap import set_tap

SECTOR = 512


@dataclass(frozen=True)
class Write:
    """Bytes on their way to a file; without data, a new size."""

    file: int
    offset: int
    data: bytes | None

    @property
    def sectors(self):
        """How many pieces it can be torn into."""
        if self.data is None:
            return 1
        return (self.offset + len(self.data) - 1) // SECTOR - self.offset // SECTOR + 1

    def apply(self, content, chosen=None):
        """Write all, or the chosen sectors only, into a bytearray."""
        if self.data is None:
            if len(content) > self.offset:
                del content[self.offset :]
            else:
                content.extend(bytes(self.offset - len(content)))
            return
        end = self.offset + len(self.data)
        for sector in [None] if chosen is None else sorted(chosen):
            start = self.offset
            stop = end
            if sector is not None:
                first = (self.offset // SECTOR + sector) * SECTOR
                start = max(start, first)
                stop = min(stop, first + SECTOR)
            if len(content) < start:
                content.extend(bytes(start - len(content)))
            content[start:stop] = self.data[start - self.offset : stop - self.offset]


class Recorder:
    """Records what the calls below one folder do. A context manager.

    Attributes:
        log: steps for Disk.play(), in the order in which they happened.
        faults: asked before every call as faults(event); its answer is the tap's.
    """

    def __init__(self, root, *, disk=None, faults=None):
        """Record what happens below `root`; `disk` is what has happened there before."""
        self.root = os.path.realpath(root)
        disk = disk or Disk()
        self.names = disk.names_now()
        self.faults = faults
        self.log = []
        self.next = max([*disk.writes, *disk.name_changes, *self.names.values()], default=0)
        self.files = {}
        self.on_the_way = {}
        for number, write in disk.writes.items():
            self.on_the_way.setdefault(write.file, {})[number] = True
        self.changes = {}
        for number, change in disk.name_changes.items():
            self.changes.setdefault(change[1], []).append(number)
        self.syncing = {}
        self.queued = {}
        self.lock = threading.Lock()

    def __enter__(self):
        set_tap(self)
        return self

    def __exit__(self, *exception):
        set_tap(None)

    def note(self, *what):
        """Put a remark of the test's own into the log."""
        self.log.append(("note", *what))

    def __call__(self, event):
        """The tap."""
        answer = 0
        if self.faults is not None and not event.is_done:
            answer = self.faults(event)
            if answer < 0:
                return answer
        handler = getattr(self, "on_" + event.call, None)
        if handler is not None:
            with self.lock:
                handler(event)
        return answer

    def new_number(self):
        self.next += 1
        return self.next

    def folder_of(self, fd):
        """The directory below the root that fd is, or None."""
        path = os.readlink(f"/proc/self/fd/{fd}")
        if path != self.root and not path.startswith(self.root + "/"):
            return None
        return os.path.relpath(path, self.root)

    def on_open(self, event):
        if event.is_done:
            folder = self.folder_of(event.dirfd)
            if (folder, event.name) in self.names:
                self.files[event.fd] = self.names[folder, event.name]

    def on_create(self, event):
        if not event.is_done:
            return
        folder = self.folder_of(event.dirfd)
        if folder is None:
            return
        if (folder, event.name) not in self.names:
            file = self.new_number()
            self.names[folder, event.name] = file
            self.change(folder, ("create", folder, event.name, file))
        self.files[event.fd] = self.names[folder, event.name]

    def on_close(self, event):
        if not event.is_done:
            self.files.pop(event.fd, None)

    def change(self, folder, step):
        number = self.new_number()
        self.changes.setdefault(folder, []).append(number)
        self.log.append(("names", number, step))

    def on_rename(self, event):
        if event.is_done:
            source = self.folder_of(event.dirfd)
            target = self.folder_of(event.fd) if event.fd >= 0 else source
            if source is None or target is None:
                return
            file = self.names.pop((source, event.name))
            self.names[target, event.target] = file
            self.change(source, ("rename", source, event.name, target, event.target, file))

    def on_unlink(self, event):
        if event.is_done:
            folder = self.folder_of(event.dirfd)
            if self.names.pop((folder, event.name), None) is not None:
                self.change(folder, ("unlink", folder, event.name))

    def begin(self, file, offset, data):
        number = self.new_number()
        self.on_the_way.setdefault(file, {})[number] = False
        self.log.append(("write", number, Write(file, offset, data)))
        return number

    def end(self, file, number):
        if number in self.on_the_way.get(file, {}):
            self.on_the_way[file][number] = True

    def on_write(self, event):
        file = self.files.get(event.fd)
        if file is None:
            return
        key = (threading.get_ident(), event.fd)
        if not event.is_done:
            self.queued[key] = self.begin(file, event.offset, event.data)
        else:
            number = self.queued.pop(key)
            self.end(file, number)
            if event.is_synced:
                self.on_disk(file, [number])

    def on_truncate(self, event):
        file = self.files.get(event.fd)
        if event.is_done and file is not None:
            self.end(file, self.begin(file, event.size, None))

    def on_submit(self, event):
        file = self.files.get(event.fd)
        if file is not None and event.is_done:
            self.queued["queue", event.fd, event.offset] = self.begin(
                file, event.offset, event.data
            )

    def on_complete(self, event):
        file = self.files.get(event.fd)
        if file is not None and event.is_done:
            number = self.queued.pop(("queue", event.fd, event.offset))
            self.end(file, number)
            if event.is_synced:
                self.on_disk(file, [number])

    def on_sync(self, event):
        file = self.files.get(event.fd)
        if file is None:
            return
        key = (threading.get_ident(), event.fd)
        if not event.is_done:
            ways = self.on_the_way.get(file, {})
            self.syncing[key] = [number for number, ended in ways.items() if ended]
        else:
            self.on_disk(file, self.syncing.pop(key))

    on_sync_data = on_sync_all = on_sync

    def on_sync_map(self, event):
        """What was copied into the map is known only now; it may have been on its way before."""
        file = self.files.get(event.fd)
        if file is None:
            return
        key = (threading.get_ident(), event.fd)
        if not event.is_done:
            number = self.begin(file, event.offset, event.data)
            self.end(file, number)
            self.syncing[key] = [number]
        else:
            self.on_disk(file, self.syncing.pop(key))

    def on_disk(self, file, numbers):
        ways = self.on_the_way.get(file, {})
        for number in numbers:
            ways.pop(number, None)
        self.log.append(("sync", file, tuple(numbers)))

    def on_sync_dir(self, event):
        folder = self.folder_of(event.dirfd)
        if folder is None:
            return
        key = (threading.get_ident(), "folder", folder)
        if not event.is_done:
            self.syncing[key] = list(self.changes.get(folder, []))
        else:
            done = self.syncing.pop(key)
            self.changes[folder] = [n for n in self.changes.get(folder, []) if n not in done]
            self.log.append(("sync_names", folder, tuple(done)))


@dataclass
class Disk:
    """What is surely on disk, and what is on its way there.

    Attributes:
        contents: bytes of each file, by its number.
        names: (folder, name) to file number.
        writes: on their way, by number, in the order of the calls.
        name_changes: likewise.
    """

    contents: dict = field(default_factory=dict)
    names: dict = field(default_factory=dict)
    writes: dict = field(default_factory=dict)
    name_changes: dict = field(default_factory=dict)

    def play(self, step):
        """Take one step of a log; whether a power cut now can leave anything new."""
        kind = step[0]
        if kind == "write":
            self.writes[step[1]] = step[2]
            self.contents.setdefault(step[2].file, bytearray())
        elif kind == "names":
            self.name_changes[step[1]] = step[2]
            if step[2][0] == "create":
                self.contents.setdefault(step[2][3], bytearray())
        elif kind == "sync":
            for number in step[2]:
                write = self.writes.pop(number, None)
                if write is not None:
                    write.apply(self.contents[write.file])
        elif kind == "sync_names":
            for number in step[2]:
                change = self.name_changes.pop(number, None)
                if change is not None:
                    change_name(self.names, change)
        return kind != "note"

    def folder(self, kept_writes=None, kept_names=None, junk=None):
        """{name: bytes} of the main folder as a power cut may leave it.

        Args:
            kept_writes: {number: sectors or None for all} of writes that made it; None: all.
            kept_names: numbers of the name changes that made it; None: all.
            junk: a byte; files have grown to where lost writes end, filled with it.
        """
        names = dict(self.names)
        for number, change in self.name_changes.items():
            if kept_names is None or number in kept_names:
                change_name(names, change)
        wanted = {file: name for (folder, name), file in names.items() if folder == "."}
        contents = {file: bytearray(self.contents.get(file, b"")) for file in wanted}
        for number, write in self.writes.items():
            if write.file not in wanted:
                continue
            content = contents[write.file]
            if kept_writes is None or number in kept_writes:
                write.apply(content, kept_writes[number] if kept_writes else None)
            elif junk is not None and write.data is not None:
                end = write.offset + len(write.data)
                content.extend(bytes([junk]) * (end - len(content)))
        return {name: bytes(contents[file]) for file, name in wanted.items()}

    def copy(self):
        """One that goes its own way."""
        return Disk(
            {file: bytearray(content) for file, content in self.contents.items()},
            dict(self.names),
            dict(self.writes),
            dict(self.name_changes),
        )

    def names_now(self):
        """(folder, name) to file number as programs see them, nothing lost."""
        names = dict(self.names)
        for change in self.name_changes.values():
            change_name(names, change)
        return names


def change_name(names, change):
    """Let one change of names happen; what it moves or removes may never have been there."""
    if change[0] == "create":
        names[change[1], change[2]] = change[3]
    elif change[0] == "rename":
        _, source, name, target, new_name, file = change
        if names.get((source, name)) == file:
            del names[source, name]
        names[target, new_name] = file
    else:
        names.pop((change[1], change[2]), None)


def power_cuts(disk, rng, count):
    """Some states that a power cut can leave now, as arguments for Disk.folder().

    Always: nothing made it, everything did, only the last write, all but the first, all but the
    last, each name change lost or kept alone. Then random ones, torn at sectors, until there are
    `count`.
    """
    numbers = list(disk.writes)
    changes = list(disk.name_changes)
    whole = dict.fromkeys(numbers)
    fixed = [({}, set()), (whole, set(changes)), ({}, set(changes)), (whole, set())]
    if len(numbers) > 1:
        last, first = numbers[-1], numbers[0]
        fixed.append(({last: None}, set(changes)))
        fixed.append(({n: None for n in numbers if n != first}, set(changes)))
        fixed.append(({n: None for n in numbers if n != last}, set(changes)))
    for i in range(1, len(changes)):
        fixed.append((whole, set(changes[:i])))
        fixed.append((whole, set(changes) - {changes[i]}))
    for writes, names in fixed[:count]:
        yield writes, names, None
    for _ in range(count - len(fixed)):
        writes = {}
        for number in numbers:
            choice = rng.random()
            if choice < 0.3:
                writes[number] = None
            elif choice < 0.8:
                sectors = disk.writes[number].sectors
                kept = [s for s in range(sectors) if rng.random() < rng.choice((0.2, 0.5, 0.9))]
                if kept:
                    writes[number] = tuple(kept)
        names = {n for n in changes if rng.random() < 0.6}
        yield writes, names, rng.choice((None, None, 0, 0xFF, 0x0B))

"""Plays a recorded log, cuts the power at every step, and checks what is left."""

import hashlib
import os
import random
import shutil

from journal.errors import JournalError
from tests.crash.disk import Disk, power_cuts
from tests.crash.model import Model, read_folder_view, same


class Violation(AssertionError):
    """A state that breaks a promise."""


class Checker:
    """Checks folders against a history of operations.

    Attributes:
        operations: all that were tried, in the order of the log.
        folder: a directory of its own, for the states.
        states: digests of the distinct states checked.
    """

    def __init__(self, operations, folder, *, start=None):
        self.operations = operations
        self.folder = folder
        self.start = start or Model()
        self.states = set()
        self.views = {}
        self.known = {}
        self.present = {}
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)

    def put(self, files):
        """Make the folder hold exactly these files."""
        for name in set(self.present) - set(files):
            os.unlink(self.folder / name)
            del self.present[name]
        for name, content in files.items():
            if self.present.get(name) != content:
                (self.folder / name).write_bytes(content)
                self.present[name] = content

    def view_of(self, files):
        """(view, damages) of such a folder, or the error that its load ends with."""
        digest = hashlib.blake2b(digest_size=16)
        for name in sorted(files):
            digest.update(name.encode() + b"\0" + files[name])
        key = digest.digest()
        self.states.add(key)
        if key not in self.views:
            self.put(files)
            try:
                self.views[key] = read_folder_view(self.folder)
            except JournalError as error:
                self.views[key] = error
        return self.views[key]

    def model_view(self, count):
        """What the journal holds after so many operations."""
        if count not in self.known:
            model = Model(list(self.start.records), dict(self.start.open))
            for number, operation in enumerate(self.operations):
                if number >= count:
                    break
                model.apply(operation)
            self.known[count] = model.view()
        return self.known[count]

    def check(self, files, acked, tried):
        """How many operations the state holds.

        Raises:
            Violation: none of acked ... tried operations give what is there.
        """
        found = self.view_of(files)
        if isinstance(found, JournalError):
            raise Violation(f"acknowledged {acked}, tried {tried}: does not load: {found}")
        view, damages = found
        compacted = ("compact",) in self.operations
        for count in range(tried, acked - 1, -1):
            if same(self.model_view(count), view, compacted=compacted):
                if bad := [damage for damage in damages if not damage.torn]:
                    raise Violation(f"acknowledged {acked}, tried {tried}: damage said {bad}")
                return count
        nearest = min(range(acked, tried + 1), key=lambda count: self.distance(view, count))
        raise Violation(
            f"acknowledged {acked}, tried {tried}; beside operation {nearest}:"
            f" {self.difference(view, nearest)}; damages {list(map(str, damages))}"
        )

    def distance(self, view, count):
        """In how many entries a view differs from what so many operations give."""
        return sum(
            len(set(there) ^ set(should))
            for there, should in zip(view, self.model_view(count), strict=True)
        )

    def difference(self, view, count):
        """The same in words, for developers who have to find the bug."""
        wanted = self.model_view(count)
        parts = []
        for name, is_there, should in zip(
            ("records", "prepared", "failed"), view, wanted, strict=True
        ):
            lost = [entry[:2] for entry in should if entry not in is_there]
            extra = [entry[:2] for entry in is_there if entry not in should]
            if lost or extra:
                parts.append(
                    f"{name}: lost or changed {lost[:5]!r:.300}, too much {extra[:5]!r:.300}"
                )
        if not parts:
            order = [[entry[:2] for entry in one[0]] for one in (view, wanted)]
            return f"another order or twice: {order[0]}, not {order[1]}"
        return "; ".join(parts)


def check_log(log, checker, rng, *, disk=None, per_step=12, enough=None):
    """Cut the power at every step of a log.

    Args:
        log: of a Recorder, with notes ("try", n) and ("ack", n).
        checker: knows the operations.
        rng: draws the states.
        disk: what was there when the log began.
        per_step: states a step.
        enough: stop when the checker has seen so many distinct states.

    Returns:
        The disk at the end of the log.
    """
    disk = disk or Disk()
    acked = tried = 0
    for step in log:
        if step[0] == "note":
            if step[1] == "ack":
                acked = max(acked, step[2])
            elif step[1] == "try":
                tried = max(tried, step[2])
        if not disk.play(step):
            continue
        if enough is not None and len(checker.states) >= enough:
            continue
        # Files without a name change nothing; a step that only ends a sync leaves less than before.
        for writes, names, junk in power_cuts(disk, rng, per_step):
            files = disk.folder(writes, names, junk)
            try:
                checker.check(files, acked, tried)
            except Violation as violation:
                keep(checker, files)
                raise Violation(f"{violation} (step {step_text(step)})") from violation
    # Once more with everything acknowledged.
    checker.check(disk.folder({}, set()), acked, tried)
    return disk


def step_text(step):
    text = repr(step[:2] if step[0] == "write" else step)
    return text if len(text) < 200 else text[:200] + "..."


def keep(checker, files):
    """Leave the state in its folder, for a look at it."""
    checker.put(files)


def copy_out(files, folder):
    """Write a state into a new folder."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)


def seeded(*parts):
    """A random generator that these values decide."""
    return random.Random("/".join(map(str, parts)))

"""The progress of a replay, saved so that it can be resumed.

A file a job, in a folder: by node the id of the last message that the broker has confirmed, with
all before it but those whose bodies were missing, and how many there were. Written beside, synced
and renamed: it is there as it was, or as it is now.
"""

from __future__ import annotations

import json
import os
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from journal.errors import WrongUse

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["ReplayProgress", "default_folder", "job_of"]

_DIGEST_SIZE: Final = 16


def job_of(request: Mapping[str, object]) -> str:
    """The name of a job: a digest of its request, independent of order.

    >>> job_of({"address": "a", "to": None}) == job_of({"to": None, "address": "a"})
    True
    """
    text = json.dumps(dict(request), sort_keys=True)
    return blake2b(text.encode(), digest_size=_DIGEST_SIZE).hexdigest()


def default_folder() -> Path:
    """Where the XDG Base Directory Specification has a user's programs keep such."""
    state = os.environ.get("XDG_STATE_HOME")
    return (Path(state) if state else Path.home() / ".local" / "state") / "quiver" / "replay"


class ReplayProgress:
    """What a job has sent.

    Args:
        folder: made if it is not there.
        job: its name.
        url: of the broker: another one has got nothing of it.

    Attributes:
        sent: by node, the id up to which all is with the broker, that could be sent.
        passed: by node, how many messages were found up to that id.
        missing: by node, ids up to it of large messages whose bodies were not there.
        path: of the file.

    Raises:
        WrongUse: the file is not one of ours.
        OSError: it cannot be read, or the folder not be made.
    """

    def __init__(self, folder: Path, job: str, url: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._is_of = {"job": job, "url": url}
        self.path = folder / f"{job_of(self._is_of)}.json"
        self.sent: dict[str, int] = {}
        self.passed: dict[str, int] = {}
        self.missing: dict[str, set[int]] = {}
        if self.path.exists():
            self._read()

    def save(self) -> None:
        """Keep all that; on the disk when this returns.

        Raises:
            OSError: the disk is full, or fails.
        """
        beside = self.path.with_suffix(".tmp")
        with beside.open("w", encoding="utf-8") as file:
            missing = {node: sorted(ids) for node, ids in self.missing.items()}
            noted = {"sent": self.sent, "passed": self.passed, "missing": missing}
            json.dump({**self._is_of, **noted}, file)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(self.path)
        folder = os.open(self.path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def _read(self) -> None:
        try:
            found: Any = json.loads(self.path.read_text(encoding="utf-8"))
            self.sent = {str(node): int(one) for node, one in found["sent"].items()}
            self.passed = {str(node): int(one) for node, one in found["passed"].items()}
            self.missing = {
                str(node): {int(one) for one in ids} for node, ids in found["missing"].items()
            }
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise WrongUse(
                f"{self.path} does not say how far a replay came ({error}); with it gone, the"
                " replay begins anew"
            ) from error

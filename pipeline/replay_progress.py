"""How far a replay has come: what it goes on from when it is started again.

A file a job, in a folder: by node the id of the last message that the broker has confirmed, with
all before it. Written beside, synced and renamed: it is there as it was, or as it is now.
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


def job_of(asked: Mapping[str, object]) -> str:
    """A name for what is asked: the same for the same, in whatever order.

    >>> job_of({"address": "a", "to": None}) == job_of({"to": None, "address": "a"})
    True
    """
    text = json.dumps(dict(asked), sort_keys=True)
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
        sent: by node, the id up to which all is with the broker.
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
        if self.path.exists():
            self.sent = self._read()

    def save(self) -> None:
        """Keep `sent`; on the disk when this returns.

        Raises:
            OSError: the disk is full, or fails.
        """
        beside = self.path.with_suffix(".tmp")
        with beside.open("w", encoding="utf-8") as file:
            json.dump({**self._is_of, "sent": self.sent}, file)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(self.path)
        folder = os.open(self.path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def _read(self) -> dict[str, int]:
        try:
            found: Any = json.loads(self.path.read_text(encoding="utf-8"))
            return {str(node): int(message_id) for node, message_id in found["sent"].items()}
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise WrongUse(
                f"{self.path} does not say how far a replay came ({error}); with it gone, the"
                " replay begins anew"
            ) from error

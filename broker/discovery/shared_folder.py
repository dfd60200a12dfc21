"""Broadcasts by files in a folder that all brokers see, such as a network file system.

    FOLDER/UNIQUE-ID.broadcast     the datagram; each broadcast writes it anew, whole or not at all

A receiver looks at the folder every `period` and takes files that have changed since the last look.
So a broker that writes no more is silent, and its entry ends as with UDP. A broker that stops in
good order removes its file. What a killed broker has left is heard once by each new receiver, and
ends there after refresh-timeout.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from broker.discovery.datagram import DATAGRAM_SIZE_MAX, decode_broadcast
from broker.discovery.endpoints import EndpointParameter
from broker.settings.value_types import INT, TEXT, at_least

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from broker.discovery.endpoints import Broadcaster, Endpoint, Receiver
    from broker.environment import Environment
    from broker.settings.value_types import ValueType

__all__ = ["SHARED_FOLDER", "SharedFolderEndpoint"]

log = logging.getLogger("broker")

_SUFFIX: Final = ".broadcast"
# As long as the default period of broadcasts.
_PERIOD_MS: Final = 2000
_POSITIVE: Final[ValueType[int]] = at_least(INT, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedFolderEndpoint:
    """A folder.

    Attributes:
        path: of the folder; made where it is missing.
        period_ms: ms between two looks of a receiver.
    """

    path: Path
    period_ms: int = _PERIOD_MS

    async def open_broadcaster(self) -> Broadcaster:
        """Make the folder.

        Raises:
            OSError: that is not possible.
        """
        await asyncio.to_thread(self.path.mkdir, parents=True, exist_ok=True)
        return _FolderBroadcaster(self.path)

    async def open_receiver(self, received: Callable[[bytes], None]) -> Receiver:
        """Look at the folder from now on.

        Raises:
            OSError: it can neither be read nor made.
        """
        await asyncio.to_thread(self.path.mkdir, parents=True, exist_ok=True)
        return _FolderReceiver(self.path, self.period_ms / 1000, received)


class _FolderBroadcaster:
    """Writes one file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: Path | None = None

    async def broadcast(self, data: bytes) -> None:
        """Write the file anew.

        Raises:
            OSError: it cannot be written.
        """
        if self._file is None:
            self._file = self._path / (decode_broadcast(data).unique_id + _SUFFIX)
        await asyncio.to_thread(_write, self._file, data)

    async def close(self) -> None:
        """Remove the file."""
        file, self._file = self._file, None
        if file is not None:
            await asyncio.to_thread(file.unlink, missing_ok=True)


def _write(file: Path, data: bytes) -> None:
    # Another inode each time, so that a file has changed even where times are coarse.
    new = file.with_suffix(".new")
    new.write_bytes(data)
    os.replace(new, file)


class _FolderReceiver:
    """Looks at the folder until it is closed."""

    def __init__(self, path: Path, period_s: float, received: Callable[[bytes], None]) -> None:
        self._path = path
        self._period_s = period_s
        self._received = received
        self._known: dict[str, tuple[int, int]] = {}
        self._task = asyncio.get_running_loop().create_task(self._look())

    async def _look(self) -> None:
        has_failed = False
        while True:
            try:
                changed = await asyncio.to_thread(self._changed)
                has_failed = False
            except OSError as error:
                if not has_failed:
                    log.warning("AMQ212065: discovery folder %s: %s", self._path, error)
                has_failed = True
                changed = []
            for data in changed:
                self._received(data)
            await asyncio.sleep(self._period_s)

    def _changed(self) -> list[bytes]:
        """Read what has changed since the last call; in a thread, one call at a time."""
        found, changed = {}, []
        with os.scandir(self._path) as files:
            for file in files:
                if not file.name.endswith(_SUFFIX):
                    continue
                # Removed or replaced between two calls: seen with the next look.
                with contextlib.suppress(FileNotFoundError):
                    status = os.stat(file.path)
                    if status.st_size > DATAGRAM_SIZE_MAX:
                        continue
                    mark = found[file.name] = (status.st_ino, status.st_mtime_ns)
                    if self._known.get(file.name) != mark:
                        changed.append(Path(file.path).read_bytes())
        self._known = found
        return changed

    def close(self) -> None:
        """Look no more."""
        self._task.cancel()


class _SharedFolder:
    """An `EndpointFactory`."""

    name = "shared-folder"
    broadcasts = True
    parameters: Mapping[str, EndpointParameter] = {
        "path": EndpointParameter(TEXT, is_required=True),
        "period": EndpointParameter(_POSITIVE, _PERIOD_MS),
    }

    def endpoint(self, values: Mapping[str, Any], environment: Environment) -> Endpoint:
        """Make one."""
        del environment
        return SharedFolderEndpoint(path=Path(values["path"]), period_ms=values["period"])


SHARED_FOLDER = _SharedFolder()

"""Progress on standard error, only on a terminal."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any, Final, Self

import click

if TYPE_CHECKING:
    from types import TracebackType

__all__ = ["Progress"]

TELL_EVERY_S: Final = 0.1


class Progress:
    """A bar; call it with files and bytes done and in all, or with what else there is to count.

    If the total is unknown (size 0) it shows how much was done.
    """

    def __init__(self, label: str, *, is_wanted: bool = True) -> None:
        self.label = label
        self.is_shown = is_wanted and sys.stderr.isatty()
        self.bar: Any = None
        self._told_at = 0.0
        self._is_counting = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self.bar is not None:
            self.bar.render_finish()
        elif self._is_counting:
            click.echo(err=True)

    def __call__(self, files_done: int, files: int, bytes_done: int, size: int) -> None:
        """Show that `bytes_done` of `size` bytes are done."""
        if not self.is_shown:
            return
        now = time.monotonic()
        if now - self._told_at < TELL_EVERY_S and bytes_done != size:
            return
        self._told_at = now
        if size <= 0:
            self._is_counting = True
            click.echo(f"\r{self.label}  {bytes_done}", err=True, nl=False)
            return
        if self.bar is None:
            self.bar = click.progressbar(length=size, label=self.label, file=sys.stderr)
        self.bar.update(bytes_done - self.bar.pos)

"""Every `journal-*` parameter as an option, for the commands that open a journal to write.

Defaults and units are Artemis's (journal.options), with two exceptions that a command line
wants: a folder in use is refused at once instead of waited for, and what an existing folder shows
(prefix, extension, file size) is taken from it.
"""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from journal.commands.parameters import DURATION_MS, DURATION_NS, SIZE, USER_VERSION
from journal.errors import JournalIOError, WrongUse
from journal.files.base import Folder
from journal.folder import NAME, list_names, open_regular
from journal.options import DEFAULT_BUFFER_SIZE, FILE_SIZE_MINIMUM, JournalOptions, JournalType

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["engine_options", "journal_options", "shown_by", "takes_common_options"]

FORMAT_VERSIONS: Final = (b"\0\0\0\1", b"\0\0\0\2")
# Of all commands, beside --prefix and --extension: how a journal is written.
COMMON: Final = frozenset(
    {
        "journal_type",
        "file_size",
        "min_files",
        "pool_files",
        "buffer_timeout_ns",
        "buffer_size",
        "max_io",
        "datasync",
        "checksums",
    }
)


def engine_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command one option for every parameter of the journal; see `journal_options`."""
    for option in reversed(OPTIONS):
        command = option(command)
    return command


def takes_common_options(command: click.Command) -> click.Command:
    """Let a command that only reads take the common options of writing, too.

    One set of options then does for every command. Their values are checked and go no further,
    and its help leaves them out.
    """

    @click.command
    @engine_options
    def writer(**_given: Any) -> None:  # noqa: ANN401 - click's.
        pass

    for option in writer.params:
        if isinstance(option, click.Option) and option.name in COMMON:
            option.hidden = True
            option.expose_value = False
            command.params.append(option)
    return command


def journal_options(
    directory: str | os.PathLike[str], given: Mapping[str, Any], **changes: object
) -> JournalOptions:
    """The options of the journal in `directory` from what the command line gave.

    Args:
        directory: of the journal; may be missing.
        given: the command's parameters; those that are not journal options are left alone.
        changes: options that the command sets itself.

    Raises:
        OptionError: a value that the journal cannot work with.
        WrongUse: the folder holds more than one journal and neither prefix nor extension is given.
        JournalIOError: the folder cannot be read.
    """
    values = {name: value for name, value in given.items() if name in FIELDS and value is not None}
    values["replaceable_types"] = frozenset(given.get("replaceable_types") or ())
    if os.path.isdir(directory):
        values |= shown_by(directory, values)
    return JournalOptions(directory=Path(directory), **(values | changes))


def shown_by(directory: str | os.PathLike[str], values: Mapping[str, Any]) -> dict[str, str | int]:
    """Prefix, extension and file size of the journal in a folder; empty where there is none.

    A name alone makes no journal here, unlike for the tools that only read: what is taken for one
    is going to be written to.
    """
    wanted = (values.get("prefix"), values.get("extension"))
    sizes: dict[tuple[str, str], Counter[int]] = {}
    for file in list_names(directory):
        match = NAME.fullmatch(file)
        if match is None:
            continue
        pair = (match["prefix"], match["extension"])
        if any(want not in (None, have) for want, have in zip(wanted, pair, strict=True)):
            continue
        size = _journal_file_size(Path(directory, file))
        if size is not None:
            sizes.setdefault(pair, Counter())[size] += 1
    if not sizes:
        return {}
    if len(sizes) > 1:
        names = ", ".join(f"{prefix}-N.{extension}" for prefix, extension in sorted(sizes))
        raise WrongUse(
            f"{os.fspath(directory)}: more than one journal ({names});"
            " give --prefix and --extension"
        )
    (pair, counts), *_ = sizes.items()
    shown: dict[str, str | int] = {"prefix": pair[0], "extension": pair[1]}
    size = counts.most_common(1)[0][0]
    if "file_size" not in values and size >= FILE_SIZE_MINIMUM:
        shown["file_size"] = size
    return shown


def _journal_file_size(path: Path) -> int | None:
    """Bytes of a file that begins as a journal file does; None for any other."""
    with Folder(path.parent) as folder:
        try:
            fd = open_regular(folder, path.name)
        except JournalIOError:
            return None
        try:
            is_journal_file = folder.read(fd, 4, 0, path.name) in FORMAT_VERSIONS
            return folder.size(fd, path.name) if is_journal_file else None
        finally:
            folder.close_file(fd, path.name)


def _number(flag: str, least: int, text: str, default: object = None) -> Callable[..., Any]:
    return click.option(
        flag,
        type=click.IntRange(min=least),
        default=default,
        show_default=default is not None,
        help=text,
    )


def _switch(name: str, default: bool, text: str, field: str | None = None) -> Callable[..., Any]:
    return click.option(
        f"--{name}/--no-{name}",
        field or name.replace("-", "_"),
        default=default,
        show_default=True,
        help=text,
    )


OPTIONS: Final = (
    click.option("--prefix", help="Of the files' names. [default: DIR's, else activemq-data]"),
    click.option("--extension", help="Of the files' names. [default: DIR's, else amq]"),
    click.option(
        "--type",
        "journal_type",
        type=click.Choice([kind.value for kind in JournalType]),
        default=JournalType.ASYNCIO.value,
        show_default=True,
        help="How bytes reach the disk; ASYNCIO and IO_URING fall back with a warning.",
    ),
    click.option("--file-size", type=SIZE, help="Of one file. [default: DIR's files', else 10M]"),
    _number("--min-files", 2, "Files that exist at least.", 2),
    _number("--pool-files", -1, "Files to shrink back to; -1 keeps all.", -1),
    _number("--max-io", 1, "Writes in flight at most. [default: 4096 direct, else 1]"),
    click.option(
        "--buffer-timeout",
        "buffer_timeout_ns",
        type=DURATION_NS,
        help="How long a record may wait for others, in ns or with a unit; 0: no buffer."
        " [default: 500000 direct, else 3333333]",
    ),
    click.option(
        "--buffer-size",
        type=SIZE,
        default=DEFAULT_BUFFER_SIZE,
        show_default=True,
        help="Of the buffer, which a record must fit.",
    ),
    _switch("datasync", True, "Survive a power failure, not only the end of the process."),
    _switch("checksums", True, "Write leaders and marks; without, bytes as Artemis's."),
    _switch("sync-transactional", True, "Commit, prepare and rollback wait for the disk."),
    _switch("sync-non-transactional", True, "All other records wait for the disk."),
    _number("--compact-min-files", 0, "Data files before compaction is considered; 0: never.", 10),
    click.option(
        "--compact-percentage",
        type=click.IntRange(0, 100),
        default=30,
        show_default=True,
        help="Percent of live bytes below which compaction starts.",
    ),
    click.option(
        "--lock-timeout",
        "lock_acquisition_timeout_ms",
        type=DURATION_MS,
        default=0,
        show_default=True,
        help="How long to wait for DIR's lock, in ms or with a unit; -1 for ever, as a broker.",
    ),
    click.option(
        "--device-block-size",
        type=SIZE,
        help="What direct writes are aligned to. [default: probed]",
    ),
    click.option(
        "--file-open-timeout",
        "file_open_timeout_s",
        type=float,
        default=5.0,
        show_default=True,
        help="Seconds to wait for the next file.",
    ),
    _number("--max-attic-files", 0, "Files kept in attic/ at most.", 10),
    click.option(
        "--retention-directory",
        type=click.Path(path_type=Path),
        help="Folder of history copies. [default: no history]",
    ),
    click.option(
        "--retention-period",
        "retention_period_ms",
        type=DURATION_MS,
        default=-1,
        show_default=True,
        help="How long a history copy is kept, such as 7d, 12h, 30m or 45s; a bare number is ms; -1"
        " without limit.",
    ),
    click.option(
        "--retention-max-bytes",
        type=SIZE,
        default=-1,
        show_default=True,
        help="Bytes of history copies kept; -1 without limit.",
    ),
    _switch("create-dir", True, "Make DIR where it is missing.", "create_directory"),
    click.option(
        "--user-version",
        type=USER_VERSION,
        default=0,
        show_default=True,
        help="Of every file's header.",
    ),
    click.option(
        "--replaceable",
        "replaceable_types",
        type=click.IntRange(0, 255),
        multiple=True,
        metavar="TYPE",
        help="User type whose updates replace one another; a broker's are 34 and 36. Repeatable.",
    ),
    click.option(
        "--damage",
        type=click.Choice(["fail", "quarantine"]),
        default="fail",
        show_default=True,
        help="On damage of acknowledged data: refuse, or go on without it.",
    ),
)

FIELDS: Final = frozenset(JournalOptions.__dataclass_fields__)

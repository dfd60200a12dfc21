"""The SOURCE of a command: a folder, or the database of a URL.

Who can open URLs is found by the entry point group `quiver.journal.stores`: the journal knows
files.
"""

from __future__ import annotations

from contextlib import contextmanager
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import click

from journal.commands.output import say
from journal.compaction_recovery import plan_recovery
from journal.errors import JournalLocked, WrongUse
from journal.extras import extra_of_url, missing_package
from journal.folder import guess_name
from journal.lock import is_locked
from journal.tools.folder_records import FolderRecords
from journal.tools.stored import Access, is_url

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from journal.compaction_recovery import RecoveryPlan
    from journal.tools.stored import StoredRecords, StoreOpener

__all__ = [
    "GROUP",
    "PASSWORD_VARIABLE",
    "USER_VARIABLE",
    "access_options",
    "access_to",
    "find_opener",
    "login_options",
    "open_folder",
    "open_records",
    "refuse_locked",
]

GROUP: Final = "quiver.journal.stores"
PASSWORD_VARIABLE: Final = "QUIVER_DATABASE_PASSWORD"
USER_VARIABLE: Final = "QUIVER_DATABASE_USER"


def access_options(side: str = "") -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Give a command the options of getting at a database's records.

    Args:
        side: `source` or `target`, for a command that has two.
    """
    flag, name, of = _words(side)
    tables = (
        click.option(
            f"{flag}node-manager-table",
            f"{name}node_table",
            metavar="NAME",
            help=f"{of} table of leases. [default: NODE_MANAGER_STORE]",
        ),
        click.option(
            f"{flag}table",
            f"{name}table",
            metavar="NAME",
            help=f"{of} table of records. [default: MESSAGES]",
        ),
    )
    return lambda command: tables[1](login_options(side)(tables[0](command)))


def login_options(side: str = "") -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Give a command the options of getting at a database, without its tables.

    Args:
        side: as of access_options().
    """
    flag, name, of = _words(side)
    variables = {
        what: [f"QUIVER_{side.upper()}_{what}", f"QUIVER_DATABASE_{what}"] if side else shared
        for what, shared in (("USER", USER_VARIABLE), ("PASSWORD", PASSWORD_VARIABLE))
    }

    def give(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in (
            click.option(
                f"{flag}setting",
                f"{name}settings",
                metavar="NAME=VALUE",
                multiple=True,
                help=f"{of} parameter as in <database-store>, such as jdbc-network-timeout=60000."
                " Repeatable.",
            ),
            click.option(
                f"{flag}password-file",
                f"{name}password_file",
                type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path),
                help=f"{of} file whose first line is the password.",
            ),
            click.option(
                f"{flag}password",
                f"{name}password",
                envvar=variables["PASSWORD"],
                show_envvar=True,
                help=f"{of} password; others see what is on a command line.",
            ),
            click.option(
                f"{flag}user",
                f"{name}user",
                envvar=variables["USER"],
                show_envvar=True,
                help=f"{of} user. [default: the URL's]",
            ),
        ):
            command = option(command)
        return command

    return give


def _words(side: str) -> tuple[str, str, str]:
    """How options of a side begin, and their parameters, and their help."""
    if not side:
        return "--", "", "Of a URL: the"
    return f"--{side}-", f"{side}_", f"Of a {side} URL: the"


def access_to(url: str, given: Mapping[str, Any], side: str = "") -> Access:
    """What the command line said about a URL.

    Args:
        url: the URL.
        given: the command's parameters.
        side: as of access_options().

    Raises:
        OSError: the password file cannot be read.
        WrongUse: a setting is not of the form NAME=VALUE.
    """
    name = f"{side}_" if side else ""
    values = {
        key: given[key]
        for key in ("sync_transactional", "sync_non_transactional")
        if given.get(key) is not None
    }
    return Access(
        url=url,
        table=given.get(f"{name}table"),
        node_table=given.get(f"{name}node_table"),
        user=given.get(f"{name}user"),
        password=_password(given.get(f"{name}password_file"), given.get(f"{name}password")),
        lock_timeout_ms=given.get("lock_acquisition_timeout_ms") or 0,
        settings=dict(map(_setting, given.get(f"{name}settings") or ())),
        **values,
    )


def _setting(text: str) -> tuple[str, str]:
    """Name and value.

    >>> _setting("jdbc-network-timeout=60000")
    ('jdbc-network-timeout', '60000')
    """
    name, mark, value = text.partition("=")
    if not mark:
        raise WrongUse(f"a setting is NAME=VALUE, not {name!r}")
    return name.strip(), value.strip()


def _password(file: Path | None, password: str | None) -> str | None:
    """The first line of the file, which is the nearer word, or the password itself."""
    if file is None:
        return password
    with click.open_file(str(file), encoding="utf-8") as lines:
        return cast("str", lines.readline()).rstrip("\r\n")


def find_opener(url: str) -> StoreOpener:
    """Who opens URLs.

    Args:
        url: what will be opened; an error names the extra for its database.

    Raises:
        WrongUse: no package that opens URLs is installed, or a package that it needs is missing.
    """
    for entry in entry_points(group=GROUP):
        try:
            return cast("StoreOpener", entry.load()())
        except ModuleNotFoundError as error:
            raise WrongUse(missing_package(error, extra_of_url(url))) from error
    raise WrongUse("nothing that opens URLs is installed; give a folder")


@contextmanager
def open_records(
    source: str,
    given: Mapping[str, Any],
    *,
    is_live: bool = False,
    side: str = "",
    **options: Any,  # noqa: ANN401 - those of FolderRecords.
) -> Iterator[StoredRecords]:
    """The records in a folder or behind a URL, to be read; nothing is written.

    Args:
        source: folder or URL.
        given: the command's parameters: of access_options(), `prefix`, `extension`.
        is_live: read a folder even while somebody writes to it; a database shows one moment anyway.
        side: as of access_options().
        options: of FolderRecords.

    Raises:
        JournalLocked: somebody has the folder open, and `is_live` is not given.
        JournalError: it cannot be read.
    """
    if is_url(source):
        with find_opener(source).read(access_to(source, given, side)) as records:
            yield records
    else:
        plan = open_folder(
            source,
            given.get("prefix"),
            given.get("extension"),
            is_live=is_live,
            is_on_disk=options.get("is_on_disk", False),
        )
        yield FolderRecords(plan, **options)


def open_folder(
    folder: str,
    prefix: str | None,
    extension: str | None,
    *,
    is_live: bool = False,
    is_on_disk: bool = False,
) -> RecoveryPlan:
    """Look at a folder as recovery would leave it, without touching it, and say so.

    Args:
        folder: of the journal.
        prefix: of its files; None is guessed.
        extension: of its files; None is guessed.
        is_live: read it even while somebody writes to it.
        is_on_disk: the caller shows what is there before recovery.

    Raises:
        JournalLocked: somebody has the journal open, and `is_live` is not given.
    """
    name = guess_name(folder, prefix, extension)
    refuse_locked(folder, is_live=is_live)
    plan = plan_recovery(folder, name)
    if plan.is_needed:
        shown = "shown as it is before" if is_on_disk else "shown as it will be after"
        say(f"{folder}: {shown} recovery: {plan.describe()}")
    return plan


def refuse_locked(folder: str, *, is_live: bool) -> None:
    """Raise JournalLocked for a journal that somebody has open, unless that is known."""
    if not is_live and is_locked(folder):
        raise JournalLocked(f"{folder} is in use, and changes while it is read; --live reads it")

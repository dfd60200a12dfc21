"""Finds journals by path, glob or URL: one Place for each.

path ─┬─ instance (etc/broker.xml) ─┬─ folders of its journals, of its history
      │                             └─ its database
      ├─ data folder (journal/, bindings/)
      ├─ folder of journal files
      ├─ glob ─ each folder that it names, by the rules above
      ├─ URL of a folder in an object store, or a glob there: as above, but for instances
      └─ URL of a database
"""

from __future__ import annotations

import glob
import re
from pathlib import Path, PurePath, PurePosixPath
from typing import TYPE_CHECKING, Any, Final

from broker.storage.layout import (
    BINDINGS,
    BROKER_XML,
    LARGE_MESSAGES,
    MESSAGES,
    PAGING,
    Layout,
    layout_of_data,
)
from broker.storage.node_view import STATE_FILE, node_id_of_state, stored_node_id
from journal.errors import JournalLocked, WrongUse
from journal.extras import DATABASES, extra_of_url, is_database_url, missing_package
from journal.folder import JournalName, guess_name, list_names, parse_name
from journal.lock import is_locked
from journal.remote import RemotePath
from journal.retention import list_history
from journal.tools.stored import is_url
from pipeline.object_store import OBJECT_STORES, ObjectPath, find_folders, is_object_url
from pipeline.place import Place

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from jdbcstore.options import DatabaseStoreOptions
    from journal.remote import AnyPath
    from pipeline.options import SourceOptions

__all__ = [
    "check_names",
    "find_histories",
    "find_places",
    "journals_and_histories",
    "node_id_of",
]

# What folders are called that say nothing of whose they are.
_COMMON_NAMES: Final = ("bindings", "data", "history", "journal", "retention")
# Of Artemis's message and bindings journals.
_PREFIX_OF_OTHERS: Final = {"messages": "activemq-bindings", "bindings": "activemq-data"}
# Spark's, of paths of this machine: `file:/srv` and `file:///srv`.
_FILE_SCHEME: Final = re.compile(r"^file:(//)?(?=/)")
# Of Databricks, where volumes are folders of the machine, and all else of its store is below /dbfs.
_VOLUME_SCHEME: Final = re.compile(r"^dbfs:/+(?=Volumes/)")
_DBFS_SCHEME: Final = re.compile(r"^dbfs:/+")
# The option that names the table.
_TABLE_OF: Final = {"messages": "message_table_name", "bindings": "bindings_table_name"}


def find_places(options: SourceOptions, part: str, *, is_decoded: bool) -> list[Place]:
    """The journals that a query names.

    Args:
        options: of the query.
        part: which of an instance's two: `messages` or `bindings`.
        is_decoded: refuse a folder whose files are called like those of the other part.

    Raises:
        WrongUse: a path is not a journal, or nothing is found.
        JournalLocked: somebody has one open, and `live` is not given.
        JournalIOError: a folder cannot be read.
    """
    paths = map(_plain, options.paths)
    places = [place for path in paths for place in _places_of(path, options, part)]
    for place in places:
        is_file = place.folder is not None
        if is_decoded and is_file and place.name.prefix == _PREFIX_OF_OTHERS[part]:
            raise WrongUse(
                f"{place.journal} is not a journal of {part}: its files are called"
                f" {place.name.prefix}-N"
            )
    return places


def find_histories(options: SourceOptions) -> list[Place]:
    """The histories (journal-retention-directory) of the instances, or in the folders, named.

    Raises:
        WrongUse: an instance keeps none, a folder is one of something else, or there is nothing.
    """
    name = JournalName(
        options.prefix or JournalName().prefix, options.extension or JournalName().extension
    )
    found = []
    for path in map(_plain, options.paths):
        if is_url(path) and not is_object_url(path):
            _check_database(path)
            raise WrongUse(f"{_shown(path)}: a history is a folder; a database keeps none")
        for folder in _folders(path, options):
            history: AnyPath
            if _is_instance(folder):
                history = _history_of(Path(folder))
            else:
                _refuse_no_history(folder, name)
                history = folder
            found.append(Place(options.node or node_of(folder), str(history), history, name))
    return found


def journals_and_histories(paths: Sequence[str]) -> tuple[list[str], list[str]]:
    """Tell paths of journals and of histories apart.

    An instance that keeps a history is both, and so is a data folder with one called `retention`.

    Raises:
        WrongUse: there is no such folder.
    """
    journals: list[str] = []
    histories: list[str] = []
    for path in map(_plain, paths):
        if is_url(path) and not is_object_url(path):
            journals.append(path)
            continue
        for folder in _folders(path):
            if _is_instance(folder):
                journals.append(str(folder))
                kept = _history_directory(Path(folder))
                # A broker makes it when it starts.
                if kept is not None and kept.is_dir():
                    histories.append(str(folder))
            elif list_history(folder, JournalName()):
                histories.append(str(folder))
            else:
                journals.append(str(folder))
                beside = folder / "retention"
                if beside.is_dir() and list_history(beside, JournalName()):
                    histories.append(str(beside))
    return journals, histories


def node_id_of(place: Place) -> str | None:
    """The id that a broker gave itself, a UUID as text; None where it stands elsewhere, or nowhere.

    Raises:
        OSError: the file cannot be read.
    """
    if place.folder is None:
        return None
    # A history has none, but lies beside its journal, where a broker has its data in one place.
    beside = place.folder.parent / MESSAGES
    return _node_id_in(place.folder) or _node_id_in(beside)


def _node_id_in(folder: AnyPath) -> str | None:
    if not isinstance(folder, RemotePath):
        return stored_node_id(folder)
    file = folder / STATE_FILE
    return node_id_of_state(file.read_bytes()) if file.is_file() else None


def check_names(places: Sequence[Place], *, are_all_others: bool = False) -> None:
    """Refuse two brokers of one name: what one of them stored would be taken for the other's.

    Args:
        places: journals and histories.
        are_all_others: refuse two copies of one broker's data, too.

    Raises:
        WrongUse: there are such.
        OSError: the file with an id cannot be read.
    """
    by_name: dict[str, tuple[str | None, Place]] = {}
    by_id: dict[str, Place] = {}
    for place in places:
        node_id = node_id_of(place)
        if node_id is None and not are_all_others:
            continue
        other_id, other = by_name.setdefault(place.node, (node_id, place))
        if other is not place and (are_all_others or other_id != node_id):
            raise WrongUse(
                f"{other.journal} and {place.journal} would both be called {place.node}: give one"
                " by a link of another name"
            )
        if are_all_others and node_id is not None:
            twin = by_id.setdefault(node_id, place)
            if twin is not place:
                raise WrongUse(
                    f"{twin.journal} and {place.journal} are of one broker, whose node id is"
                    f" {node_id}: give one of them"
                )


def node_of(place: AnyPath) -> str:
    """The name by which people know a folder's owner.

    >>> node_of(Path("/srv/orders/data/journal")), node_of(Path("backup-7"))
    ('orders', 'backup-7')
    >>> node_of(ObjectPath.parse("s3a://orders/data"))
    'orders'
    """
    folder: PurePath
    if isinstance(place, ObjectPath):
        folder = PurePosixPath("/", place.bucket, place.key)
    else:
        folder = Path(place).absolute()
    while folder.name in _COMMON_NAMES and folder.parent.name:
        folder = folder.parent
    return folder.name


def _plain(path: str) -> str:
    """A path of this machine, as Spark may write it, without its scheme.

    >>> _plain("file:///srv/*"), _plain("file:/srv"), _plain("s3a://srv")
    ('/srv/*', '/srv', 's3a://srv')
    >>> _plain("dbfs:/Volumes/main/default/backups"), _plain("dbfs:/backups")
    ('/Volumes/main/default/backups', '/dbfs/backups')
    """
    path = _VOLUME_SCHEME.sub("/", _FILE_SCHEME.sub("", path))
    return _DBFS_SCHEME.sub("/dbfs/", path)


def _places_of(path: str, options: SourceOptions, part: str) -> Iterator[Place]:
    if is_url(path) and not is_object_url(path):
        _check_database(path)
        yield _url_place(path, options, part)
        return
    for folder in _folders(path, options):
        if isinstance(folder, RemotePath):
            yield _remote_place(folder, options, part)
        else:
            yield _folder_place(folder, options, part)


def _folders(path: str, options: SourceOptions | None = None) -> Iterator[AnyPath]:
    """The folder of that name, or those that a glob names."""
    if is_object_url(path):
        if options is not None and options.is_live:
            raise WrongUse(
                f"{path}: no broker writes to an object store: nothing there can be followed, or"
                " read with live=true"
            )
        remote = find_folders(path, {} if options is None else options.storage_options)
        if not remote:
            raise WrongUse(f"{path}: no such folder")
        yield from remote
        return
    folder = Path(path)
    if folder.is_dir():
        yield folder
        return
    found = [Path(name) for name in sorted(glob.glob(path, recursive=True))]
    folders = [one for one in found if one.is_dir()]
    if not folders:
        raise WrongUse(f"{path}: no such folder")
    yield from folders


def _is_instance(folder: AnyPath) -> bool:
    """Whether a folder has a broker.xml.

    Raises:
        WrongUse: it has, in an object store.
    """
    if not isinstance(folder, RemotePath):
        return (folder / BROKER_XML).is_file()
    if (folder / BROKER_XML.parent.name / BROKER_XML.name).is_file():
        raise WrongUse(
            f"{folder} is an instance, and its {BROKER_XML} names folders of its own machine: in an"
            " object store give the folder of its data"
        )
    return False


def _remote_place(folder: RemotePath, options: SourceOptions, part: str) -> Place:
    """The journal in a folder of an object store: of its files, or of a broker's data."""
    _is_instance(folder)
    node = options.node or node_of(folder)
    found = set(folder.names())
    journal = folder
    large_messages = paging = bindings = None
    if found & {MESSAGES, BINDINGS}:
        journal = folder / (BINDINGS if part == "bindings" else MESSAGES)
        large = next((name for name in LARGE_MESSAGES if name in found), None)
        large_messages = None if large is None else folder / large
        if part == "messages":
            paging = folder / PAGING if PAGING in found else None
            bindings = _bindings_place(node, folder / BINDINGS)
    name = guess_name(journal, options.prefix, options.extension)
    return Place(node, str(journal), journal, name, large_messages, paging, bindings)


def _folder_place(folder: Path, options: SourceOptions, part: str) -> Place:
    node = options.node or node_of(folder)
    journal = folder
    large_messages = paging = bindings = None
    is_instance = (folder / BROKER_XML).is_file()
    if is_instance or (folder / MESSAGES).is_dir() or (folder / BINDINGS).is_dir():
        layout = _layout_of_instance(folder) if is_instance else layout_of_data(folder)
        if layout.database is not None:
            return _table_place(node, layout.database, part)
        journal = layout.bindings if part == "bindings" else layout.messages
        large_messages = layout.large_messages
        if part == "messages":
            paging = layout.paging
            bindings = _bindings_place(node, layout.bindings)
    name = guess_name(journal, options.prefix, options.extension)
    if not options.is_live and is_locked(journal):
        raise JournalLocked(
            f"{journal} is in use, and changes while it is read; the option live=true reads it"
        )
    return Place(node, str(journal), journal, name, large_messages, paging, bindings)


def _bindings_place(node: str, folder: AnyPath) -> Place | None:
    """The bindings of a message journal, looked at for its queues; None where there are none."""
    if not folder.is_dir():
        return None
    try:
        return Place(node, str(folder), folder, guess_name(folder))
    except WrongUse:
        return None  # No files, or of more than one journal: which queues there are is not known.


def _refuse_no_history(folder: AnyPath, name: JournalName) -> None:
    """Tell a folder of something else from a history without copies."""
    has_journal = (folder / "journal").is_dir() or any(
        parse_name(name, file) is not None for file in list_names(folder)
    )
    if has_journal and not list_history(folder, name):
        raise WrongUse(
            f"{folder} is not a history but has a journal: give the folder of copies"
            " (journal-retention-directory), or the instance"
        )


def _history_of(instance: Path) -> Path:
    history = _history_directory(instance)
    if history is None:
        raise WrongUse(f"{instance} keeps no history (journal-retention-directory)")
    return history


# Imported below, when there is a broker.xml: all that reads one takes longer to load than the rest.


def _layout_of_instance(instance: Path) -> Layout:
    from broker.config import ConfigError
    from broker.options.layout import layout_of

    try:
        return layout_of(instance, needs_all=False)
    except ConfigError as error:
        raise WrongUse(str(error)) from None


def _history_directory(instance: Path) -> Path | None:
    from broker.config import ConfigError, load
    from broker.options.from_config import broker_options
    from broker.storage.open import FileStoreOptions

    try:
        store = broker_options(load(instance / BROKER_XML, lenient=True)).store
    except ConfigError as error:
        raise WrongUse(str(error)) from None
    history = store.messages.retention_directory if isinstance(store, FileStoreOptions) else None
    return None if history is None else Path(history)


# --- databases ----------------------------------------------------------------------------------


def _check_database(url: str) -> None:
    """Raise WrongUse for a URL of nothing that can be read."""
    if not is_database_url(url):
        raise WrongUse(
            f"{_shown(url)}: is neither an object store nor a database. A path is a folder of this"
            f" machine, a glob, or a URL: of an object store ({', '.join(OBJECT_STORES)}), of a"
            f" database as JDBC has it (jdbc:...) or SQLAlchemy ({', '.join(DATABASES)})"
        )


def _url_place(path: str, options: SourceOptions, part: str) -> Place:
    try:
        from jdbcstore.options import DatabaseStoreOptions  # Here: files need no SQLAlchemy.
    except ModuleNotFoundError as error:
        raise WrongUse(missing_package(error, extra_of_url(path))) from error

    database = DatabaseStoreOptions(
        connection_url=path, user=options.user, password=options.password
    )
    if options.table is not None:
        changes: dict[str, Any] = {_TABLE_OF[part]: options.table}
        database = database.replace(**changes)
    return _table_place(options.node, database, part)


def _table_place(node: str | None, database: DatabaseStoreOptions, part: str) -> Place:
    try:
        from jdbcstore.url import connection_url
    except ModuleNotFoundError as error:
        extra = extra_of_url(database.connection_url or "")
        raise WrongUse(missing_package(error, extra)) from error

    url = connection_url(database)
    table = getattr(database, _TABLE_OF[part])
    name = Path(url.database or "").stem
    shown = f"{url.get_backend_name()}://{url.host or ''}/{url.database or ''} {table}"
    node = node or (f"{url.host}/{name}" if url.host else name)
    bindings = None
    if part == "messages":
        bindings = _table_place(node, database, "bindings")
    return Place(node, shown, database=database, table=table, bindings=bindings)


def _shown(url: str) -> str:
    """What of a URL may be shown: it may hold a password."""
    return url.partition(":")[0]

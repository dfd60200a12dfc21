"""`pipeline replay`: send messages of journals and histories again, to a running broker."""

from __future__ import annotations

import json
import re
import time
from collections import defaultdict
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from broker.selector import SelectorError, parse, translate_jms
from journal.commands.exit_status import DAMAGED
from journal.commands.output import example, say, write_lines
from journal.commands.passwords import PASSWORD_VARIABLE
from journal.commands.progress import Progress
from journal.remote import RemotePath
from pipeline.broker_options import BrokerOptions
from pipeline.cli.sources import read, source_options, spark_of
from pipeline.large_bodies import open_bodies
from pipeline.options import SourceOptions
from pipeline.places import (
    check_names,
    find_histories,
    find_places,
    journals_and_histories,
    node_id_of,
)
from pipeline.replay import ReplayRequest, parts_of, select
from pipeline.replay_bodies import ReplayBodies
from pipeline.replay_progress import ReplayProgress, default_folder, job_of
from pipeline.replay_sending import ReplaySender

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from broker.model.large_body import ReadableBody

__all__ = ["replay"]

# As the management's replay has it (yyyyMMddHHmmss).
_PLAIN: Final = re.compile(r"\d{14}")
_PLAIN_FORMAT: Final = "%Y%m%d%H%M%S"
_PROBLEMS_SHOWN: Final = 20


class Moment(click.ParamType):  # type: ignore[type-arg]  # Generic only since click 8.3.
    """ISO 8601, or `yyyyMMddHHmmss`, local time unless it says otherwise; or ms since 1970."""

    name = "time"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> int:
        """Milliseconds since 1970."""
        if isinstance(value, int):
            return value
        text = str(value)
        try:
            if _PLAIN.fullmatch(text):
                found = datetime.strptime(text, _PLAIN_FORMAT)  # noqa: DTZ007 - local time is meant
            elif text.isascii() and text.isdigit():
                return int(text)
            else:
                found = datetime.fromisoformat(text)
            return round(found.timestamp() * 1000)
        except (ValueError, OverflowError, OSError):
            self.fail(
                f"{text!r} is not a valid time: write 2026-11-22T10:30:00 (local, or with +00:00"
                " behind it), 20261122103000, or milliseconds since 1970",
                param,
                ctx,
            )


@click.command(
    "replay",
    epilog=example(
        "pipeline replay 'backups/*/data' --address orders --from 2026-11-22T08:00:00"
        " --to 2026-11-22T09:00:00 --url tcp://localhost:61616"
    ),
)
@source_options
@click.option("--address", required=True, help="Address that messages were sent to.")
@click.option("--target", help="Address to send to.  [default: the same address]")
@click.option(
    "--routing-type",
    type=click.Choice(["ANYCAST", "MULTICAST"], case_sensitive=False),
    help="Of messages that do not say: an address that is made for none is MULTICAST, and keeps"
    " nothing without a queue.",
)
@click.option("--from", "first_ms", type=Moment(), help="Sent at this time or later.")
@click.option("--to", "end_ms", type=Moment(), help="Sent before this time.")
@click.option("--filter", "selector", help="JMS selector: only messages that match.")
@click.option("--url", required=True, help="Connection URI of the broker.")
@click.option("--user", help="User name; anonymous without it.")
@click.option(
    "--password", envvar=PASSWORD_VARIABLE, show_envvar=True, help="Password of the user."
)
@click.option(
    "--job",
    help="Names the replay: another name sends everything again.  [default: made of address,"
    " target, times and filter]",
)
@click.option(
    "--checkpoint",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder for the progress of replays.  [default: ~/.local/state/quiver/replay]",
)
@click.option(
    "--id-cache-size",
    type=click.IntRange(min=1),
    help="Duplicate ids that the target keeps.  [default: asked of the broker]",
)
@click.option("--json", "as_json", is_flag=True, help="Print the result as a JSON object.")
def replay(
    sources: tuple[str, ...],
    *,
    address: str,
    target: str | None,
    routing_type: str | None,
    first_ms: int | None,
    end_ms: int | None,
    selector: str | None,
    url: str,
    user: str | None,
    password: str | None,
    job: str | None,
    checkpoint: Path | None,
    id_cache_size: int | None,
    as_json: bool,
    **given: Any,  # noqa: ANN401 - click's.
) -> int:
    """Send the messages of an address again, exactly once.

    It goes to a running broker.

    SOURCE is an instance, a folder of a journal, of data or of a history
    (journal-retention-directory), or a glob of these; or the URL of a database. The same command
    given again goes on where it was ended, and sends nothing twice. Exit status 1: the broker
    refused something, or something is damaged or not whole, and was not sent.
    """
    if first_ms is not None and end_ms is not None and first_ms >= end_ms:
        raise click.UsageError("--from is not before --to")
    target = target or address
    question = {
        "address": address,
        "target": target,
        "from": first_ms,
        "to": end_ms,
        "filter": selector,
    }
    job = job or job_of(question)
    options = BrokerOptions.of_write(
        {
            name: str(value)
            for name, value in {
                "url": url,
                "user": user,
                "password": password,
                "address": target,
                "routingType": routing_type and routing_type.upper(),
                "idCacheSize": id_cache_size,
            }.items()
            if value is not None
        }
    )
    now_ms = time.time_ns() // 1_000_000
    request = ReplayRequest(address, first_ms, end_ms, _translated(selector), now_ms)
    stored = _Stored(sources, given)
    progress = ReplayProgress(checkpoint or default_folder(), job, url)
    # Before Spark starts, which takes a while: whether anybody is there, and lets us in. A broker
    # that goes away later is waited for.
    ReplaySender(replace(options, reconnect_timeout_ms=0), job, progress).close()
    spark = spark_of(given)
    try:
        selection = select(stored.frames(spark), stored.origins, request)
        damages = selection.damages()
        total = selection.count()
        large = selection.large_ids()
        parts = parts_of(stored.frames(spark), stored.origins, large) if large else ()
        with (
            stored.large_tables() as tables,
            ReplaySender(options, job, progress) as sender,
            Progress("replay") as bar,
        ):
            bodies = ReplayBodies(stored.large_folders, tables, parts)
            sender.send(selection.messages(), bodies, lambda done: bar(0, 0, done, total))
    finally:
        spark.stop()
    problems = [*damages, *sender.problems]
    if as_json:
        done = {"found": total, "sent": sender.count, "problems": problems, "job": job}
        write_lines(iter([json.dumps(done, ensure_ascii=False)]))
    _tell(problems, total, sender.count, sender.unsent, target)
    return DAMAGED if problems else 0


def _translated(selector: str | None) -> str | None:
    """A selector in the broker's language; None where it takes everything.

    Raises:
        click.BadParameter: it cannot be read.
    """
    text = translate_jms(selector or "")
    try:
        return text if parse(text) is not None else None
    except SelectorError as error:
        raise click.BadParameter(str(error), param_hint="--filter") from None


def _tell(problems: Sequence[str], total: int, sent: int, unsent: int, target: str) -> None:
    for problem in problems[:_PROBLEMS_SHOWN]:
        say(problem)
    if len(problems) > _PROBLEMS_SHOWN:
        say(f"... and {len(problems) - _PROBLEMS_SHOWN} more (--json has them all)")
    earlier = max(0, total - sent - unsent)
    said = [f"{sent} of {total} messages sent to {target}"]
    said += [f"{earlier} were sent by a run before"] if earlier else []
    said += [f"{unsent} could not be sent"] if unsent else []
    say("; ".join(said))


class _Stored:
    """What SOURCE leads to.

    Args:
        sources: as given.
        given: the options of reading.

    Attributes:
        origins: the id of each node, by its name; its name where it has no id.
        large_folders: by that, where its large messages are.

    Raises:
        JournalError: something there is none of these, somebody has it open, or two brokers have
            one name.
    """

    def __init__(self, sources: tuple[str, ...], given: Mapping[str, Any]) -> None:
        self._given = given
        self._journals, self._histories = journals_and_histories(sources)
        journals = find_places(
            SourceOptions(tuple(self._journals), is_live=given["is_live"]),
            "messages",
            is_decoded=True,
        )
        histories = find_histories(SourceOptions(tuple(self._histories)))
        check_names([*journals, *histories])
        self.origins: dict[str, str] = {}
        for place in (*journals, *histories):
            node_id = node_id_of(place)
            if node_id is not None:
                self.origins[place.node] = node_id
            self.origins.setdefault(place.node, place.node)
        self.large_folders: dict[str, list[Path]] = defaultdict(list)
        # Those that do not have large messages in files of this machine.
        self._stores = [
            place
            for place in journals
            if place.database is not None or isinstance(place.large_messages, RemotePath)
        ]
        for place in journals:
            if isinstance(place.large_messages, Path):
                self.large_folders[self.origins[place.node]].append(place.large_messages)

    @contextmanager
    def large_tables(self) -> Iterator[dict[str, list[Callable[[int], ReadableBody | None]]]]:
        """By node, what finds the body of a large message in a database or an object store.

        Raises:
            JournalError: the database cannot be queried.
        """
        found: dict[str, list[Callable[[int], ReadableBody | None]]] = defaultdict(list)
        with ExitStack() as stack:
            for place in self._stores:
                find = stack.enter_context(open_bodies(place))
                found[self.origins[place.node]].append(find)
            yield found

    def frames(self, spark: SparkSession) -> list[DataFrame]:
        """What the sources have."""
        found = []
        if self._journals:
            found.append(read(spark, "journal", self._journals, self._given))
        if self._histories:
            found.append(read(spark, "retention", self._histories, self._given))
        return found

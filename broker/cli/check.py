"""`broker check`: check the health of a running broker, or of one of its queues."""

from __future__ import annotations

import json
import time
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import click

from broker.cli.connect import connected, connecting
from broker.client.errors import ClientError
from journal.commands.output import example

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.client import Session

__all__ = ["check"]

TIMEOUT_MS: Final = 30_000
FAILED: Final = 1
SUCCESS: Final = "success"
# The body of what `--produce` sends, as Artemis's.
CHECK_TEXT: Final = "CHECK_MESSAGE"


class CheckFailed(Exception):
    """Something is not as it should be; the text says what."""


@dataclass(frozen=True, slots=True)
class Check:
    """One question.

    Attributes:
        assertion: what should be so.
        run: finds out, given a session and when to give up (time.monotonic seconds).
    """

    assertion: str
    run: Callable[[Session, float], None]


def checking(command: Callable[..., object]) -> Callable[..., object]:
    """Give a command what all checks have."""
    for option in (
        click.option("--json", "is_json", is_flag=True, help="One JSON object."),
        click.option(
            "--fail-at-end", is_flag=True, help="Go on with the other checks when one fails."
        ),
        click.option(
            "--timeout",
            "timeout_ms",
            type=click.IntRange(min=1),
            default=TIMEOUT_MS,
            show_default=True,
            help="Milliseconds for all checks.",
        ),
    ):
        command = option(command)
    return connecting(command)


@click.group(no_args_is_help=False, epilog=example("broker check node --memoryUsage 80"))
def check() -> None:
    """Check the health of a running broker.

    Exit status 1: it is not.
    """


@check.command(epilog=example("broker check node --up --diskUsage 90"))
@click.option("--name", help="Id of the node, for --primary and --backup. [default: its own]")
@click.option("--up", is_flag=True, help="Check that it is started; the default check.")
@click.option(
    "--diskUsage",
    "disk_usage",
    type=int,
    help="Percent of the disk used at most; -1: max-disk-usage.",
)
@click.option(
    "--memoryUsage",
    "memory_usage",
    type=click.IntRange(1, 99),
    help="Percent of the memory for messages used at most.",
)
@click.option(
    "--primary", "--live", "primary", is_flag=True, help="Check that the node has a primary."
)
@click.option("--backup", is_flag=True, help="Check that the node has a backup.")
@click.option(
    "--peers",
    type=click.IntRange(min=1),
    help="Members of the cluster at least, this one included.",
)
@checking
def node(
    url: str,
    user: str | None,
    password: str | None,
    name: str | None,
    disk_usage: int | None,
    memory_usage: int | None,
    peers: int | None,
    timeout_ms: int,
    *,
    up: bool,
    primary: bool,
    backup: bool,
    fail_at_end: bool,
    is_json: bool,
) -> int:
    """Check a broker."""
    if disk_usage is not None and disk_usage != -1 and not 0 < disk_usage < 100:
        raise click.UsageError(f"--diskUsage {disk_usage} is neither 1 … 99 nor -1")
    checks = []
    if primary:
        checks.append(Check("the node has a primary", lambda s, _: _has(s, name, "primary")))
    if backup:
        checks.append(Check("the node has a backup", lambda s, _: _has(s, name, "backup")))
    if peers is not None:
        checks.append(Check(f"there are {peers} peers", lambda s, _: _peers(s, peers)))
    if disk_usage is not None:
        limit = "max-disk-usage" if disk_usage == -1 else str(disk_usage)
        checks.append(
            Check(f"at most {limit} % of the disk is used", lambda s, _: _disk(s, disk_usage))
        )
    if memory_usage is not None:
        checks.append(
            Check(
                f"at most {memory_usage} % of the memory is used",
                lambda s, _: _memory(s, memory_usage),
            )
        )
    if up or not checks:
        checks.insert(0, Check("the node is started", lambda s, _: _is_started(s)))
    return _run(
        "NodeCheck", checks, (url, user, password), timeout_ms, goes_on=fail_at_end, is_json=is_json
    )


def _is_started(session: Session) -> None:
    if session.attribute("broker", "Started") is not True:
        raise CheckFailed("The node is not started.")


def _topology(session: Session) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(session.manage("broker", "listNetworkTopology"))
    return found


def _has(session: Session, name: str | None, role: str) -> None:
    node_id = name or session.attribute("broker", "NodeID")
    # Older brokers say `live`.
    keys = ("primary", "live") if role == "primary" else (role,)
    for member in _topology(session):
        if member.get("nodeID") == node_id and any(member.get(key) for key in keys):
            return
    raise CheckFailed(f"No {role} found for the node {node_id}")


def _peers(session: Session, wanted: int) -> None:
    roles = ("primary", "live", "backup")
    count = sum(bool(member.get(role)) for member in _topology(session) for role in roles)
    if count < wanted:
        raise CheckFailed(f"Insufficient peers: {count}")


def _disk(session: Session, limit: int) -> None:
    if limit == -1:
        limit = session.attribute("broker", "MaxDiskUsage")
        if limit < 0:
            return  # It has none.
    used = int(session.attribute("broker", "DiskStoreUsage") * 100)
    if used > limit:
        raise CheckFailed(f"The DiskStoreUsage {used} is more than {limit}")


def _memory(session: Session, limit: int) -> None:
    used = session.attribute("broker", "AddressMemoryUsagePercentage")
    if used > limit:
        raise CheckFailed(f"The MemoryUsage {used} is more than {limit}")


@check.command(epilog=example("broker check queue --name orders --browse -1"))
@click.option("--name", required=True, help="Of the queue.")
@click.option(
    "--up", is_flag=True, help="Check that it exists and is not paused; the default check."
)
@click.option("--browse", type=int, help="Browse so many messages; -1: any number.")
@click.option("--consume", type=int, help="Consume so many messages; -1: at most one.")
@click.option("--produce", type=click.IntRange(min=1), help="Send so many messages.")
@checking
def queue(
    url: str,
    user: str | None,
    password: str | None,
    name: str,
    browse: int | None,
    consume: int | None,
    produce: int | None,
    timeout_ms: int,
    *,
    up: bool,
    fail_at_end: bool,
    is_json: bool,
) -> int:
    """Check a queue."""
    for option, count in (("--browse", browse), ("--consume", consume)):
        if count is not None and count != -1 and count < 1:
            raise click.UsageError(f"{option} {count} is neither -1 nor above 0")
    checks = []
    if produce is not None:
        checks.append(
            Check(
                f"a producer can send {produce} messages to the queue {name}",
                lambda s, _: _produce(s, name, produce),
            )
        )
    for verb, count, runner in (("browse", browse, _browse), ("consume", consume, _consume)):
        if count is not None:
            what = f"the queue {name}" if count == -1 else f"{count} messages from the queue {name}"
            checks.append(Check(f"a consumer can {verb} {what}", _counted(runner, name, count)))
    if up or not checks:
        checks.insert(
            0, Check(f"the queue {name} exists and is not paused", lambda s, _: _is_up(s, name))
        )
    return _run(
        "QueueCheck",
        checks,
        (url, user, password),
        timeout_ms,
        goes_on=fail_at_end,
        is_json=is_json,
    )


def _counted(
    runner: Callable[[Session, str, int, float], None], name: str, count: int
) -> Callable[[Session, float], None]:
    return lambda session, deadline: runner(session, name, count, deadline)


def _is_up(session: Session, name: str) -> None:
    if session.attribute(f"queue.{name}", "Paused"):
        raise CheckFailed("The queue is paused.")


def _produce(session: Session, name: str, count: int) -> None:
    with session.producer(name) as producer:
        for _ in range(count):
            producer.send(CHECK_TEXT)


def _browse(session: Session, name: str, count: int, deadline: float) -> None:
    del deadline  # Browsing does not wait for messages.
    seen = 0
    with session.consumer(name, browse=True) as consumer:
        while seen < max(count, 1) and consumer.receive_now() is not None:
            seen += 1
    if seen < count:
        raise CheckFailed(f"Insufficient messages to browse: {seen}")


def _consume(session: Session, name: str, count: int, deadline: float) -> None:
    with session.consumer(name) as consumer:
        if count == -1:
            consumer.receive_now()
            return
        for taken in range(count):
            found = consumer.receive(max(deadline - time.monotonic(), 0))
            if found is None:
                raise CheckFailed(f"Insufficient messages to consume: {taken}")


def _run(
    title: str,
    checks: list[Check],
    login: tuple[str, str | None, str | None],
    timeout_ms: int,
    *,
    goes_on: bool,
    is_json: bool,
) -> int:
    """Run checks one after the other and say what came out; the exit status."""
    started = time.monotonic()
    deadline = started + timeout_ms / 1000
    found: list[dict[str, str]] = []
    if not is_json:
        click.echo(f"Running {title}")
    with ExitStack() as stack:
        session = stack.enter_context(connected(*login, call_timeout=timeout_ms))
        for one in checks:
            if not is_json:
                click.echo(f"Checking that {one.assertion} ... ", nl=False)
            result, reason = _result(one, session, deadline)
            found.append({"assertion": one.assertion, "result": result, "reason": reason})
            if not is_json:
                click.echo(f"{result}: {reason}" if reason else result)
            if result != SUCCESS and not goes_on:
                break
    found += [
        {"assertion": one.assertion, "result": "skipped", "reason": ""}
        for one in checks[len(found) :]
    ]
    counts = Counter(one["result"] for one in found)
    seconds = time.monotonic() - started
    if is_json:
        click.echo(json.dumps({"check": title, "checks": found, "seconds": round(seconds, 3)}))
    else:
        click.echo(
            f"Checks run: {len(checks)}, Failures: {counts['failure']}, Errors: {counts['error']},"
            f" Skipped: {counts['skipped']}, Time elapsed: {seconds:.3f} sec - {title}"
        )
    return 0 if counts[SUCCESS] == len(checks) else FAILED


def _result(one: Check, session: Session, deadline: float) -> tuple[str, str]:
    """Run a check; what came out, and why."""
    try:
        if time.monotonic() >= deadline:
            return "failure", "timeout"
        one.run(session, deadline)
    except CheckFailed as failure:
        return "failure", str(failure)
    except ClientError as error:
        return "error", str(error)
    return SUCCESS, ""

"""`broker create`: the folder of a new instance."""

from __future__ import annotations

import secrets
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from broker.cli.instance_files import InstanceFiles
from broker.config.cluster import MessageLoadBalancing
from broker.config.template import InstanceOptions, NamedDestination
from broker.config.transport import parse_transport
from broker.model.routing_type import RoutingType
from broker.settings.policies import AddressFullPolicy
from broker.storage.layout import BROKER_XML
from journal.commands.output import example, say
from journal.commands.passwords import PASSWORD_VARIABLE
from journal.options import JournalType

__all__ = ["create"]

# The cluster template's group of Artemis.
DISCOVERY: Final = "231.7.7.7:9876"
ROUTING_TYPES: Final = {"anycast": RoutingType.ANYCAST, "multicast": RoutingType.MULTICAST}


if TYPE_CHECKING:
    DestinationsType = click.ParamType[tuple[NamedDestination, ...]]
else:
    # Older releases of click have no type parameter here.
    DestinationsType = click.ParamType


class Destinations(DestinationsType):
    """`a,b:multicast`."""

    name = "NAME[:TYPE],..."

    def __init__(self, default: RoutingType) -> None:
        self.default = default

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[NamedDestination, ...]:
        """The destinations of a list; a default is one already."""
        if isinstance(value, tuple):
            return value
        found = []
        for item in str(value).split(","):
            name, colon, kind = item.strip().rpartition(":")
            if not colon or kind.lower() not in ROUTING_TYPES:
                name, kind = item.strip(), self.default.name
            if not name:
                self.fail(f"{item!r} names nothing", param, ctx)
            found.append(NamedDestination(name, ROUTING_TYPES[kind.lower()]))
        return tuple(found)


@click.command(epilog=example("broker create my-broker --user me --queues orders,bills"))
@click.argument("directory", type=click.Path(file_okay=False, path_type=Path))
@click.option("--name", help="Name of the broker. [default: the host's]")
@click.option("--host", default="0.0.0.0", show_default=True, help="Address to listen on.")
@click.option(
    "--port",
    "--default-port",
    default=61616,
    show_default=True,
    help="Port for clients of every protocol.",
)
@click.option(
    "--http-host", default="localhost", show_default=True, help="Address for metrics and health."
)
@click.option(
    "--http-port",
    default=8161,
    show_default=True,
    type=click.IntRange(0, 65535),
    help="Port for metrics and health; 0 for a free one.",
)
@click.option("--no-web", is_flag=True, help="No metrics and health over HTTP.")
@click.option("--user", default="admin", show_default=True, help="The first user.")
@click.option(
    "--password",
    envvar=PASSWORD_VARIABLE,
    show_envvar=True,
    help="Password of the user; stored hashed. [default: a random one, shown once]",
)
@click.option("--role", default="amq", show_default=True, help="Role with all permissions.")
@click.option(
    "--allow-anonymous/--require-login", default=False, help="Log anonymous clients in as the user."
)
@click.option(
    "--no-persistence", "--disable-persistence", is_flag=True, help="Do not persist messages."
)
@click.option(
    "--data",
    "data_folder",
    default="data",
    show_default=True,
    help="Folder of what is stored; of the instance, or an absolute path.",
)
@click.option("--jdbc", "jdbc_url", help="Keep data in this database (JDBC or SQLAlchemy URL).")
@click.option("--jdbc-user", help="User of the database.")
@click.option("--jdbc-password", help="Password of the database; written masked.")
@click.option(
    "--journal-type",
    type=click.Choice(list(JournalType), case_sensitive=False),
    default=str(JournalType.ASYNCIO),
    show_default=True,
    help="How files are written.",
)
@click.option("--no-fsync", is_flag=True, help="Do not sync: a power cut may lose messages.")
@click.option("--queues", type=Destinations(RoutingType.ANYCAST), default=(), help="To create.")
@click.option(
    "--addresses", type=Destinations(RoutingType.MULTICAST), default=(), help="To create."
)
@click.option(
    "--autocreate/--no-autocreate",
    default=True,
    help="Create addresses and queues at their first use.",
)
@click.option(
    "--autodelete/--no-autodelete", default=False, help="Delete unused addresses and queues."
)
@click.option(
    "--full-policy",
    type=click.Choice([policy.name for policy in AddressFullPolicy], case_sensitive=False),
    default="PAGE",
    show_default=True,
    help="Policy of full addresses.",
)
@click.option("--global-max-size", help="Memory for messages, such as 1G.")
@click.option(
    "--max-disk-usage",
    type=click.IntRange(-1, 100),
    default=90,
    show_default=True,
    help="Producers wait on a disk fuller than so many percent; -1 never.",
)
@click.option("--clustered", is_flag=True, help=f"Find other brokers by multicast, {DISCOVERY}.")
@click.option(
    "--discovery", metavar="GROUP:PORT", help="Find other brokers by this multicast group."
)
@click.option("--static-cluster", metavar="URI,...", help="URIs of the other brokers.")
@click.option("--cluster-user", help="User of the cluster; random without one.")
@click.option(
    "--cluster-password", help="Password of the cluster; random without one; written masked."
)
@click.option(
    "--max-hops",
    default=1,
    show_default=True,
    type=click.IntRange(0),
    help="Brokers that a message may pass on its way; 0 moves none.",
)
@click.option(
    "--message-load-balancing",
    type=click.Choice([mode.name for mode in MessageLoadBalancing], case_sensitive=False),
    default="ON_DEMAND",
    show_default=True,
    help="When messages go to other brokers.",
)
@click.option("--shared-store", is_flag=True, help="Make it one of two brokers that share a store.")
@click.option("--backup", is_flag=True, help="Make it the backup of the two.")
@click.option("--failover-on-shutdown", is_flag=True, help="Fail over to the backup at a shutdown.")
@click.option("--force", is_flag=True, help="Overwrite the files of an instance; data/ stays.")
def create(
    directory: Path,
    name: str | None,
    host: str,
    port: int,
    http_host: str,
    http_port: int,
    user: str,
    password: str | None,
    role: str,
    data_folder: str,
    jdbc_url: str | None,
    jdbc_user: str | None,
    jdbc_password: str | None,
    journal_type: str,
    queues: tuple[NamedDestination, ...],
    addresses: tuple[NamedDestination, ...],
    full_policy: str,
    global_max_size: str | None,
    max_disk_usage: int,
    discovery: str | None,
    static_cluster: str | None,
    cluster_user: str | None,
    cluster_password: str | None,
    max_hops: int,
    message_load_balancing: str,
    *,
    allow_anonymous: bool,
    no_persistence: bool,
    no_fsync: bool,
    autocreate: bool,
    autodelete: bool,
    clustered: bool,
    shared_store: bool,
    backup: bool,
    failover_on_shutdown: bool,
    force: bool,
    no_web: bool,
) -> None:
    """Make the instance DIRECTORY.

    It has etc/broker.xml, users and roles, and data/.
    """
    _refuse_empty(click.get_current_context())
    others = tuple(filter(None, map(str.strip, (static_cluster or "").split(","))))
    for other in others:
        try:
            parse_transport("other", other)
        except ValueError as error:
            raise click.UsageError(f"--static-cluster: {error}") from None
    if others and (clustered or discovery):
        raise click.UsageError("--static-cluster or --discovery, not both")
    if clustered and discovery is None:
        discovery = DISCOVERY
    if backup and not shared_store:
        raise click.UsageError("--backup goes with --shared-store")
    if no_persistence and (jdbc_url or shared_store):
        raise click.UsageError("--no-persistence keeps nothing: no --jdbc, no --shared-store")
    host_name = socket.gethostname()
    is_clustered = bool(others) or discovery is not None
    # The default pair is public, and every broker that shows it is refused.
    made_pair = is_clustered and not (cluster_user and cluster_password)
    if made_pair:
        cluster_user = cluster_user or f"cluster-{secrets.token_hex(4)}"
        cluster_password = cluster_password or secrets.token_hex(16)
    options = InstanceOptions(
        name=name or host_name,
        host=host,
        port=port,
        role=role,
        is_persistent=not no_persistence,
        data_folder=data_folder,
        journal_type=journal_type.upper(),
        datasync=not no_fsync,
        jdbc_url=jdbc_url,
        jdbc_user=jdbc_user,
        jdbc_password=jdbc_password,
        queues=queues,
        addresses=addresses,
        auto_create=autocreate,
        auto_delete=autodelete,
        full_policy=full_policy.upper(),
        global_max_size=global_max_size,
        max_disk_usage=max_disk_usage,
        connector_host=host_name if host in ("0.0.0.0", "::") else host,
        static_cluster=others,
        discovery=discovery,
        cluster_user=cluster_user,
        cluster_password=cluster_password,
        max_hops=max_hops,
        message_load_balancing=message_load_balancing.upper(),
        shared_store=("backup" if backup else "primary") if shared_store else None,
        failover_on_shutdown=failover_on_shutdown,
    )
    if (directory / BROKER_XML).exists() and not force:
        raise click.UsageError(f"{directory} is an instance already; --force writes over its etc/")
    is_random = password is None
    password = password or secrets.token_urlsafe(12)
    files = InstanceFiles(
        options,
        user,
        password,
        is_anonymous=allow_anonymous,
        web=None if no_web else (http_host, http_port),
    )
    files.write(directory)
    say(f"created: {directory}")
    if is_random:
        say(f"user {user}, password {password} (kept as a hash; change it with `broker user`)")
    if made_pair:
        say(
            "for the other nodes of the cluster: "
            f"--cluster-user {cluster_user} --cluster-password {cluster_password}"
        )


def _refuse_empty(context: click.Context) -> None:
    """See that no option was given as "", which would count as not given."""
    for option in context.command.params:
        if context.params.get(option.name or "") == "":
            raise click.BadParameter("it is empty", context, option)

"""The files of a new instance: etc/broker.xml with comments, users, roles, login.config."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final
from xml.sax.saxutils import escape, quoteattr

from broker.model.routing_type import RoutingType
from journal.masking import mask

__all__ = ["InstanceOptions", "NamedDestination", "render_broker_xml", "render_login_config"]

# What a role with everything has; `view` and `edit` are for management by message.
PERMISSIONS: Final = (
    *("createNonDurableQueue", "deleteNonDurableQueue", "createDurableQueue"),
    *("deleteDurableQueue", "createAddress", "deleteAddress", "consume", "browse", "send"),
    *("manage", "view", "edit"),
)


# `//user:password@host` of SQLAlchemy and `:user/password@` of Oracle; `password=…` of any of them.
_WITH_PASSWORD: Final = re.compile(
    r"//[^/?#@]*:[^/?#]*@|:[^/:@]+/[^@/]+@|(?:password|passwd|pwd)[^=&;:]*=[^&;:]", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class NamedDestination:
    """A queue with an address of its name, or an address alone."""

    name: str
    routing_type: RoutingType


REDISTRIBUTION_DELAY_MS: Final = 5000
"""Of the nodes of a cluster: who reconnects within it finds messages where they were. Artemis's
default is -1, never."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceOptions:
    """What `broker create` was asked for.

    Attributes:
        name: of the broker.
        host: to listen on.
        port: to listen on.
        role: that may do everything.
        is_persistent: data is kept.
        data_folder: of what is stored; of the instance, or an absolute path.
        journal_type: NIO, ASYNCIO, MAPPED or IO_URING.
        datasync: writes survive a power cut.
        jdbc_url: of a database that keeps the data; None for files.
        jdbc_user: of the database.
        jdbc_password: of the database; written masked.
        queues: to make at the start.
        addresses: to make at the start.
        auto_create: addresses and queues are made when they are used.
        auto_delete: they are deleted when they are not used any more.
        full_policy: what happens at an address that is full.
        global_max_size: bytes in memory as text, None for half of it.
        max_disk_usage: percent of the disk from which on producers wait; -1 never.
        connector_host: how others reach this broker.
        static_cluster: URIs of the other nodes.
        discovery: multicast group `host:port` of a cluster; None without.
        cluster_user: of the cluster.
        cluster_password: of the cluster; written masked.
        max_hops: of the cluster.
        message_load_balancing: of the cluster.
        shared_store: `primary` or `backup` of a pair on one store, None alone.
        failover_on_shutdown: the backup takes over when the primary stops.
    """

    name: str
    host: str = "0.0.0.0"
    port: int = 61616
    role: str = "amq"
    is_persistent: bool = True
    data_folder: str = "data"
    journal_type: str = "ASYNCIO"
    datasync: bool = True
    jdbc_url: str | None = None
    jdbc_user: str | None = None
    jdbc_password: str | None = None
    queues: tuple[NamedDestination, ...] = ()
    addresses: tuple[NamedDestination, ...] = ()
    auto_create: bool = True
    auto_delete: bool = False
    full_policy: str = "PAGE"
    global_max_size: str | None = None
    max_disk_usage: int = 90
    connector_host: str = "localhost"
    static_cluster: tuple[str, ...] = ()
    discovery: str | None = None
    cluster_user: str | None = None
    cluster_password: str | None = None
    max_hops: int = 1
    message_load_balancing: str = "ON_DEMAND"
    shared_store: str | None = None
    failover_on_shutdown: bool = False

    @property
    def is_clustered(self) -> bool:
        """Whether there are to be other nodes."""
        return bool(self.static_cluster) or self.discovery is not None


def render_broker_xml(options: InstanceOptions) -> str:
    """The text of etc/broker.xml."""
    parts = [
        _element("name", options.name),
        _persistence(options),
        _limits(options),
        _transport(options),
        *([_cluster(options)] if options.is_clustered else []),
        *([_pair(options)] if options.shared_store else []),
        _security(options),
        _settings(options),
        _addresses(options),
    ]
    core = "\n\n".join(_indented(part) for part in parts)
    return f"""<?xml version="1.0" encoding="UTF-8"?>
<!-- An element that is not known is refused at the start, with its line. Sizes take K, M and G;
     times are milliseconds unless an element says otherwise. ${{name:default}} is replaced by a
     property or an environment variable; passwords may be masked: see `broker mask`. -->
<configuration xmlns="urn:activemq" xmlns:xi="http://www.w3.org/2001/XInclude">
  <core xmlns="urn:activemq:core">

{core}

  </core>
</configuration>
"""


def render_login_config(*, guest_user: str | None = None, guest_role: str = "amq") -> str:
    """The text of etc/login.config, in Artemis's form.

    Args:
        guest_user: whom somebody without a name is taken for; None refuses him.
        guest_role: that he has then.
    """
    guest = ""
    if guest_user is not None:
        guest = f"""
    org.apache.activemq.artemis.spi.core.security.jaas.GuestLoginModule sufficient
        org.apache.activemq.jaas.guest.user="{guest_user}"
        org.apache.activemq.jaas.guest.role="{guest_role}";
"""
    return f"""activemq {{
    org.apache.activemq.artemis.spi.core.security.jaas.PropertiesLoginModule sufficient
        reload=true
        org.apache.activemq.jaas.properties.user="artemis-users.properties"
        org.apache.activemq.jaas.properties.role="artemis-roles.properties";
{guest}}};
"""


def _element(name: str, value: object) -> str:
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return f"<{name}>{escape(text)}</{name}>"


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" if line else line for line in text.split("\n"))


def _persistence(options: InstanceOptions) -> str:
    lines = [
        "<!-- Where messages, queues and all that must survive a restart are kept. -->",
        _element("persistence-enabled", options.is_persistent),
    ]
    if options.jdbc_url is not None:
        user = _element("jdbc-user", options.jdbc_user) if options.jdbc_user else ""
        password = ""
        if options.jdbc_password:
            password = _element("jdbc-password", mask(options.jdbc_password))
        lines += [
            "<!-- In a database. To go back to files, put <file-store/> in the place of it. -->",
            "<store>",
            "  <database-store>",
            f"    {_element('jdbc-connection-url', _url(options.jdbc_url))}",
            *(f"    {line}" for line in (user, password) if line),
            "    <bindings-table-name>BINDINGS</bindings-table-name>",
            "    <message-table-name>MESSAGES</message-table-name>",
            "    <large-message-table-name>LARGE_MESSAGES</large-message-table-name>",
            "    <page-store-table-name>PAGE_STORE</page-store-table-name>",
            "    <node-manager-store-table-name>NODE_MANAGER_STORE</node-manager-store-table-name>",
            "  </database-store>",
            "</store>",
        ]
    lines += [
        "<!-- ASYNCIO and IO_URING write past the page cache, MAPPED maps, NIO writes plainly. -->",
        _element("journal-type", options.journal_type),
        _element("paging-directory", f"{options.data_folder}/paging"),
        _element("bindings-directory", f"{options.data_folder}/bindings"),
        _element("journal-directory", f"{options.data_folder}/journal"),
        _element("large-messages-directory", f"{options.data_folder}/large-messages"),
        "<!-- false: a power cut may lose what was acknowledged. -->",
        _element("journal-datasync", options.datasync),
        "<journal-min-files>2</journal-min-files>",
        "<!-- Files to shrink back to; -1 keeps all there ever were. -->",
        "<journal-pool-files>10</journal-pool-files>",
        "<journal-file-size>10M</journal-file-size>",
        "<!-- How many deliveries of a message are recorded. -->",
        "<max-redelivery-records>1</max-redelivery-records>",
    ]
    return "\n".join(lines)


def _url(text: str) -> str:
    """A database's URL, masked as a whole if a password is in it."""
    return mask(text) if _WITH_PASSWORD.search(text) else text


def _limits(options: InstanceOptions) -> str:
    size = options.global_max_size
    limit = (
        _element("global-max-size", size)
        if size
        else "<!-- <global-max-size>1G</global-max-size>, else half of the memory. -->"
    )
    return f"""<!-- Memory for all messages; for what does not fit see address-full-policy. -->
{limit}
<!-- Producers wait while the disk is fuller than that, in percent; -1 never. -->
{_element("max-disk-usage", options.max_disk_usage)}
<disk-scan-period>5000</disk-scan-period>"""


def _transport(options: InstanceOptions) -> str:
    uri = f"tcp://{_bracketed(options.host)}:{options.port}"
    parts = [
        (
            "<!-- Where clients come in; the protocol is found out. For TLS add\n"
            "     ?sslEnabled=true;keyStorePath=server.pem -->\n"
            f'<acceptors>\n  <acceptor name="artemis">{escape(uri)}</acceptor>\n</acceptors>'
        )
    ]
    if options.is_clustered:
        others = "\n".join(
            f'  <connector name="node{index}">{escape(other)}</connector>'
            for index, other in enumerate(options.static_cluster)
        )
        own = f"tcp://{_bracketed(options.connector_host)}:{options.port}"
        parts.append(
            "<!-- How others reach this broker, and it them. -->\n"
            f'<connectors>\n  <connector name="artemis">{escape(own)}</connector>\n'
            + (f"{others}\n" if others else "")
            + "</connectors>"
        )
    return "\n\n".join(parts)


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _cluster(options: InstanceOptions) -> str:
    groups, target = "", ""
    if options.discovery is not None:
        address, _, port = options.discovery.rpartition(":")
        group = f"{_element('group-address', address)}{_element('group-port', port)}"
        groups = f"""
<broadcast-groups>
  <broadcast-group name="bg-group1">{group}
    <broadcast-period>5000</broadcast-period><connector-ref>artemis</connector-ref>
  </broadcast-group>
</broadcast-groups>
<discovery-groups>
  <discovery-group name="dg-group1">{group}
    <refresh-timeout>10000</refresh-timeout>
  </discovery-group>
</discovery-groups>"""
        target = '<discovery-group-ref discovery-group-name="dg-group1"/>'
    else:
        references = "".join(
            _element("connector-ref", f"node{index}")
            for index in range(len(options.static_cluster))
        )
        target = f"<static-connectors>{references}</static-connectors>"
    password = mask(options.cluster_password) if options.cluster_password else None
    credentials = "".join(
        f"\n{_element(name, value)}"
        for name, value in (("cluster-user", options.cluster_user), ("cluster-password", password))
        if value
    )
    return f"""<!-- The nodes of the cluster know each other by these. -->{credentials}{groups}
<cluster-connections>
  <cluster-connection name="my-cluster">
    <connector-ref>artemis</connector-ref>
    {_element("message-load-balancing", options.message_load_balancing)}
    {_element("max-hops", options.max_hops)}
    {target}
  </cluster-connection>
</cluster-connections>"""


def _pair(options: InstanceOptions) -> str:
    failover = _element("failover-on-shutdown", options.failover_on_shutdown)
    return f"""<!-- One of two brokers on the same store; the other one waits. -->
<ha-policy>
  <shared-store>
    <{options.shared_store}>{failover}</{options.shared_store}>
  </shared-store>
</ha-policy>"""


def _security(options: InstanceOptions) -> str:
    role = quoteattr(options.role)
    permissions = "\n".join(f'    <permission type="{one}" roles={role}/>' for one in PERMISSIONS)
    return f"""<!-- Who may do what; the first match decides alone. Users: `broker user`. -->
<security-settings>
  <security-setting match="#">
{permissions}
  </security-setting>
</security-settings>"""


def _settings(options: InstanceOptions) -> str:
    redistribution = ""
    if options.is_clustered:
        redistribution = f"""
    <!-- Messages that no consumer here takes go to a node that has one, so long after the last
         consumer left. With -1 they stay: a client that reconnects elsewhere misses them. -->
    {_element("redistribution-delay", REDISTRIBUTION_DELAY_MS)}"""
    return f"""<!-- How addresses behave; what the closest match leaves out the next one says. -->
<address-settings>
  <address-setting match="activemq.management.#">
    <dead-letter-address>DLQ</dead-letter-address>
    <expiry-address>ExpiryQueue</expiry-address>
    <redelivery-delay>0</redelivery-delay>
    <max-size-bytes>-1</max-size-bytes>
    <message-counter-history-day-limit>10</message-counter-history-day-limit>
    <address-full-policy>PAGE</address-full-policy>
    <auto-create-queues>true</auto-create-queues>
    <auto-create-addresses>true</auto-create-addresses>
  </address-setting>
  <address-setting match="#">
    <dead-letter-address>DLQ</dead-letter-address>
    <expiry-address>ExpiryQueue</expiry-address>
    <!-- Deliveries before a message goes to the dead letters; 0 or less: unlimited. -->
    <max-delivery-attempts>10</max-delivery-attempts>
    <redelivery-delay>0</redelivery-delay>
    <!-- -1: the address has no limit of its own. -->
    <max-size-bytes>-1</max-size-bytes>
    <page-size-bytes>10M</page-size-bytes>
    <max-read-page-bytes>20M</max-read-page-bytes>
    <message-counter-history-day-limit>10</message-counter-history-day-limit>
    <!-- PAGE, BLOCK, FAIL or DROP. -->
    {_element("address-full-policy", options.full_policy)}
    {_element("auto-create-queues", options.auto_create)}
    {_element("auto-create-addresses", options.auto_create)}
    {_element("auto-delete-queues", options.auto_delete)}
    {_element("auto-delete-addresses", options.auto_delete)}{redistribution}
  </address-setting>
</address-settings>"""


def _addresses(options: InstanceOptions) -> str:
    lines = [
        "<!-- Made at the start; a queue that is named here is made anew when it is missing. -->",
        "<addresses>",
        *(_queue(name, RoutingType.ANYCAST) for name in ("DLQ", "ExpiryQueue")),
        *(_queue(queue.name, queue.routing_type) for queue in options.queues),
    ]
    for address in options.addresses:
        kind = address.routing_type.name.lower()
        lines.append(f"  <address name={quoteattr(address.name)}><{kind}/></address>")
    return "\n".join([*lines, "</addresses>"])


def _queue(name: str, routing_type: RoutingType) -> str:
    kind, quoted = routing_type.name.lower(), quoteattr(name)
    return f"""  <address name={quoted}>
    <{kind}><queue name={quoted}/></{kind}>
  </address>"""

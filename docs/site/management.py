"""The pages of management: operations, notifications, metrics, from the code that has them."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from broker.management import metrics as metrics_module
from broker.management import notifications as messages_module
from broker.management.acceptor_control import AcceptorControl
from broker.management.address_control import AddressControl
from broker.management.bridge_control import BridgeControl
from broker.management.broadcast_group_control import BroadcastGroupControl
from broker.management.broker_control import BrokerControl
from broker.management.cluster_connection_control import ClusterConnectionControl
from broker.management.connection_router_control import ConnectionRouterControl
from broker.management.discovery_group_control import DiscoveryGroupControl
from broker.management.divert_control import DivertControl
from broker.management.jms_bridge_control import JMSBridgeResource
from broker.management.queue_control import QueueControl
from broker.notifications import NotificationType
from docs.site.tables import table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker.management.invocation import Control

__all__ = ["CONTROLS", "metric_names", "metrics", "notifications", "operations"]

CONTROLS: Final[dict[str, type[Control]]] = {
    "broker": BrokerControl,
    "queue.NAME": QueueControl,
    "address.NAME": AddressControl,
    "divert.NAME": DivertControl,
    "acceptor.NAME": AcceptorControl,
    "bridge.NAME": BridgeControl,
    "jmsbridge.NAME": JMSBridgeResource,
    "broadcastgroup.NAME": BroadcastGroupControl,
    "discoverygroup.NAME": DiscoveryGroupControl,
    "clusterconnection.NAME": ClusterConnectionControl,
    "connectionrouter.NAME": ConnectionRouterControl,
}
_FAMILIES: Final = {"GaugeMetricFamily": "gauge", "CounterMetricFamily": "counter"}


def operations() -> str:
    """Every operation and attribute."""
    parts = [
        "# Operations and attributes\n",
        (
            "By the names of Artemis's controls; [the guide](../guide/management.md) says how "
            "they are called. An attribute `x` is also the operation `getX` or `isX`. Types are "
            "those of Artemis's methods; `Integer`, `Long`, `Boolean` and `Map` may be null.\n"
        ),
    ]
    for resource, control in CONTROLS.items():
        parts.append(f"## {resource}\n")
        rows = list(_operations(control))
        if rows:
            parts.append(table(("operation", "does"), rows))
        attributes = sorted(map(_attribute, control.getters))
        if attributes:
            parts.append("Attributes: " + ", ".join(f"`{name}`" for name in attributes) + ".\n")
    return "\n".join(parts)


def _attribute(getter: str) -> str:
    name = getter.removeprefix("get") if getter.startswith("get") else getter.removeprefix("is")
    return name[:1].lower() + name[1:]


def _operations(control: type[Control]) -> Iterator[tuple[str, str]]:
    for name, signatures in sorted(control._operations.items()):
        for one in signatures:
            method = getattr(control, one.method)
            typed = _typed(one.java_types, inspect.signature(method))
            yield f"`{name}({', '.join(typed)})`", _first_line(method.__doc__)


def _typed(types: tuple[str, ...], signature: inspect.Signature) -> list[str]:
    """Give types with names, if the method has a name for each."""
    names = list(signature.parameters)[1:]
    kinds = [one.kind for one in signature.parameters.values()]
    if inspect.Parameter.VAR_POSITIONAL in kinds or len(names) < len(types):
        return list(types)
    return [f"{one} {_camel(name)}" for one, name in zip(types, names, strict=False)]


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def _first_line(doc: str | None) -> str:
    return inspect.cleandoc(doc or "").partition("\n\n")[0].replace("\n", " ")


def notifications() -> str:
    """Every notification with its properties."""
    properties = dict(_properties())
    rows = []
    for kind in NotificationType:
        names = properties.get(kind.name, [])
        rows.append((f"`{kind.name}`", ", ".join(f"`{name}`" for name in names)))
    return "\n".join(
        [
            "# Notifications\n",
            (
                "Messages to `<management-notification-address>` (`activemq.notifications`). Each "
                "has `_AMQ_NotifType`, the name below, and `_AMQ_NotifTimestamp`, milliseconds "
                "since 1970. [The guide](../guide/management.md) says which need a plugin. "
                "`GROUP_OWNER`, `NODE_…` and `MESSAGES_STRANDED` are ours.\n"
            ),
            table(("notification", "properties"), rows),
        ]
    )


def _properties() -> Iterator[tuple[str, list[str]]]:
    """Notifications, and the properties that the method which tells of them writes."""
    tree = _tree(messages_module)
    constants = {
        node.target.id: node.value.value
        for node in tree.body
        if isinstance(node, ast.AnnAssign)
        and isinstance(node.target, ast.Name)
        and isinstance(node.value, ast.Constant)
    }
    (cls,) = (node for node in tree.body if isinstance(node, ast.ClassDef))
    methods = {node.name: node for node in cls.body if isinstance(node, ast.FunctionDef)}
    place = _written(methods["_place"], constants)
    for method in methods.values():
        told = _told(ast.get_docstring(method) or "")
        names = _written(method, constants)
        if any(isinstance(one, ast.Attribute) and one.attr == "_place" for one in ast.walk(method)):
            names = [*place, *(name for name in names if name not in place)]
        for kind in told:
            yield kind, names


def _told(doc: str) -> list[str]:
    """The names in a docstring such as `Tell of SESSION_CREATED, _CLOSED.`."""
    lines = [line.strip() for line in doc.splitlines()]
    told = [line.removeprefix("Tell of ") for line in lines if line.startswith("Tell of ")]
    found: list[str] = []
    for word in ",".join(told).replace(";", ",").replace(":", ",").split(","):
        name = word.strip().split(" ")[0].rstrip(".")
        if name.startswith("_") and found:
            stem = found[-1]
            while stem and stem + name not in NotificationType.__members__:
                stem = stem.rpartition("_")[0]
            name = stem + name
        if name in NotificationType.__members__:
            found.append(name)
    return found


def _written(method: ast.FunctionDef, constants: dict[str, Any]) -> list[str]:
    names = []
    for node in ast.walk(method):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in ("_text", "_int", "_long", "_byte")
        ):
            name = node.args[0]
            text = constants.get(name.id) if isinstance(name, ast.Name) else None
            text = name.value if isinstance(name, ast.Constant) else text
            if isinstance(text, str) and text not in names:
                names.append(text)
    return names


def metrics() -> str:
    """Every metric."""
    rows = sorted(_metrics())
    return "\n".join(
        [
            "# Metrics\n",
            (
                "At `/metrics` of the web server that `etc/bootstrap.xml` binds, for Prometheus. "
                "`artemis_…` are those of Artemis's metrics plugin, `quiver_…` are ours. A "
                "counter begins at 0 with the process. [The guide](../guide/management.md) has "
                "labels and limits; `process_…` are those of the process (prometheus_client).\n"
            ),
            table(("metric", "kind", "is"), ((f"`{name}`", *rest) for name, *rest in rows)),
        ]
    )


def metric_names() -> set[str]:
    """All names, as they are served."""
    return {name for name, *_ in _metrics()}


def _metrics() -> Iterator[tuple[str, str, str]]:
    """Give name as it is served, kind and text of each."""
    counted = {item.name for item in metrics_module._COUNTED}
    for node in ast.walk(_tree(metrics_module)):
        texts: list[ast.expr]
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            kind = _FAMILIES.get(node.func.id, "gauge")
            texts = node.args[:2]
        elif isinstance(node, ast.Tuple):
            kind, texts = "gauge", node.elts[:2]
        else:
            continue
        match texts:
            case [ast.Constant(value=str(name)), ast.Constant(value=str(text))] if name.startswith(
                ("artemis_", "quiver_")
            ):
                kind = "counter" if name in counted else kind
                # The format's rule; prometheus_client adds it.
                yield f"{name}_total" if kind == "counter" else name, kind, text


def _tree(module: Any) -> ast.Module:  # noqa: ANN401 - a module.
    assert module.__file__ is not None
    return ast.parse(Path(module.__file__).read_text())

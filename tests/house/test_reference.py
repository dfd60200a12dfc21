"""The reference manual, made from the code, has all that there is."""

import ast
import asyncio
import dataclasses
import doctest
import importlib
import inspect
import re
from pathlib import Path

import pytest

from benchmarks import chart
from broker.client import AsyncProducer, MessageHeaders, Producer
from broker.embedded import EmbeddedBroker
from broker.management.metrics import Metrics
from broker.notifications import NotificationType
from broker.settings.settings import SETTINGS
from docs.site import configuration, elements
from docs.site.commands import COMMAND_LINES, command_line, commands
from docs.site.drawings import DrawingError, draw
from docs.site.management import CONTROLS, metric_names, metrics, notifications, operations
from docs.site.pages import PAGES
from docs.site.python import PYTHON_PAGES, names_of, python_page
from journal import JournalOptions

ROOT = Path(__file__).resolve().parents[2]
CONFIG = ROOT / "broker/config"
# Functions of broker.config.xml_fields, and which of their arguments are names in the file.
NAMES = {
    **dict.fromkeys(("attribute", "optional_attribute", "repeated", "secret"), slice(1)),
    **dict.fromkeys(("child_attribute", "grouped"), slice(2)),
    **dict.fromkeys(("element", "optional", "nested", "custom", "unused"), slice(None)),
}
# Not of broker.xml's <core>: the elements around it.
AROUND = {"core", "configuration"}


def texts(node):
    """Every text in an expression that is a name: of lower case, with hyphens."""
    for one in ast.walk(node):
        if isinstance(one, ast.Constant) and isinstance(one.value, str):
            yield one.value


def names_read():
    """Every element and attribute that a reader in broker/config/ takes: (file, name)."""
    for path in sorted(CONFIG.glob("*.py")):
        if path.name in ("xml_fields.py", "bootstrap.py", "template.py", "properties.py"):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name)):
                continue
            if node.func.id == "check_names":
                found = [text for one in node.args[1:3] for text in texts(one)]
            elif node.func.id in NAMES:
                arguments = node.args[NAMES[node.func.id]]
                # A default that is a text is behind the kind; aliases are behind the default.
                names = [one for at, one in enumerate(arguments) if at in (0, 1) or at > 2]
                if node.func.id in ("element", "optional"):
                    names = [arguments[0], *arguments[3:]]
                found = [one.value for one in names if isinstance(one, ast.Constant)]
            else:
                continue
            for name in found:
                if isinstance(name, str) and re.fullmatch(r"[a-zA-Z][\w-]*", name):
                    yield path.name, name


def test_every_element_that_the_reader_knows_is_on_the_page():
    on_page = {
        word
        for text in re.findall(r"`([^`]+)`", configuration.broker_xml())
        for word in re.findall(r"[\w-]+", text)
    }

    read = set(names_read())
    missing = sorted((file, name) for file, name in read if name not in on_page | AROUND)
    settings = {name for item in SETTINGS for name in item.elements}
    assert missing == []
    assert settings <= on_page
    assert len(read) > 250


def test_elements_say_what_they_do():
    rows = [row for _, cls in elements.GROUPS for row in elements.rows_of(cls)]

    without = [row.path for row in rows if not row.meaning]
    assert len(rows) > 450
    assert without == []


def test_a_row_has_type_range_default_and_unit():
    rows = {row.path: row for _, cls in elements.GROUPS for row in elements.rows_of(cls)}

    page = rows["address-settings/address-setting/page-size-bytes"]
    assert page[:7] == (
        page.path,
        "bytes; K, M, G: powers of 1024",
        "from 1 to 2147483647",
        "10M",
        "bytes",
        True,
        True,
    )
    assert not rows["journal-file-size"].is_reloadable
    assert not rows["thread-pool-max-size"].has_effect
    assert rows["queues/queue/@name"].default == "required"


def test_what_is_reloaded_is_what_the_broker_applies():
    """The row of each section that `Reload` applies says so."""
    applied = (ROOT / "broker/server/reload.py").read_text()
    (told,) = re.findall(r'"AMQ221056: Reloading configuration: (.*?)"\n\s+"(.*?)"', applied)

    named = [one.strip().replace(" ", "-") for one in "".join(told).split(",")]
    assert sorted(named) == sorted(elements.RELOADED)


def test_every_parameter_of_a_url_is_on_the_page():
    from broker.client.options import ClientOptions
    from broker.config import acceptors, cluster_uri
    from broker.model.connector_parameters import CONNECTOR_PARAMETERS
    from broker.protocols.registry import installed_protocols

    page = set(re.findall(r"`([\w.-]+)`", configuration.url_parameters()))

    known = acceptors._KNOWN | CONNECTOR_PARAMETERS | cluster_uri._PARAMETERS.keys()
    for factory in installed_protocols().values():
        known |= factory.parameters.keys()
    known |= {one.metadata["parameter"] for one in ClientOptions.__dataclass_fields__.values()}
    assert sorted(known - page) == []


def test_what_a_client_reads_of_tls_has_a_row_with_its_meaning():
    source = (ROOT / "broker/client/aio/transport.py").read_text()
    page = configuration.url_parameters().partition("### TLS of clients")[2].partition("\n## ")[0]

    read = re.findall(r"(?:text|flag)\(\"(\w+)\"|parameters\[\"(\w+)\"\]", source)
    rows = re.findall(r"^\| `(\w+)` \|.*\| .{10,} \|$", page, re.MULTILINE)
    assert {one or other for one, other in read} == set(rows)
    assert len(rows) > 8


def test_a_text_in_angle_brackets_is_shown():
    page = command_line("journal")

    assert "&lt;database-store>" in page
    assert not re.search(r"<[a-z][\w-]*>", re.sub(r"(?s)```.*?```|`[^`]*`", "", page))


def test_an_option_that_many_commands_have_is_described_once():
    page = command_line("journal")

    assert page.count("| `--max-io` |") == 1
    assert "`--max-io`" in page.partition("## journal compact")[2].partition("\n## ")[0]
    assert page.index("## Shared options") < page.index("| `--max-io` |")


def test_the_limit_of_deliveries_is_the_same_everywhere():
    """DeadLetters asks `0 < max_delivery_attempts`."""
    assert "0 or less: unlimited" in configuration.broker_xml()
    template = (ROOT / "broker/config/template.py").read_text()
    assert "0 or less: unlimited" in template


@pytest.mark.parametrize("name", COMMAND_LINES)
def test_every_command_and_option_is_on_the_page(name):
    page = command_line(name)

    for context in commands(COMMAND_LINES[name]):
        assert f" {context.command_path}\n" in page
        for one in context.command.params:
            assert one.param_type_name == "argument" or one.hidden or f"`{one.opts[0]}`" in page


def test_every_operation_is_on_the_page():
    page = operations()

    for resource, control in CONTROLS.items():
        section = page.partition(f"## {resource}\n")[2].partition("\n## ")[0]
        for name in control._operations:
            assert f"`{name}(" in section
        assert section.count("`") >= 2 * len(control.getters)


def test_every_notification_has_its_properties():
    rows = dict(re.findall(r"^\| `(\w+)` \| (.*) \|$", notifications(), re.MULTILINE))

    assert rows.keys() == NotificationType.__members__.keys()
    assert [name for name, properties in rows.items() if not properties] == []


async def scraped():
    async with EmbeddedBroker() as embedded:
        return Metrics(embedded.broker).answer(None)[1].decode()


def test_every_metric_of_a_running_broker_is_on_the_page():
    told = asyncio.run(scraped())

    served = {
        name: kind
        for name, kind in re.findall(r"^# TYPE (\w+) (\w+)$", told, re.MULTILINE)
        if name.startswith(("artemis_", "quiver_")) and not name.endswith("_created")
    }
    listed = dict(re.findall(r"^\| `(\w+)` \| (\w+) \|", metrics(), re.MULTILINE))
    assert len(served) > 20
    assert listed.keys() == metric_names()
    assert {name: listed.get(name) for name in served} == served
    assert served["quiver_messages_killed_total"] == "counter"


@pytest.mark.parametrize("package", sorted({page.package for page in PYTHON_PAGES.values()}))
def test_every_public_name_is_on_one_page(package):
    pages = [uri for uri, page in PYTHON_PAGES.items() if page.package == package]

    shown = [name for uri in pages for name in names_of(uri)]
    public = set(importlib.import_module(package).__all__) - {"__version__"}
    assert sorted(shown) == sorted(public)
    assert all(f"::: {package}.{name}\n" in "".join(map(python_page, pages)) for name in shown)


def test_the_client_s_pages_are_by_topic():
    assert names_of("python-broker-client-messages")[0] == "make_message"
    assert "Client" in names_of("python-broker-client")
    assert "AsyncClient" in names_of("python-broker-client-asyncio")
    errors = names_of("python-broker-client-errors")
    assert {"ClientError", "DuplicateId"} < set(errors)
    assert not [name for name in errors if name.startswith(("Async", "Client(", "Message"))]


def test_options_have_type_default_and_unit():
    page = python_page("python-journal")

    assert "| `lock_acquisition_timeout_ms` | `int` | `-1` | ms | Milliseconds to wait" in page
    assert "| `directory` | `Path` | required | – |" in page
    assert "| `file_size` | `int` | `10485760` | bytes |" in page
    for field in dataclasses.fields(JournalOptions):
        assert re.search(rf"^\| `{field.name}` \| .+ \| .+ \| .+ \| .+ \|$", page, re.MULTILINE)


@pytest.mark.parametrize("name", ["send", "post", "send_stream"])
def test_what_sends_names_the_headers(name):
    for producer in (Producer, AsyncProducer):
        doc = inspect.getdoc(getattr(producer, name))
        assert [one for one in MessageHeaders.__annotations__ if one not in doc] == []


def test_every_page_is_made():
    for uri, text in PAGES.items():
        assert text().startswith("# "), uri


@pytest.mark.parametrize("uri", PAGES)
def test_every_row_says_what_it_is_of(uri):
    """The last cell of a row; a command's usage says what an argument is."""
    rows = [line for line in PAGES[uri]().splitlines() if line.startswith("| `")]

    without = [row for row in rows if re.search(r"\| *\|$", row) and "| argument |" not in row]
    assert without == []


@pytest.mark.parametrize("name", ["attribute_docs", "drawings", "elements", "tables"])
def test_examples_of_the_site_s_modules(name):
    found = doctest.testmod(importlib.import_module(f"docs.site.{name}"))

    assert found.failed == 0
    assert found.attempted > 0


def test_a_drawing_that_is_not_understood_is_refused():
    with pytest.raises(DrawingError, match="subgraph"):
        draw("flowchart LR\nsubgraph a")


def drawings():
    for path in sorted((ROOT / "docs").rglob("*.md")):
        for number, source in enumerate(
            re.findall(r"^```mermaid\n(.*?)^```", path.read_text(), re.DOTALL | re.MULTILINE)
        ):
            yield pytest.param(source, id=f"{path.stem}-{number}")


@pytest.mark.parametrize("source", list(drawings()))
def test_every_drawing_is_understood(source):
    assert draw(source).startswith("<svg ")


def test_the_chart_is_drawn_from_the_stored_figures():
    found = chart.cases(chart.TABLE.read_text())

    assert len(found) == 5
    assert chart.CHART.read_text() == chart.svg(found), "python -m benchmarks.chart"

"""What the broker reads of a clock, a socket, chance or threads comes by broker/environment.py.

So the broker and its asyncio client run in a process of many, on another clock and in an order that
a seed decides. The command line, and the client and bridges for threads, are outside of it.
`asyncio.to_thread` and timers are not listed: they are the event loop's, which is replaced as a
whole. What a lease on a database reads comes by jdbcstore/environment.py in the same way.
"""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
OUTSIDE = (
    *("broker.cli", "broker.client.blocking", "broker.environment"),
    # Providers whose client libraries have threads of their own.
    *("broker.bridges.jms.blocking", "broker.bridges.jms.jndi", "broker.bridges.jms.stomp"),
)
# Rooms that a simulation is about: each has to be looked at.
ROOMS = ("server", "transport", "protocols", "client", "sessions", "queues", "paging", "storage")
LEASES = tuple(
    f"jdbcstore.{name}"
    for name in (
        *("lease", "lease_renewal", "lease_row", "node", "node_table", "outage", "clocks"),
        "reconnecting",
    )
)

# Qualified names that reach the machine. Conversions of a given time, and types, are none.
WATCHED = re.compile(
    r"time\.(?!strftime$|gmtime$|localtime$)\w+|uuid\.(uuid1|uuid4|getnode)|random\.\w+|secrets\.\w+"
    r"|os\.(urandom|getrandom|getpid|fork)|socket\.[a-z]\w*|threading\.\w+|signal\.\w+"
    r"|subprocess\.\w+|concurrent\.futures\.\w+Executor|datetime\.datetime\.(now|utcnow|today)"
    r"|urllib\.request\.\w+|asyncio\.(create_subprocess_\w+|start_server|open_connection"
    r"|new_event_loop|run|Runner)"
)
# Methods of an event loop that open something.
OPENING = {
    *("create_server", "create_connection", "create_datagram_endpoint", "create_unix_server"),
    *("create_unix_connection", "connect_accepted_socket", "sock_connect", "add_signal_handler"),
    *("add_reader", "add_writer", "subprocess_exec", "subprocess_shell"),
}

# {module: {name: why it may}}
ALLOWED = {
    "broker.bridges.jms.core.in_process": {
        "socket.socketpair": "vm://, a network of its own within a process",
        "create_connection": "likewise",
    },
    "broker.client.balancing": {
        "random.Random": "a policy that an application makes; the client's own get its chance",
    },
    "broker.client.content": {
        "time.time_ns": "a message that an application makes; a session gives the time",
    },
    "broker.embedded": dict.fromkeys(
        ("threading.Thread", "threading.Event", "asyncio.run"),
        "a broker in a thread of its own, for programs without a loop",
    ),
    "broker.management.web": dict.fromkeys(
        ("socket.getaddrinfo", "socket.socket"), "uvicorn serves on a socket that it is given"
    ),
    "broker.options.from_config": {
        "uuid.uuid4": "the name of a divert that has none, while a configuration is read",
    },
    "broker.printing.xml.reader": {"uuid.uuid1": "`broker data imp`, a command"},
    "broker.protocols.amqp.wrappers": {
        "threading.get_ident": "whose thread made an object, for Python's collector",
    },
    "broker.records.amqp_message": {
        "time.time_ns": "a record of an old Artemis: its time to live begins with each start; what "
        "is written here has its expiration",
    },
    "broker.security.manager": {
        "secrets.token_bytes": "a key that is seen nowhere",
        "time.monotonic": "a broker gets its security from outside, and so does that a clock",
    },
    "broker.security.passwords": {"secrets.token_bytes": "salt"},
    "broker.server.server_dump": {"threading.active_count": "a figure in the log"},
    "broker.storage.node_lock": dict.fromkeys(
        (
            *("random.SystemRandom", "time.monotonic", "time.sleep", "uuid.uuid1"),
            *("threading.Event", "threading.Lock", "threading.Thread"),
            "threading.current_thread",
        ),
        "a lock in a real folder, asked for and looked after in threads",
    ),
    "broker.storage.node_owner": dict.fromkeys(
        ("os.getpid", "socket.gethostname", "time.time_ns"),
        "who owns a real folder, for operators to read",
    ),
    "broker.storage.page_folders": {"uuid.uuid1": "names of real folders"},
    "broker.storage.spill_file": {
        "concurrent.futures.ThreadPoolExecutor": "a load that spills waits for it before it ends",
    },
    "broker.storage.waiting": dict.fromkeys(
        ("threading.Event", "threading.Lock"), "interrupts the thread that asks for a lock"
    ),
    "broker.transport.acceptor": {
        "connect_accepted_socket": "the broker's end of vm://",
    },
    "jdbcstore.clocks": dict.fromkeys(
        ("time.clock_gettime", "time.CLOCK_BOOTTIME"), "the machine's clock of leases"
    ),
    "jdbcstore.outage": {"time.monotonic": "of stores; leases give theirs"},
    "jdbcstore.reconnecting": dict.fromkeys(
        ("time.monotonic", "time.sleep"), "of stores; they may be given"
    ),
    "broker.transport.network_check": dict.fromkeys(
        ("asyncio.create_subprocess_exec", "urllib.request.urlopen"),
        "what `broker run` watches, not a broker",
    ),
}


def names_of(tree):
    """What imports name in a module: {name there: qualified name}."""
    names = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for one in node.names:
                names[one.asname or one.name.partition(".")[0]] = (
                    one.name if one.asname else one.name.partition(".")[0]
                )
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            for one in node.names:
                names[one.asname or one.name] = f"{node.module}.{one.name}"
    return names


class Uses(ast.NodeVisitor):
    """Finds watched names that are used, not only named in an annotation."""

    def __init__(self, tree):
        self._names = names_of(tree)
        self.found = set()
        self.visit(tree)

    def visit_AnnAssign(self, node):
        if node.value is not None:
            self.visit(node.value)

    def visit_arg(self, node):
        pass

    def visit_FunctionDef(self, node):
        node.returns = None
        self.generic_visit(node)

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_Name(self, node):
        self._note(self._names.get(node.id))

    def visit_Attribute(self, node):
        parts, at = [], node
        while isinstance(at, ast.Attribute):
            parts.append(at.attr)
            at = at.value
        if isinstance(at, ast.Name) and at.id in self._names:
            self._note(".".join([self._names[at.id], *reversed(parts)]))
        else:
            self.visit(at)
        if node.attr in OPENING:
            self.found.add(node.attr)

    def _note(self, name):
        if name is not None and WATCHED.fullmatch(name):
            self.found.add(name)


def uses_of(source):
    return Uses(ast.parse(source)).found


def uses_of_cython(source):
    """As `uses_of`, of a .pyx, which is not Python: words are looked for."""
    code = re.sub(r"(?s:\"\"\".*?\"\"\")|#.*", "", source)
    return {found[0] for found in re.finditer(rf"(?<![\w.])(?:{WATCHED.pattern})", code)}


def is_outside(module):
    return any(module == one or module.startswith(f"{one}.") for one in OUTSIDE)


def modules():
    for path in sorted((ROOT / "broker").rglob("*.py*")):
        if path.suffix in (".py", ".pyx"):
            module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
            if not is_outside(module):
                yield module, path
    for module in LEASES:
        yield module, (ROOT / module.replace(".", "/")).with_suffix(".py")


def test_the_machine_is_reached_by_the_environment_alone():
    wrong = []
    for module, path in modules():
        source = path.read_text()
        found = uses_of(source) if path.suffix == ".py" else uses_of_cython(source)
        wrong += [f"{module} uses {name}" for name in sorted(found - set(ALLOWED.get(module, ())))]

    assert wrong == []


def test_every_room_of_a_simulation_is_looked_at():
    looked_at = {module.split(".")[1] for module, _ in modules()}

    assert set(ROOMS) <= looked_at


def test_what_is_allowed_is_used():
    found = {module: uses_of(path.read_text()) for module, path in modules() if module in ALLOWED}

    unused = {
        module: sorted(names)
        for module, allowed in ALLOWED.items()
        if (names := set(allowed) - found.get(module, set()))
    }

    assert unused == {}


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("import time\ntime.monotonic()", {"time.monotonic"}),
        ("from time import time as now\nnow()", {"time.time"}),
        ("import uuid\nuuid.UUID(bytes=x), uuid.uuid1()", {"uuid.uuid1"}),
        ("import random\nx: random.Random | None = None", set()),
        ("import random\ndef f(x: random.Random = random.Random()): pass", {"random.Random"}),
        ("import time\ntime.gmtime(5)", set()),
        ("from datetime import datetime\ndatetime.now()", {"datetime.datetime.now"}),
        ("import asyncio\nasyncio.get_running_loop().create_server(f)", {"create_server"}),
        ("import socket\nsocket.socket(socket.AF_INET)", {"socket.socket"}),
    ],
)
def test_uses_are_found(source, found):
    assert uses_of(source) == found


def test_uses_are_found_behind_a_remark_of_cython():
    source = (
        '"""time.time() is not used here."""\n# Nor time.sleep().\ncdef f(): time.monotonic()\n'
    )

    assert uses_of_cython(source) == {"time.monotonic"}

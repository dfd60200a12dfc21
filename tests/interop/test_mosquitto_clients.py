"""Mosquitto's clients of the command line say the same of ours and of Artemis."""

import contextlib
import queue
import subprocess
import threading

import pytest

from tests.interop.artemis_broker import ArtemisBroker
from tests.interop.fetched import PeerUnavailableError, tool

pytestmark = pytest.mark.slow

VERSIONS = ["mqttv31", "mqttv311", "mqttv5"]
WAIT_S = 60
TRIES = 4
# Of a subscriber that is to receive nothing more.
SILENT_S = "2"
MESSAGE = "%t qos=%q retained=%r %p"
PROPERTIES = " %C|%D|%R|%F|%P"
SENT_PROPERTIES = [
    ("content-type", "text/plain"),
    ("correlation-data", "c-1"),
    ("response-topic", "re/ply"),
    ("payload-format-indicator", "1"),
    ("user-property", "b", "1"),
    ("user-property", "a", "2"),
]


class Clients:
    """The commands, for one broker in one version of the protocol."""

    def __init__(self, port, version):
        self._common = ["-h", "127.0.0.1", "-p", str(port), "-V", version]
        self._user = ["-u", ArtemisBroker.USER, "-P", ArtemisBroker.PASSWORD]
        self.version = version
        self.format = MESSAGE + PROPERTIES * (version == "mqttv5")

    def command(self, name, words, user=None):
        return [tool(f"mosquitto_{name}"), *self._common, *(user or self._user), *words]

    def run(self, name, *words, user=None, **named):
        """Exit status and lines of a client that ends."""
        done = subprocess.run(
            self.command(name, words, user),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=WAIT_S,
            **named,
        )
        return [done.returncode, *done.stdout.decode().splitlines()]

    def publish(self, topic, payload, *words):
        done = self.run("pub", "-t", topic, *(("-m", payload) if payload else ()), *words)
        assert done == [0]

    def subscribe(self, *words):
        """Exit status and messages of a subscriber that ends by itself."""
        return self.run("sub", "-F", self.format, *words)

    @contextlib.contextmanager
    def subscribed(self, *words, lines=None):
        """A subscriber that waits: messages as it prints them, into `lines` if that is given."""
        process = subprocess.Popen(
            # It keeps what it says of packets until the first message otherwise.
            [tool("stdbuf"), "-oL", *self.command("sub", ["-d", "-F", self.format, *words])],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        running = Running(process, lines or queue.SimpleQueue())
        try:
            running.line(starting="Subscribed")
            yield running
        finally:
            process.kill()
            running.ended()


class Running:
    """A subscriber, whose lines a thread reads."""

    def __init__(self, process, lines):
        self.process = process
        self._lines = lines
        self._passed = []
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self):
        for line in self.process.stdout:
            self._lines.put(line.rstrip("\n"))

    def line(self, starting):
        """The first line not taken so far that starts so; those before it stay."""
        for line in self._passed:
            if line.startswith(starting):
                self._passed.remove(line)
                return line
        while not (line := self._lines.get(timeout=WAIT_S)).startswith(starting):
            self._passed.append(line)
        return line

    def leave(self):
        """Let it say good-bye."""
        self.process.terminate()
        self.process.wait(WAIT_S)

    def ended(self):
        self.process.wait(WAIT_S)
        self._reader.join()
        self.process.stdout.close()


# --- what is said: each gives what the clients print ----------------------------------------------


def every_qos(clients, root):
    seen = []
    for wanted in "012":
        with clients.subscribed("-t", f"{root}/#", "-q", wanted) as subscriber:
            for qos in "012":
                clients.publish(f"{root}/{qos}", f"text {qos}", "-q", qos)
                seen.append(subscriber.line(root))
    return seen


def lines_of(clients, root, qos):
    """What a publisher sends line by line, as it comes."""
    count = 300
    with clients.subscribed("-t", root, "-q", qos) as subscriber:
        text = "".join(f"{number}\n" for number in range(count))
        sent = clients.run("pub", "-t", root, "-q", qos, "-l", input=text.encode())
        assert sent == [0]
        return [subscriber.line(root) for _ in range(count)]


def many_lines(clients, root):
    # Artemis has no order in version 5.
    return sorted(lines_of(clients, root, "1"))


def wildcards(clients, root):
    seen = []
    filters = [f"{root}/+/b", f"{root}/x/#", f"{root}/+"]
    words = [word for one in filters for word in ("-t", one)]
    with clients.subscribed(*words, "-q", "1") as subscriber:
        for topic in ("a/b", "a/c", "x", "x/y/z", "one", "a/b/c"):
            clients.publish(f"{root}/{topic}", topic, "-q", "1")
        clients.publish(f"{root}/end", "end", "-q", "1")
        while not (seen and seen[-1].startswith(f"{root}/end")):
            seen.append(subscriber.line(root))
    return seen


def retained(clients, root):
    clients.publish(f"{root}/a", "first", "-r", "-q", "1")
    clients.publish(f"{root}/a", "kept", "-r", "-q", "2")
    # Artemis loses now and then what one says by QoS 0 that leaves at once.
    clients.publish(f"{root}/b", "kept as well", "-r")
    seen = [sorted(clients.subscribe("-t", f"{root}/#", "-q", "2", "-C", "2")[1:])]
    clients.publish(f"{root}/a", None, "-r", "-n", "-q", "1")
    seen.append(clients.subscribe("-t", f"{root}/#", "-W", SILENT_S))
    # As they come to one that is there already.
    with clients.subscribed("-t", f"{root}/c") as subscriber:
        clients.publish(f"{root}/c", "now", "-r")
        seen.append(subscriber.line(root))
    clients.run("sub", "-t", f"{root}/#", "--remove-retained", "-W", SILENT_S)
    seen.append(clients.subscribe("-t", f"{root}/#", "-W", SILENT_S))
    return seen


def wills(clients, root):
    seen = []
    will = ["--will-topic", f"{root}/will", "--will-payload", "gone", "--will-qos", "1"]
    for more in ([], ["--will-retain"]):
        with clients.subscribed("-t", f"{root}/will", "-q", "2") as subscriber:
            with clients.subscribed("-t", f"{root}/other", *will, *more):
                pass
            seen.append(subscriber.line(root))
    # Artemis retains it a little later.
    for _ in range(5):
        kept = clients.subscribe("-t", f"{root}/will", "-C", "1", "-W", SILENT_S)
        if kept[0] == 0:
            break
    seen.append(kept)
    clients.publish(f"{root}/will", None, "-r", "-n")
    return seen


def sessions(clients, root):
    session = ["-i", root.replace("/", ""), "-q", "1"]

    def received(*words, count):
        with clients.subscribed(*session, *words) as subscriber:
            lines = [subscriber.line(root) for _ in range(count)]
            # Artemis loses what one says that leaves at once.
            clients.publish("elsewhere", "meanwhile")
            subscriber.leave()
            return lines

    seen = [received("-c", "-t", f"{root}/#", count=0)]
    for qos in "012":
        clients.publish(f"{root}/{qos}", f"text {qos}", "-q", qos)
    seen.append(received("-c", "-t", f"{root}/#", count=3))
    # It goes on with another filter, and ends with a clean start.
    clients.publish(f"{root}/1", "before", "-q", "1")
    seen.append(received("-c", "-U", f"{root}/#", "-t", f"{root}/2", count=1))
    clients.publish(f"{root}/1", "to no client", "-q", "1")
    clients.publish(f"{root}/2", "to it", "-q", "1")
    seen.append(received("-c", "-t", f"{root}/2", count=1))
    clients.publish(f"{root}/2", "lost", "-q", "1")
    seen.append(clients.subscribe(*session, "-t", f"{root}/2", "-W", SILENT_S))
    return seen


def shared(clients, root):
    """Each message to one of two, whichever it is."""
    filters = ["-t", f"$share/{root.replace('/', '')}/{root}/+", "-q", "1"]
    lines = queue.SimpleQueue()
    with (
        clients.subscribed(*filters, lines=lines),
        clients.subscribed(*filters, lines=lines) as either,
    ):
        for number in range(10):
            clients.publish(f"{root}/{number}", str(number), "-q", "1")
        return sorted(either.line(root) for _ in range(10))


def large(clients, root):
    clients.format = "%t %l"
    with clients.subscribed("-t", root, "-q", "2") as subscriber:
        sent = clients.run("pub", "-t", root, "-q", "2", "-s", input=bytes(range(256)) * 4096)
        return sent, subscriber.line(root)


def properties(clients, root):
    if clients.version != "mqttv5":
        return None
    words = [word for one in SENT_PROPERTIES for word in ("-D", "PUBLISH", *one)]
    with clients.subscribed("-t", root, "-q", "1") as subscriber:
        clients.publish(root, "text", "-q", "1", *words)
        return subscriber.line(root)


def request_and_response(clients, root):
    if clients.version != "mqttv5":
        return None
    with clients.subscribed("-t", f"{root}/request", "-q", "1") as subscriber:
        words = ["-t", f"{root}/request", "-e", f"{root}/response", "-m", "question", "-q", "1"]
        asking = subprocess.Popen(
            clients.command("rr", words), stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        asked = subscriber.line(root)
        clients.publish(f"{root}/response", "answer", "-q", "1")
        answered, _ = asking.communicate(timeout=WAIT_S)
        return asked, answered


def refusals(clients, root):
    wrong = ["-u", ArtemisBroker.USER, "-P", "wrong"]
    return [
        clients.run("pub", "-t", root, "-m", "x", user=wrong),
        clients.run("sub", "-t", root, "-E", user=wrong),
        clients.run("pub", "-t", root, "-m", "x", user=["-i", "no-user"]),
    ]


CONVERSATIONS = [
    *(every_qos, many_lines, wildcards, retained, wills, sessions, shared, large, properties),
    *(request_and_response, refusals),
]


@pytest.fixture
def clients_are_here():
    try:
        tool("mosquitto_sub")
    except PeerUnavailableError as error:
        pytest.skip(f"{error} (mosquitto-clients of Debian)")


@pytest.mark.usefixtures("clients_are_here")
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("conversation", CONVERSATIONS, ids=lambda one: one.__name__)
def test_they_say_the_same(distributed_broker, our_broker, conversation, version):
    ours = said_by(our_broker, conversation, version)

    theirs = said_by_artemis(distributed_broker, conversation, version, ours)

    assert ours == theirs


def said_by(broker, conversation, version, number=0):
    """What clients print, without the topics' root: another try has another one."""
    root = f"{conversation.__name__}/{version}/{number}"
    return repr(conversation(Clients(broker.port, version), root)).replace(root, "ROOT")


def said_by_artemis(broker, conversation, version, ours):
    """The same of Artemis: where it is not what ours is, it has another try; ours has none.

    It loses messages of sessions, and packets, where much happens at once, lets one message
    overtake another, and what it retains can be asked for too soon.
    """
    theirs = None
    for number in range(TRIES):
        with contextlib.suppress(queue.Empty, subprocess.TimeoutExpired):
            theirs = said_by(broker, conversation, version, number)
            if theirs == ours:
                break
    return theirs


@pytest.mark.usefixtures("clients_are_here")
@pytest.mark.parametrize("version", VERSIONS)
def test_many_of_qos_2_come_in_order(our_broker, version):
    """On Artemis some come late, and some of version 5 are lost."""
    clients = Clients(our_broker.port, version)

    lines = lines_of(clients, f"qos2/{version}", "2")

    assert [int(line.split()[3]) for line in lines] == list(range(len(lines)))


@pytest.mark.usefixtures("clients_are_here")
@pytest.mark.parametrize("version", VERSIONS)
def test_a_good_bye_leaves_no_will_unless_it_says_so(our_broker, version):
    """Artemis now and then takes for lost what closes its connection just behind DISCONNECT."""
    clients = Clients(our_broker.port, version)
    will = ["--will-topic", f"bye/{version}/will", "--will-payload", "gone", "--will-qos", "1"]
    with clients.subscribed("-t", f"bye/{version}/#", "-q", "1") as subscriber:
        with clients.subscribed("-t", "elsewhere", *will) as other:
            # In version 5 it asks for its will.
            other.leave()
        if version == "mqttv5":
            assert subscriber.line("bye").split()[3] == "gone"
        clients.publish(f"bye/{version}/end", "end")
        assert subscriber.line("bye").split()[3] == "end"

"""Machines with addresses of their own on this one, whose network is cut without a word.

    with Machines(2) as machines:
        first, second = machines
        subprocess.Popen([*first.launcher, "broker", "run", ...])   # listens at first.address
        between = machines.between(first, second)
        between.stall()    # each packet is lost, and connections stay open
        between.resume()

    namespace a          this one           namespace b
    eth0 ──veth── q<N>.0 ═ bridge q<N> ═ q<N>.1 ──veth── eth0
    198.18.N.10         198.18.N.1          198.18.N.11

A machine is a network namespace; all that is between them is a bridge of this machine, with rules
of nftables. Needs root, `ip` and `nft`. Addresses are those of RFC 2544, meant for tests.
"""

import contextlib
import os
import shutil
import subprocess

MANY = 250
FIRST_HOST = 10


def missing():
    """What is not here of what machines need; None where all is."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    for program in ("ip", "nft"):
        if shutil.which(program) is None:
            return f"{program} is not installed"
    done = subprocess.run(["ip", "netns", "add", f"q.{os.getpid()}"], capture_output=True)
    if done.returncode:
        return f"no network namespace can be made here: {done.stderr.decode().strip()}"
    _run("ip", "netns", "del", f"q.{os.getpid()}")
    return None


def _run(*words, text=None):
    done = subprocess.run(list(map(str, words)), input=text, capture_output=True, text=True)
    assert done.returncode == 0, f"{words}: {done.stderr}"
    return done.stdout


class Cut:
    """A part of the network whose packets are lost, from stall() to resume().

    Args:
        table: of nftables, for these rules alone.
        rules: by the hook of nftables, expressions of the packets that are concerned.
    """

    def __init__(self, table, rules):
        self._table = table.replace(".", "_")
        self._chains = "\n".join(
            f"chain {hook} {{ type filter hook {hook} priority 0; {'; '.join(found)}; }}"
            for hook, found in rules.items()
        )
        self._is_made = False

    def stall(self):
        """Lose each packet: connections stay open, and none is told."""
        if not self._is_made:
            _run("nft", "-f", "-", text=f"table bridge {self._table} {{\n{self._chains}\n}}\n")
            self._is_made = True

    # A relay resets connections; here no machine answers for one that is cut off.
    cut = stall

    def resume(self):
        """Let all through."""
        if self._is_made:
            _run("nft", "delete", "table", "bridge", self._table)
            self._is_made = False

    close = resume


class Machine:
    """One of them.

    Attributes:
        address: its own.
        launcher: words before a command that runs there.
    """

    def __init__(self, network, number):
        self._network = network
        self.number = number
        self.name = f"{network}.{number}"
        self.address = f"198.18.{network[1:]}.{FIRST_HOST + number}"
        self.launcher = ("ip", "netns", "exec", self.name)

    def start(self):
        """Make it, and put it on the bridge."""
        inside = ("ip", "-n", self.name)
        _run("ip", "netns", "add", self.name)
        _run(
            *("ip", "link", "add", self.name, "type", "veth"),
            *("peer", "name", "eth0", "netns", self.name),
        )
        _run("ip", "link", "set", self.name, "master", self._network, "up")
        _run(*inside, "link", "set", "lo", "up")
        _run(*inside, "addr", "add", f"{self.address}/24", "dev", "eth0")
        _run(*inside, "link", "set", "eth0", "up")

    def stop(self):
        """Take it away; what still runs there has no network any more."""
        subprocess.run(["ip", "link", "del", self.name], capture_output=True)
        subprocess.run(["ip", "netns", "del", self.name], capture_output=True)

    def to_port(self, port):
        """What goes from it to a port of this machine, and back."""
        return self._cut("port", f"tcp dport {port}", f"tcp sport {port}")

    def to_other_ports(self, port):
        """All of TCP that is not that."""
        return self._cut("others", f"tcp dport != {port}", f"tcp sport != {port}")

    def to_everything(self):
        """All that it sends and gets."""
        return self._cut("all", "", "")

    def _cut(self, what, there, back):
        return Cut(
            f"{self.name}.{what}",
            {
                "prerouting": [f'iifname "{self.name}" {there} drop'],
                "postrouting": [f'oifname "{self.name}" {back} drop'],
            },
        )


class Machines:
    """So many, on one network.

    Attributes:
        address: of this machine on their network.
    """

    def __init__(self, count):
        self._count = count
        self._stack = contextlib.ExitStack()

    def __enter__(self):
        self.network = self._make_network()
        self.address = f"198.18.{self.network[1:]}.1"
        self._stack.callback(_run, "ip", "link", "del", self.network)
        _run("ip", "addr", "add", f"{self.address}/24", "dev", self.network)
        _run("ip", "link", "set", self.network, "up")
        self._all = [Machine(self.network, number) for number in range(self._count)]
        for one in self._all:
            self._stack.callback(one.stop)
            one.start()
        return self

    def __exit__(self, *error):
        self._stack.close()

    def __iter__(self):
        return iter(self._all)

    def __getitem__(self, number):
        return self._all[number]

    @staticmethod
    def _make_network():
        """The first number that no other test has: a name is given once."""
        for number in range(1, MANY):
            name = f"q{number}"
            done = subprocess.run(
                ["ip", "link", "add", name, "type", "bridge"], capture_output=True, text=True
            )
            if done.returncode == 0:
                return name
            assert "exists" in done.stderr, done.stderr
        raise AssertionError("all networks of tests are taken")

    @staticmethod
    def between(first, second, *, is_one_way=False):
        """What goes from one to another; and back, if not `is_one_way`."""
        ways = [(first, second)] if is_one_way else [(first, second), (second, first)]
        rules = [f'iifname "{one.name}" ip daddr {other.address} drop' for one, other in ways]
        return Cut(f"{first.name}.{second.name}", {"prerouting": rules})

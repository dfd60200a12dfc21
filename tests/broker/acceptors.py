"""An acceptor that listens at the machine's own ports."""

from broker.environment import Environment
from broker.transport.acceptor import Acceptor


def acceptor_of(options, protocols):
    """Make one that is not bound yet."""
    machine = Environment()
    return Acceptor(
        options, protocols, network=machine.network, clock=machine.clock, ids=machine.ids
    )

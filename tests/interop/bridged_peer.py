"""JMS bridges between a broker of ours and a peer, by whatever protocol that speaks.

A peer has `user`, `password`, a connection factory `made`, and `destination(name)`.
"""

from broker.bridges.jms import CoreConnectionFactory, Destination, JMSBridge


def to_peer(ours, queue, peer, name, **parameters):
    """A bridge from a queue of ours to one of the peer."""
    return JMSBridge(
        lambda: CoreConnectionFactory(ours.uri),
        lambda: peer.made,
        lambda: Destination.queue(queue),
        peer.destination(name),
        source_user_name=ours.USER,
        source_password=ours.PASSWORD,
        target_user_name=peer.user,
        target_password=peer.password,
        failure_retry_interval=50,
        **parameters,
    )


def from_peer(ours, queue, peer, name, **parameters):
    """A bridge from a queue of the peer to one of ours."""
    return JMSBridge(
        lambda: peer.made,
        lambda: CoreConnectionFactory(ours.uri),
        peer.destination(name),
        lambda: Destination.queue(queue),
        source_user_name=peer.user,
        source_password=peer.password,
        target_user_name=ours.USER,
        target_password=ours.PASSWORD,
        failure_retry_interval=50,
        **parameters,
    )

"""Clients of others, by WebSocket: paho-mqtt publishes what stomp.py receives."""

import ssl
import threading

import paho.mqtt.client as paho
import stomp

WAIT_S = 30
# paho-mqtt puts a packet into one frame.
BODY = "x" * 60_000


def received(host, port, *, user=None, password=None, authority=None):
    """What stomp.py receives of BODY, which paho-mqtt publishes.

    Args:
        host: of the broker, as its certificate names it.
        port: of the broker.
        user: who both are; None says nothing.
        password: of that user.
        authority: of the broker's certificate, a file; None connects without TLS.
    """
    got, subscribed = threading.Event(), threading.Event()
    seen = []

    class Listener(stomp.ConnectionListener):
        def on_receipt(self, frame):
            subscribed.set()

        def on_message(self, frame):
            seen.append(frame.body)
            got.set()

    receiver = stomp.WSStompConnection([(host, port)])
    sender = paho.Client(
        paho.CallbackAPIVersion.VERSION2, "ws", transport="websockets", protocol=paho.MQTTv5
    )
    if authority is not None:
        receiver.set_ssl([(host, port)], ca_certs=str(authority))
        sender.tls_set(str(authority), tls_version=ssl.PROTOCOL_TLS_CLIENT)
    if user is not None:
        sender.username_pw_set(user, password)
    receiver.set_listener("", Listener())
    receiver.connect(user, password, wait=True)
    receiver.subscribe("ws.a", 1, headers={"receipt": "r", "subscription-type": "MULTICAST"})
    assert subscribed.wait(WAIT_S)
    sender.connect(host, port)
    sender.loop_start()
    try:
        sender.publish("ws/a", BODY, qos=2).wait_for_publish(WAIT_S)
        assert got.wait(WAIT_S)
    finally:
        sender.disconnect()
        sender.loop_stop()
        receiver.disconnect()
    return seen

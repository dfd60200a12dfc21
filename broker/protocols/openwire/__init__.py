"""OpenWire: ActiveMQ Classic's protocol, as Artemis serves it."""

"""How brokers find each other, and clients find brokers: broadcasts, entries, members.

For both sides: the broadcast and discovery groups of a broker (`broker.cluster`), and clients.
"""

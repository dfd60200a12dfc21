"""Bridges: messages taken from a queue here and sent to another broker, each once.

core/   between two brokers of the Core protocol
jms/    between any two providers of messaging
"""

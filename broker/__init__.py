"""The broker: messages, queues and addresses over a record store."""

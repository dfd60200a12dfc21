"""What all parts of the broker share: messages, properties, addresses, and their encodings."""

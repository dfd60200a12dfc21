"""What counts together or not at all: local transactions and XA."""

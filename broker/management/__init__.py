"""Management by messages: requests, what they are about, notifications, metrics."""

"""The broker's objects as journal records, and back."""

"""Artemis's XML of what a broker has stored: written, and read."""

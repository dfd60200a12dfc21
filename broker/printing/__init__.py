"""Printing, describing and exporting records for people."""

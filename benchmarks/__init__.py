"""How fast the journal is, beside the limit of this disk, other engines and Artemis.

README.md says how to run each file.
"""

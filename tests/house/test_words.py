"""Code and documents speak as the field does, in sentences that are read once."""

from tests.house.words import findings

# What is left, and why: names of an API that has them, an account of the system.
MOST = 20


def test_sentences_are_short_and_in_the_field_s_words():
    found = [str(one) for one in findings()]

    assert len(found) <= MOST, "\n".join(found)

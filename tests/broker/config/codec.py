"""A codec as an operator would write one, for `password-codec`."""


def reverse(text):
    return text[::-1]

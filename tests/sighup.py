"""What a child of a test does about SIGHUP."""

import signal


def default_sighup():
    """In a process to be, before its program: tests may run under nohup, which it would inherit."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

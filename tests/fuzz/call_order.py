"""Completions of a store, checked as they come: in append order, from reap() and nowhere else."""

from contextlib import contextmanager


class CallOrder:
    """Gives out `done` callbacks and checks each call.

    Attributes:
        asked: callbacks given out to operations that were accepted.
        told: callbacks that were called.
    """

    def __init__(self):
        self.asked = 0
        self.told = 0
        self.is_reaping = False

    def done(self):
        """A callback for the next operation; call accepted() once the operation was accepted."""
        number = self.asked

        def tell(error):
            assert self.is_reaping, "told by the call itself"
            assert error is None
            assert number == self.told, f"operation {number} was told instead of {self.told}"
            self.told += 1

        return tell

    def accepted(self):
        """The operation that took the last callback was accepted."""
        self.asked += 1

    @contextmanager
    def reaping(self):
        """Callbacks may come now."""
        self.is_reaping = True
        yield
        self.is_reaping = False

    def close(self, store):
        """Close the store, which calls all that are left."""
        with self.reaping():
            store.close()
        assert self.told == self.asked

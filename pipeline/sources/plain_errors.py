"""Shows users' errors in Spark without a traceback of our code.

PySpark sends a worker's exception as text, with its traceback unless the variable below is set
(spark.sql.execution.pyspark.udf.hideTraceback.enabled sets it, for all functions of a session). A
worker ends with an exception, so that what is set here is that exception's alone.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from functools import wraps
from inspect import isgeneratorfunction
from typing import TYPE_CHECKING, Any, Final, TypeVar

from journal.errors import JournalError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["plain_errors", "with_plain_errors"]

K = TypeVar("K")

HIDE_TRACEBACK: Final = "SPARK_HIDE_TRACEBACK"
# Of sources, and of their readers and writers. A method that gives what reads later is none of
# them: the generator is.
_CALLED: Final = frozenset(
    {
        *("schema", "reader", "streamReader", "writer", "streamWriter"),
        *("partitions", "read", "write", "commit", "abort"),
        *("initialOffset", "latestOffset", "prepareForTriggerAvailableNow"),
    }
)


@contextmanager
def plain_errors() -> Iterator[None]:
    """Show errors of ours as one line within it; show unexpected ones as they are."""
    try:
        yield
    except Exception as error:
        # Here, as it loads a whole client: most tasks talk to no broker.
        from broker.client.errors import ClientError

        if isinstance(error, (JournalError, ClientError)):
            os.environ[HIDE_TRACEBACK] = "1"
        raise


def with_plain_errors(kind: type[K]) -> type[K]:
    """Have what Spark calls of a class tell errors of ours as a line; a decorator."""
    for name in _CALLED & vars(kind).keys():
        setattr(kind, name, _plain(vars(kind)[name]))
    return kind


def _plain(method: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(method)
    def call(*given: Any, **named: Any) -> Any:  # noqa: ANN401 - as the method has it.
        with plain_errors():
            return method(*given, **named)

    @wraps(method)
    def generate(*given: Any, **named: Any) -> Iterator[Any]:  # noqa: ANN401 - as above.
        with plain_errors():
            yield from method(*given, **named)

    return generate if isgeneratorfunction(method) else call

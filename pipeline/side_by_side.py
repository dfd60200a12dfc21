"""Has Spark plan and run several things at the same time.

A session that has just started spends most of its time in one thread of Java, which loads the
classes of what it plans: of small data, planning is nearly all there is.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

__all__ = ["side_by_side"]


def side_by_side(spark: SparkSession, *works: Callable[[], Any]) -> list[Any]:
    """Call each in a thread of its own; what they give, in their order.

    Job groups, tags and other properties of the calling thread hold for all of them.

    Args:
        spark: a session.
        works: called without arguments; what they share has to stand several threads.

    Raises:
        Exception: of the first that raised one, once all have ended.
    """
    from pyspark.util import inheritable_thread_target

    inherit = inheritable_thread_target(spark)
    with ThreadPoolExecutor(len(works)) as pool:
        found = [pool.submit(inherit(work)) for work in works]
    return [one.result() for one in found]

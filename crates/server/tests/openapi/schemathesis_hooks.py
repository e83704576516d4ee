"""What schemathesis is told beyond its configuration."""

import itertools
import re

import schemathesis

NAME = "Idempotency-Key"
numbers = itertools.count()


@schemathesis.hook
def before_call(context, case, kwargs):
    """Gives each request that should be accepted an idempotency key of its own, if it has one.

    The few that are made up would come again: with another body, which is refused, or with the same one,
    and then a thing that has been removed since is shown as it was made.
    """
    key = (case.headers or {}).get(NAME)
    if case.meta is None or case.meta.generation.mode.is_negative:
        return
    if isinstance(key, str) and re.fullmatch("[ -~]{1,255}", key):
        tail = f"-{next(numbers)}"
        # It stays as long as it was, so that the longest are asked for too.
        case.headers[NAME] = key[: -len(tail)] + tail if len(key) > 20 else key + tail

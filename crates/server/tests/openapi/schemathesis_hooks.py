"""Hooks of schemathesis."""

import itertools
import re

import schemathesis

NAME = "Idempotency-Key"
numbers = itertools.count()


@schemathesis.hook
def before_call(context, case, kwargs):
    """Gives each valid request with an idempotency key a unique one.

    The few generated keys would be repeated: with another body, which is rejected, or with the same body,
    and then the stored response shows an object that may have been deleted.
    """
    key = (case.headers or {}).get(NAME)
    if case.meta is None or case.meta.generation.mode.is_negative:
        return
    if isinstance(key, str) and re.fullmatch("[ -~]{1,255}", key):
        tail = f"-{next(numbers)}"
        # The length is kept, so that the longest keys are tested.
        case.headers[NAME] = key[: -len(tail)] + tail if len(key) > 20 else key + tail

"""What schemathesis must not send: to JSON Schema 796.0 is an integer, and the server refuses it.

The document says so in words; JSON Schema has none for it.
"""

import schemathesis


def _has_whole_float(value: object) -> bool:
    if isinstance(value, dict):
        return any(_has_whole_float(each) for name, each in value.items() if name != "amount")
    if isinstance(value, list):
        return any(map(_has_whole_float, value))
    return isinstance(value, float) and value.is_integer()


@schemathesis.hook
def filter_body(context: schemathesis.HookContext, body: object) -> bool:
    """Whether a generated body may be sent."""
    return not _has_whole_float(body)

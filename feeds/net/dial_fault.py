"""Describe why a connection could not be opened, as a short text without the address."""

import os


def dial_fault(error: OSError) -> str:
    """Describe why `dial` failed, as a short text without the address.

    trio hides the errors of the single addresses behind the text "all attempts failed", and repeats the
    address in each. Errors of TLS and of name resolution have their own numbers, and their own texts.
    """
    cause = error.__cause__
    while isinstance(cause, BaseExceptionGroup):
        cause = cause.exceptions[0]
    told = cause if isinstance(cause, OSError) else error
    if type(told).__module__ == "builtins" and told.errno and not isinstance(told, TimeoutError):
        return os.strerror(told.errno)
    return getattr(told, "verify_message", None) or told.strerror or str(told) or type(told).__name__

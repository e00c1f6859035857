"""Describe why a connection could not be opened, as a short text without the address."""

import os


def dial_fault(error: OSError) -> str:
    """Describe why `dial` failed, as a short text without the address.

    trio reports only "all attempts failed", with an error per address of the host as the cause: the text is
    that of the first such error. Errors of TLS and of name resolution keep their own texts.
    """
    cause = error.__cause__
    while isinstance(cause, BaseExceptionGroup):
        cause = cause.exceptions[0]
    told = cause if isinstance(cause, OSError) else error
    if type(told).__module__ == "builtins" and told.errno and not isinstance(told, TimeoutError):
        return os.strerror(told.errno)
    return getattr(told, "verify_message", None) or told.strerror or str(told) or type(told).__name__

"""Describe why a connection could not be opened, as a short text without the address."""

import os


def dial_fault(error: OSError) -> str:
    """Describe why `dial` failed, as a short text without the address.

    trio reports only "all attempts failed", with an error per address of the host as the cause: the function
    takes the text of the first such error. Errors of TLS and of name resolution keep their own texts.
    """
    cause = error.__cause__
    while isinstance(cause, BaseExceptionGroup):
        cause = cause.exceptions[0]
    inner = cause if isinstance(cause, OSError) else error
    if type(inner).__module__ == "builtins" and inner.errno and not isinstance(inner, TimeoutError):
        return os.strerror(inner.errno)
    return getattr(inner, "verify_message", None) or inner.strerror or str(inner) or type(inner).__name__

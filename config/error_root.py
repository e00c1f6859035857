"""Base classes of all errors and of callers' errors; the docstring of `errors` shows the whole tree."""

from typing import ClassVar

from .error_text import NOTHING, one_line, sentence


class CambistError(Exception):
    """Base class of every error of cambist.

    Attributes:
        detail: the whole error text, one line. The caller or the remote server may see the text, and may
            find in it names that this caller or server has sent.
        headers: HTTP headers that the error adds to the response.
    """

    headers: tuple[tuple[bytes, bytes], ...] = ()

    def __init__(self, detail: str) -> None:
        self.detail = one_line(detail)
        super().__init__(self.detail)


class RequestError(CambistError):
    """A caller's fault. Each subclass that sets `messages` is a row of the error catalogue.

    Class attributes:
        status: HTTP status.
        error_type: value of `errorType` in the response body; the class name unless set.
        messages: fixed beginnings of the error text, word for word; the first is the default.
        endpoint, cause, fix: catalogue columns: where the error occurs, why, and what the caller can do.
        retry_after_s: seconds to wait before a retry; an instance may override the class's value.

    Args:
        detail: text after the message; may be empty.
        field: dotted name of the field or parameter at fault.
        expected: a noun phrase for the valid value.
        got: the received value, which the text shows in a shortened form.
        message: one of `messages`.
    """

    status: ClassVar[int] = 400
    error_type: ClassVar[str] = "RequestError"
    messages: ClassVar[tuple[str, ...]] = ()
    endpoint: ClassVar[str] = "any"
    cause: ClassVar[str] = ""
    fix: ClassVar[str] = ""
    retry_after_s: int | None = None

    def __init__(
        self,
        detail: str = "",
        *,
        field: str | None = None,
        expected: str | None = None,
        got: object = NOTHING,
        message: str | None = None,
    ) -> None:
        self.message = message or self.messages[0]
        if self.message not in self.messages:
            raise ValueError(f"{self.message!r} is not a message of {type(self).__name__}")
        self.field = field
        self.expected = expected
        self.got = got
        super().__init__(sentence(self.message, field, expected, got, detail))

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "error_type" not in cls.__dict__:
            cls.error_type = cls.__name__

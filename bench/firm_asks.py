"""Load of a client for firm quotes: 64 callers that each send the next request after an answer.

    number -> FirmAsked -> body -> signed -> over the wire -> decoded -> the amount that was asked for

No number, and so no body and no signature, is used twice in a run. All clients use cambist's signing and
decoding: they differ in the HTTP client only.
"""

import gc
import time
from collections.abc import Awaitable, Callable, Iterator
from itertools import count

from cambist.codecs.messages.maker_messages import FirmOrder, FirmRequest, decode_firm_response
from cambist.codecs.messages.vocabulary import Side
from cambist.codecs.messages.wire import encode
from cambist.feeds.firm.firm_check import FirmAsked

CALLERS = 64
DEADLINE_S = 30.0
BASE_AMOUNT = 10**18
_SRC, _DEST = bytes.fromhex(f"{0xBA5E:040x}"), bytes.fromhex(f"{0xC0DE:040x}")
_TAKER = bytes.fromhex(f"{0xAA:040x}")
_USERS = 20_011
_USERS_FROM = 1 << 64

Ask = Callable[[FirmAsked], Awaitable[FirmOrder]]


class Asking:
    """Measurement of one HTTP client by requests for firm quotes.

    Args:
        first: the number of the first request.

    Attributes:
        answered: number of correct answers since `begin`.
    """

    def __init__(self, first: int) -> None:
        self._numbers: Iterator[int] = count(first)
        self._until = 0.0
        self._began = self._cpu_began = 0.0
        self.answered = 0

    def begin(self, seconds: float) -> None:
        """Begin the measurement: answers count from now on, for `seconds`."""
        gc.collect()
        gc.freeze()
        self.answered = 0
        self._began, self._cpu_began = time.perf_counter(), time.process_time()
        self._until = self._began + seconds

    def result(self) -> str:
        """Return the measurement's result since `begin` as text: `answers seconds cpu`."""
        seconds = time.perf_counter() - self._began
        return f"{self.answered} {seconds} {time.process_time() - self._cpu_began}"

    async def call(self, ask: Ask) -> None:
        """Send requests one after the other by the function `ask` until the measurement's time is over.

        Raises:
            RuntimeError: an answer is for another amount than requested.
        """
        while time.perf_counter() < self._until:
            parameters = asked_for(next(self._numbers))
            order = await ask(parameters)
            if order.taker_amount != str(parameters.amount):
                raise RuntimeError(f"asked for {parameters.amount}, answered {order.taker_amount}")
            self.answered += 1


def asked_for(number: int) -> FirmAsked:
    """Return the parameters of the request for a firm quote with a number."""
    user = (_USERS_FROM + number % _USERS).to_bytes(20, "big")
    return FirmAsked(_SRC, _DEST, Side.SELL, BASE_AMOUNT + number, user, _TAKER)


def body_of(parameters: FirmAsked) -> bytes:
    """Encode the body of a request for a firm quote, as cambist's client does."""
    return encode(
        FirmRequest(
            maker_asset=f"0x{parameters.dest_token.hex()}",
            taker_asset=f"0x{parameters.src_token.hex()}",
            taker_amount=str(parameters.amount),
            user_address=f"0x{parameters.user.hex()}",
            taker_address=f"0x{parameters.taker.hex()}",
        )
    )


def order_of(status: int, answer: bytes) -> FirmOrder:
    """Decode the signed order in an answer to a request for a firm quote.

    Raises:
        RuntimeError: the status is no success.
    """
    if status != 200:
        raise RuntimeError(f"status {status}: {answer[:200]!r}")
    order = decode_firm_response(answer).order
    assert isinstance(order, FirmOrder)
    return order

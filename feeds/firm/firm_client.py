"""Request firm quotes of one maker on one chain: POST {url}/firm, on pooled connections.

A request is sent once more if its connection was a reused one and broke before a byte of the answer: two
quotes for the same request do no harm, since only one is executed. No request is repeated after an answer of
any kind.

    success with `order`       --> the order, as it was written
    success without it         --> BLACKLISTED: the maker does not serve this user
    ... with `error`, or with a null `order`, or without a body           --> REFUSED, with the reason
    any other status           --> REFUSED, 403 and redirects as well, with the `error` of the body
    deadline                   --> LATE; OUT_OF_TIME if our own requests took all connections
    no whole HTTP answer       --> UNAVAILABLE: no connection, a broken one, no HTTP, or too many bytes
    a body that is no answer   --> INVALID

Source: spec 3.9, 3.10, 3.12; interop.md section 4; ARCHITECTURE.md, "HTTP client".
Choice: 403 on /firm is a maker failure like any other; only a success without `order` blacklists the user at
    that maker.
Choice: A success of /firm with `error`, with a null `order` or without a body (204) is a refusal; `{}`, and a
    success with a `message` alone, blacklist as the specification says.
"""

from collections.abc import Callable
from ssl import SSLContext

from msgspec import UNSET

from ...codecs.http1 import Http1Limits, Response
from ...codecs.messages.maker_messages import FirmOrder, FirmRequest, decode_error_body, decode_firm_response
from ...codecs.messages.vocabulary import Side
from ...codecs.messages.wire import encode
from ...config.error_text import excerpt
from ...config.errors import InvalidInput
from ...config.limits import MAKER_FIRM_ANSWER_BYTES_MAX
from ...crypto.hmac_auth import RequestSigner
from ..transport.http_client import HttpFailure, RequestStage
from ..transport.signed_client import SignedClient
from ..transport.streams import Dial, dial
from .firm_check import FirmAsked, FirmFailure, FirmFault

_LIMITS = Http1Limits(body_bytes_max=MAKER_FIRM_ANSWER_BYTES_MAX)


class FirmClient(SignedClient):
    """Client that requests firm quotes from one maker on one chain.

    Use it as an async context manager: leaving it closes the connections.

    Args:
        maker: name of the maker.
        url: base URL of the maker's endpoints, http or https, with any path prefix.
        signer: signs the requests; None sends them unsigned.
        connections_max: most open connections; further requests wait for a free one until their deadline.
        wall_ms: returns the current time, Unix milliseconds, which the signature covers.
        tls: context for https; None trusts the system's certificate authorities.
        dial: function that opens a connection.
    """

    def __init__(
        self,
        maker: str,
        url: str,
        *,
        signer: RequestSigner | None,
        connections_max: int,
        wall_ms: Callable[[], int],
        tls: SSLContext | None = None,
        dial: Dial = dial,
    ) -> None:
        super().__init__(
            url,
            signer=signer,
            wall_ms=wall_ms,
            connections_max=connections_max,
            limits=_LIMITS,
            tls=tls,
            dial=dial,
        )
        self.maker = maker

    async def ask(self, request: FirmAsked, *, deadline_s: float) -> FirmOrder:
        """Request a quote and wait for the answer.

        Args:
            deadline_s: seconds from now for the whole request.

        Returns:
            The maker's answer as sent; `firm_check` checks it against the request.

        Raises:
            FirmFailure: the maker refuses, does not serve the user, is late or unreachable, or gives no valid
                answer (`fault` gives the kind). The text names no host, key or header.
        """
        try:
            answer = await self.post("/firm", encode(_request(request)), deadline_s)
        except HttpFailure as failure:
            raise _failure_of(failure) from None
        return _order_of(answer)


def _request(request: FirmAsked) -> FirmRequest:
    sells = request.side is Side.SELL
    return FirmRequest(
        maker_asset=f"0x{request.dest_token.hex()}",
        taker_asset=f"0x{request.src_token.hex()}",
        maker_amount=None if sells else str(request.amount),
        taker_amount=str(request.amount) if sells else None,
        user_address=f"0x{request.user.hex()}",
        taker_address=f"0x{request.taker.hex()}",
    )


def _order_of(answer: Response) -> FirmOrder:
    if answer.status >= 300 or not answer.body:
        raise FirmFailure(FirmFault.REFUSED, f"status {answer.status}{_reason(answer.body)}")
    try:
        decoded = decode_firm_response(answer.body)
    except InvalidInput as error:
        raise FirmFailure(FirmFault.INVALID, error.detail) from None
    if isinstance(decoded.order, FirmOrder):
        return decoded.order
    # An empty array stands for an empty object in PHP, and for anything elsewhere: it blacklists nobody.
    if decoded.order is UNSET and not decoded.error and answer.body.lstrip().startswith(b"{"):
        raise FirmFailure(FirmFault.BLACKLISTED)
    raise FirmFailure(
        FirmFault.REFUSED, f"no order: {excerpt(decoded.error or decoded.message or 'no reason')}"
    )


def _reason(body: bytes) -> str:
    try:
        return f": {excerpt(decode_error_body(body).error)}"
    except InvalidInput:
        return " without an error text"


def _failure_of(failure: HttpFailure) -> FirmFailure:
    if not failure.is_late:
        return FirmFailure(FirmFault.UNAVAILABLE, failure.stage.value)
    is_ours = failure.stage is RequestStage.TURN
    return FirmFailure(FirmFault.OUT_OF_TIME if is_ours else FirmFault.LATE, failure.stage.value)

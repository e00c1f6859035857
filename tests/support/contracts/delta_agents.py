"""Agents of stories: they bid what a story says, from the stock of a contract of their own.

    ann = StoryAgent("ann", market)
    ann.gives = lambda order: 2_500 * USDC        what its contract delivers for a sale; None is no bid
    ann.takes = lambda order: ONE                 what it wants for a purchase
    ann.settles = lambda order: ONE // 2          how much it bids for; None is all that is asked for
    ann.habit = "hangs"                           bids | hangs | garbage | refuses

Each is served on a socket, and verifies that it is the venue who asks.
"""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from fractions import Fraction
from math import ceil

import trio
from msgspec.structs import replace

from cambist.codecs.contracts import calldata
from cambist.codecs.contracts.abi import address_word, uint_word
from cambist.codecs.eip712_orders.partner_and_fee import unpack_partner_and_fee
from cambist.codecs.http1 import Request, encode_response
from cambist.codecs.messages.agent_messages import (
    AuctionOrder,
    BidPart,
    BidStep,
    Notice,
    NoticeEntry,
    SolverBid,
    SolveRequest,
    SolveResponse,
    WholeOrder,
    decode_notify_request,
    decode_solve_request,
)
from cambist.codecs.messages.vocabulary import Side
from cambist.codecs.messages.wire import encode
from cambist.config.errors import AuthError
from cambist.crypto.addresses import parse_address, to_checksum
from cambist.crypto.hexadecimal import to_hex
from cambist.crypto.hmac_auth import (
    ACCESS_KEY_HEADER,
    DOMAIN_HEADER,
    SIGNATURE_HEADER,
    TIMESTAMP_HEADER,
    RequestVerifier,
)
from cambist.engine.chain.proceeds import of_purchase, of_sale
from cambist.engine.trade.delta.bids.agent_caller import caller_of
from support.chain.world import NATIVE
from support.contracts.settling import DELIVER, STEP_GAS, Market
from support.server.scripted_server import Caller, scripted_server

Offer = Callable[[AuctionOrder], int | None]


class StoryAgent:
    """An agent of a story.

    Attributes:
        gives: raw units that its contract delivers for a sale, before the fee.
        takes: raw units that it keeps of a purchase, before the fee.
        settles: raw units of the fixed side; `gives` and `takes` are asked about that part of the order.
        lies_by: it promises so much more (SELL) or less (BUY) than it does.
        contract: that delivers, and is given to; 20 bytes.
        leftovers: tokens whose balance at the executor goes to the owner.
        delivers: the call of it that sends a token to an account.
        also: what it bids besides, of a round.
        requests, notices: requests and notices that the agent received.
        answered: questions.
    """

    def __init__(self, name: str, market: Market) -> None:
        self.name = name
        self.market = market
        self.habit = "bids"
        self.gives: Offer = lambda order: None
        self.takes: Offer = lambda order: None
        self.settles: Offer = lambda order: None
        self.lies_by = 0
        self.contract = market.agent
        self.leftovers: tuple[bytes, ...] = ()
        self.delivers: Callable[[bytes, bytes, int], bytes] = _delivers
        self.also: Callable[[SolveRequest], list[SolverBid]] = lambda request: []
        self.requests: list[SolveRequest] = []
        self.notices: list[NoticeEntry] = []
        self.answered = self.unsigned = 0
        self.asked = trio.Event()
        self.may_answer = trio.Event()
        self.may_answer.set()
        secret = self.secret.encode()
        self._verify = RequestVerifier({"venue": [("key-1", secret)]}).verify

    @property
    def secret(self) -> str:
        """HMAC secret that the venue and the agent share."""
        return f"the secret of {self.name}, an agent"

    def waits(self) -> None:
        """Delay the answer to the next request until `may_answer` is set."""
        self.asked, self.may_answer = trio.Event(), trio.Event()

    def told(self, notice: str) -> list[NoticeEntry]:
        """Received notices of a kind."""
        return [entry for entry in self.notices if entry.notice == notice]

    def hears_of(self, order_hash: bytes) -> list[Notice]:
        """Received notices about an order, in the order of arrival."""
        return [entry.notice for entry in self.notices if entry.order_hash == to_hex(order_hash)]

    # --- Bids -------------------------------------------------------------------------------------------

    def bids_on(self, request: SolveRequest) -> tuple[SolverBid, ...]:
        """The agent's bids for the orders of a round."""
        bids = self.also(request)
        for order in request.orders:
            amount = self.settles(order)
            bid_for = order if amount is None else cut(order, amount)
            offer = self.gives(bid_for) if order.side is Side.SELL else self.takes(bid_for)
            if offer is not None:
                part = self.part(bid_for, offer)
                bids.append(SolverBid((part if amount is None else replace(part, amount=str(amount)),)))
        return tuple(bids)

    def part(self, order: AuctionOrder, offer: int) -> BidPart:
        """The settlement of an order on these terms, and the promise that fits."""
        terms = unpack_partner_and_fee(int(order.partner_and_fee))
        src, dest = self.traded(order.src_token), self.traded(order.dest_token)
        expected = int(order.expected_amount)
        if order.side is Side.SELL:
            given, received = int(order.src_amount), offer
            net = received - of_sale(received, expected, int(order.dest_amount), terms).total
            promised = net + self.lies_by
        else:
            given, received = offer, int(order.dest_amount)
            cut = of_purchase(given, expected, int(order.src_amount), terms)
            promised = given + (0 if cut is None else cut.total) - self.lies_by
        agent, at = self.contract, self.market.world.at
        deliver = self.delivers(dest, at.delta, received)
        return BidPart(
            order.order_hash,
            str(promised),
            (
                BidStep(to_hex(src), to_hex(calldata.transfer(agent, given)), STEP_GAS),
                BidStep(to_hex(agent), to_hex(deliver), STEP_GAS),
            ),
            given=str(0 if order.side is Side.SELL else given),
            leftovers=tuple(map(to_hex, self.leftovers)),
            receiver=to_checksum(caller_of(at.delta, self.name)),
        )

    def traded(self, token: str) -> bytes:
        """The token that is traded for one that is signed."""
        address = parse_address(token)
        return self.market.world.weth if address == NATIVE else address

    # --- Serving ----------------------------------------------------------------------------------------

    async def script(self, caller: Caller) -> None:
        """Serve one connection."""
        while True:
            try:
                request = await caller.request()
            except (EOFError, trio.BrokenResourceError):
                return
            try:
                await caller.stream.send_all(await self._answer(request))
                self.answered += not request.path.endswith(b"/notify")
            except trio.BrokenResourceError:
                return

    async def _answer(self, request: Request) -> bytes:
        fields = request.fields
        try:
            domain, access_key, timestamp, signature = (
                fields.get(name.lower().encode())
                for name in (DOMAIN_HEADER, ACCESS_KEY_HEADER, TIMESTAMP_HEADER, SIGNATURE_HEADER)
            )
            now_ms = int(timestamp or b"0")
            self._verify(
                domain,
                access_key,
                timestamp,
                signature,
                request.method,
                request.target,
                request.body,
                now_ms,
            )
        except AuthError:
            self.unsigned += 1
            return encode_response(401, b"{}")
        if request.path.endswith(b"/notify"):
            self.notices += decode_notify_request(request.body).notices
            return encode_response(200, b"{}")
        asked = decode_solve_request(request.body)
        self.requests.append(asked)
        self.asked.set()
        if self.habit == "hangs":
            await trio.sleep_forever()
        if self.habit == "garbage":
            return encode_response(200, b'{"bids": [{"parts": "many"}]}')
        if self.habit == "refuses":
            return encode_response(500, b"{}")
        await self.may_answer.wait()
        bids = self.bids_on(asked)
        return encode_response(200, encode(SolveResponse(bids))) if bids else encode_response(204, b"")


def _delivers(token: bytes, to: bytes, amount: int) -> bytes:
    return DELIVER + address_word(token) + address_word(to) + uint_word(amount)


def cut(order: AuctionOrder, amount: int) -> AuctionOrder:
    """A part of an order, as the contract reckons it; of one that is filled whole, as if it might be cut."""
    whole = order.whole or WholeOrder(order.src_amount, order.dest_amount, order.expected_amount)
    src, dest, expected = int(whole.src_amount), int(whole.dest_amount), int(whole.expected_amount)
    if order.side is Side.SELL:
        amounts = amount, ceil(Fraction(dest * amount, src)), ceil(Fraction(expected * amount, src))
    else:
        amounts = src * amount // dest, amount, expected * amount // dest
    texts = [str(one) for one in amounts]
    return replace(order, src_amount=texts[0], dest_amount=texts[1], expected_amount=texts[2])


@asynccontextmanager
async def serving(agent: StoryAgent) -> AsyncGenerator[int]:
    """The agent's port."""
    async with scripted_server(agent.script) as port:
        yield port

"""Answers POST /firm: from the raw body to the signed quote, without an await.

    decode -> user -> blacklist -> pair and side -> taker -> stop switches -> price's age -> withheld
        -> amounts -> unused quotes -> bounds -> sign -> reserve

Amounts that the maker gives are rounded down, amounts that it takes are rounded up. Every refusal is an error
of its own, except for a blacklisted user, who gets a success without `order`.

Guarantees: a quote is signed only if it is reserved in the same step; a refusal reserves nothing.

Source: spec 3.9, 3.5; interop.md 1 and 4.
Choice: /firm echoes the assets, the taker and the given amount exactly as the request writes them.
Choice: The refusal of a blacklisted user precedes every other refusal of a readable request.
"""

from collections.abc import Callable, Iterable, Mapping
from time import perf_counter

import msgspec

from .....codecs.amounts import parse_amount
from .....codecs.eip712_orders.nonce_and_meta import firm_word
from .....codecs.eip712_orders.rfq import address_words, digest_of_words_for
from .....codecs.messages.maker_messages import (
    FirmRequest,
    FirmResponse,
    decode_firm_request,
    encode_firm_quote,
)
from .....codecs.messages.wire import encode
from .....config.errors import FirmRefused, InvalidInput, PolicyError, ServiceUnavailable, TradingStopped
from .....crypto.addresses import parse_address
from .....crypto.custody.signing_policy import PolicedKey
from .....crypto.signatures import to_65
from .....feeds.books.book import Book
from .....feeds.books.fill import base_paid, base_received, quote_paid, quote_received
from ....host.safety.halts import Halts
from .blacklist import Blacklist
from .board import Board, PairState, message_tail
from .ledger import MakerHolding, QuoteLedger, VenueDomain
from .recent import RefusalReason, recent_ring, refusal_reason, refused_quote


class PairDirection(msgspec.Struct, frozen=True):
    """A pair in one trade direction: the maker gives one of its two tokens and takes the other.

    Attributes:
        state: the pair and its price.
        holding: the maker's funds in the token that it gives.
        takes: address of the token that the maker takes, 20 bytes.
        addresses128: cache: taker -> the four addresses of an order (maker, taker and both tokens) as EIP-712
            encodes them, 4 words of 32 bytes.
        gives_base: whether the maker gives the base token, at the prices of the asks; otherwise the maker
            gives the quote token, at the prices of the bids.
    """

    state: PairState
    holding: MakerHolding
    takes: bytes
    gives_base: bool
    addresses128: dict[bytes, bytes] = msgspec.field(default_factory=dict)


class Signer(msgspec.Struct, frozen=True):
    """Key, account and signing domain of one chain's firm quotes.

    Attributes:
        key: signing key; its policy restricts what the key signs.
        chain_id, contract: chain and address (20 bytes) of the RFQ contract.
        domain_separator: EIP-712 domain separator, 32 bytes.
        maker: account that gives the quotes, 20 bytes: the key's own address, or a contract that accepts the
            key's signature (EIP-1271).
    """

    key: PolicedKey
    chain_id: int
    contract: bytes
    domain_separator: bytes
    maker: bytes


class Desk:
    """Answers requests for firm quotes on one chain: refuses them, or signs a quote.

    Attributes:
        markets: (token that the maker gives, token that it takes), as lower-case addresses -> pair direction.
        tokens: lower-case addresses of all tokens in `markets`.
        halted: whether the operator has stopped trading on the chain.
        takers: contracts that may fill a quote: lower-case address text -> the address as 20 bytes.
        chain_time_s: timestamp (Unix seconds) of the block at which balances were last read; None if the
            maker reads no balances, or does not trust block times.
        withheld: reason other than the operator's stop for which the maker signs no quote now; empty for
            none.
        signed, refused: number of signed quotes, and of refused requests.
        blacklisted: number of answers without `order`, which blacklisted users get.
        refusals: reason -> number of refused requests.
        recent: the last requests, signed and refused (`RecentRing`).
        policy_refusal: reason of the last refusal by the signing key's policy; empty without one.
    """

    __slots__ = (
        "_blacklisted_body",
        "_blacklisted_users",
        "_chain_id",
        "_digest_of",
        "_expiry",
        "_expiry_s",
        "_hold_until_s",
        "_maker",
        "_maker_text",
        "_note",
        "_price_life_ms",
        "_random96",
        "_sign",
        "_tail",
        "_unused_blacklist_s",
        "_withheld",
        "blacklist",
        "blacklisted",
        "board",
        "chain_time_s",
        "halted",
        "ledger",
        "markets",
        "policy_refusal",
        "recent",
        "refusals",
        "refused",
        "signed",
        "takers",
        "tokens",
        "withheld",
    )

    def __init__(
        self,
        *,
        signer: Signer,
        board: Board,
        markets: Mapping[tuple[bytes, bytes], PairDirection],
        ledger: QuoteLedger,
        blacklist: Blacklist,
        takers: Iterable[bytes],
        expiry_s: int,
        unused_blacklist_s: int,
        random96: Callable[[], bytes],
        message: str = "",
    ) -> None:
        self.board = board
        self.ledger = ledger
        self.blacklist = blacklist
        self.markets = {
            (f"0x{gives.hex()}", f"0x{takes.hex()}"): market for (gives, takes), market in markets.items()
        }
        self.tokens = {asset for assets in self.markets for asset in assets}
        self.halted = False
        self.chain_time_s: int | None = None
        self.allow(takers)
        self._chain_id = signer.chain_id
        self.withheld = ""
        self._hold_until_s = 0
        self._withheld: dict[str, str] = {}
        self.signed = self.refused = self.blacklisted = 0
        self.refusals: dict[str, int] = {}
        self.recent = recent_ring()
        self._note = self.recent.extend
        self.policy_refusal = ""
        self._digest_of = digest_of_words_for(signer.domain_separator)
        self._sign = signer.key.signer_for(signer.chain_id, signer.contract)
        self._expiry = 0, b""
        self._maker_text = f"0x{signer.maker.hex()}"
        self._expiry_s = expiry_s
        self._unused_blacklist_s = unused_blacklist_s
        self._random96 = random96
        self._maker = signer.maker
        self._price_life_ms = board.price_life_ms
        # The blacklist's own dict, not a copy: `Blacklist` changes it in place and must never replace it.
        self._blacklisted_users = blacklist.users
        self._tail = message_tail(message) if message else b""
        self._blacklisted_body = encode(FirmResponse(message=message or "this user gets no firm quotes"))

    def answer(self, raw: bytes, now_ms: int, venue: VenueDomain = None) -> bytes:
        """Build the response body for a firm quote request.

        Args:
            raw: the request's body.
            now_ms: wall clock, milliseconds since the Unix epoch.
            venue: venue that has signed the request.

        Raises:
            InvalidInput: the body is not a valid request.
            FirmRefused, TradingStopped, ServiceUnavailable: no quote is possible now.
        """
        started = perf_counter()
        request = None
        try:
            request = decode_firm_request(raw)
            return self._answer(request, now_ms, venue, started)
        except Exception as error:
            self.refused += 1
            reason = refusal_reason(error)
            self.refusals[reason] = self.refusals.get(reason, 0) + 1
            self._note_refusal(request, reason, now_ms, started)
            raise

    def obey(self, halts: Halts) -> None:
        """Stop or resume trading on the chain and in each of its pairs, as the kill switch (`halts`) says."""
        self.halted = halts.stops_chain(self._chain_id)
        for pair_id, state in self.board.pairs.items():
            state.halted = (self._chain_id, pair_id) in halts.pairs

    def allow(self, takers: Iterable[bytes]) -> None:
        """Set the contracts that may fill quotes (addresses of 20 bytes), in place of the former ones."""
        self.takers = {f"0x{taker.hex()}": taker for taker in takers}

    def withhold(self, cause: str, reason: str) -> None:
        """Stop signing quotes and publishing prices for a cause, or lift the cause.

        Signing resumes once no cause is left.

        Args:
            cause: name of the cause, such as `clock` or `funds`.
            reason: text for the refusals; empty lifts the cause.
        """
        if reason:
            self._withheld[cause] = reason
        else:
            self._withheld.pop(cause, None)
        self.withheld = "; ".join(self._withheld.values())
        self.board.withheld = bool(self.withheld)

    def _answer(self, request: FirmRequest, now_ms: int, venue: VenueDomain, started: float) -> bytes:
        now_s = now_ms // 1000
        user = parse_address(request.user_address, "userAddress")
        if user in self._blacklisted_users:
            return self._no_order(request, now_ms, started)
        market = self.markets.get((request.maker_asset, request.taker_asset)) or self.markets.get(
            (request.maker_asset.lower(), request.taker_asset.lower())
        )
        if market is None:
            raise self._no_market(request)
        taker = self.takers.get(request.taker_address.lower())
        if taker is None:
            raise self._no_taker(request)
        book = self._open_book(market.state, now_ms)
        gives_base = market.gives_base
        maker_amount, taker_amount = _amounts(request, book, gives_base=gives_base)
        ledger, holding, exposure = self.ledger, market.holding, market.state.exposure
        # Quotes are released by the time of the last block that was read: a later block may still fill one.
        chain_time_s = self.chain_time_s
        if not ledger.admits(user, now_s if chain_time_s is None else chain_time_s):
            self.blacklist.add(user, now_s + self._unused_blacklist_s)
            return self._no_order(request, now_ms, started)
        notional = taker_amount if gives_base else maker_amount
        # No await from `check` to `promise`: two quotes could else be checked against the same funds. The
        # reservation follows the signature, so that a refusal by the key's policy leaves nothing to release.
        ledger.check(holding, maker_amount, exposure, notional, venue, now_s)

        expiry_s = now_s + self._expiry_s
        if expiry_s != self._expiry[0]:
            self._expiry = expiry_s, expiry_s.to_bytes(32, "big")
        addresses128 = market.addresses128.get(taker) or self._address_words(market, taker)
        nonce_and_meta32 = firm_word(user, self._random96())
        order_hash = self._digest_of(
            nonce_and_meta32, self._expiry[1], addresses128, maker_amount, taker_amount
        )
        try:
            rs64, recovery_id = self._sign(order_hash, holding.token, maker_amount, expiry_s, now_s)
        except PolicyError as error:
            self.policy_refusal = error.detail
            raise FirmRefused("the signing key's policy forbids it", message="Notional limit") from None
        base_sold = maker_amount if gives_base else -taker_amount
        promise = ledger.promise(
            order_hash, user, holding, maker_amount, exposure, notional, base_sold, expiry_s, venue
        )
        self.signed += 1
        answer = encode_firm_quote(
            int.from_bytes(nonce_and_meta32, "big"),
            expiry_s,
            request.maker_asset,
            request.taker_asset,
            self._maker_text,
            request.taker_address,
            request.maker_amount or maker_amount,
            request.taker_amount or taker_amount,
            to_65(rs64, recovery_id),
        )
        # References alone: the operator's view of them is made when the operator asks. The ring keeps the
        # promises of its last quotes beyond their release from the ledger.
        self._note((promise, now_ms, started, perf_counter()))
        return answer[:-1] + self._tail if self._tail else answer

    def _address_words(self, market: PairDirection, taker: bytes) -> bytes:
        """Encode an order's four addresses (two tokens, maker, taker) as EIP-712 signs them, 128 bytes.

        The result is cached in `market.addresses128`.
        """
        words = address_words(market.holding.token, market.takes, self._maker, taker)
        market.addresses128[taker] = words
        return words

    def _no_order(self, request: FirmRequest, now_ms: int, started: float) -> bytes:
        self.blacklisted += 1
        self._note_refusal(request, RefusalReason.BLACKLISTED, now_ms, started)
        return self._blacklisted_body

    def _note_refusal(self, request: FirmRequest | None, reason: str, now_ms: int, started: float) -> None:
        """Append a request without a quote to the ring of recent ones.

        Args:
            request: None if the body was unreadable.
            started: `perf_counter()` at the begin of the answer.
        """
        market = None
        if request is not None:
            market = self.markets.get((request.maker_asset.lower(), request.taker_asset.lower()))
        pair_id = "" if market is None else market.state.pair_id
        self._note((refused_quote(request, pair_id, reason), now_ms, started, perf_counter()))

    def _open_book(self, state: PairState, now_ms: int) -> Book:
        book = state.book
        if self.halted:
            raise TradingStopped
        if book is None or state.halted or state.retired:
            raise FirmRefused(message="Pair not quoted", got=state.pair_id)
        if now_ms - state.updated_ms > self._price_life_ms:
            raise FirmRefused(message="Price is stale", got=state.pair_id)
        if self.withheld:
            raise ServiceUnavailable(self.withheld)
        return book

    def hold(self, until_s: int) -> None:
        """Sign no quote until `until_s`, Unix seconds: until then, quotes of a crashed run may be filled.

        The amounts of these quotes are unknown, so that no funds are reserved for them.
        """
        self._hold_until_s = until_s
        self.withhold("hold", "quotes of a run that ended badly may still be filled")

    def look(self, now_s: int) -> None:
        """Allow signing again if `now_s` (Unix seconds) has reached the time that `hold` set."""
        if self._hold_until_s and now_s >= self._hold_until_s:
            self._hold_until_s = 0
            self.withhold("hold", "")

    def _no_market(self, request: FirmRequest) -> Exception:
        """Create the error for a request that names an unknown token, or two tokens that are not a pair."""
        for field, text in (("makerAsset", request.maker_asset), ("takerAsset", request.taker_asset)):
            parse_address(text, field)
            if text.lower() not in self.tokens:
                return FirmRefused(message="Unknown token", field=field, got=text)
        return FirmRefused(
            message="Pair not quoted",
            expected="two tokens of one entry of GET /pairs",
            got=request.maker_asset,
        )

    def _no_taker(self, request: FirmRequest) -> Exception:
        parse_address(request.taker_address, "takerAddress")
        return FirmRefused(
            message="Taker not allowed",
            field="takerAddress",
            expected="a contract of the service that fills orders",
            got=request.taker_address,
        )


def _amounts(request: FirmRequest, book: Book, *, gives_base: bool) -> tuple[int, int]:
    """Compute a firm quote's (maker amount, taker amount), raw units.

    The request names one of the two amounts; the other follows from the prices of the pair's order book.
    """
    text = request.taker_amount
    if text and not request.maker_amount:  # an empty amount is absent: some languages have no other way
        given = parse_amount(text, "takerAmount")
        other = base_received(book.asks, given) if gives_base else quote_received(book.bids, given)
        if given and other:
            return other, given
        raise _no_amount("takerAmount", text, other)
    text = request.maker_amount
    if not text or request.taker_amount:
        raise InvalidInput(
            expected="exactly one of makerAmount and takerAmount", got="both" if text else "neither"
        )
    given = parse_amount(text, "makerAmount")
    other = quote_paid(book.asks, given) if gives_base else base_paid(book.bids, given)
    if given and other:
        return given, other
    raise _no_amount("makerAmount", text, other)


def _no_amount(field: str, text: str | None, other: int | None) -> FirmRefused:
    if other is None:
        return FirmRefused(message="Beyond depth", field=field, got=text)
    return FirmRefused(
        message="Amount out of range", field=field, expected="more: at least a unit of both tokens", got=text
    )

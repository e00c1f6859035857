"""Errors (spec 1.25): every row that concerns Delta orders, provoked over HTTP, word for word.

A venue with makers and a chain serves all cases. A refused case stores no row and writes no event.
"""

import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from queue import SimpleQueue
from typing import Any, TypeVar
from urllib.parse import urlencode

import msgspec
import outcome
import pytest
import trio
from msgspec.structs import replace

from cambist.codecs.contracts.calldata import transfer
from cambist.codecs.eip712_orders.delta import (
    ORDER_CANCELLATIONS,
    OrderCancellations,
    delta_domain_separator,
    order_type_of,
)
from cambist.codecs.http1 import Response
from cambist.config.sections.venue import RateTier
from cambist.config.settings import Settings
from cambist.crypto.addresses import to_checksum
from cambist.crypto.hexadecimal import parse_hex, to_hex
from cambist.crypto.secp256k1 import SigningKey
from cambist.crypto.signatures import to_compact64
from cambist.engine.chain.transact import transact
from cambist.engine.store.follower import latest
from support.delta.error_rows import SPEC_ROWS
from support.patience import PATIENCE_S
from support.venue.trading_requests import API_KEY, NATIVE, NOBODY, PARTNERS
from support.venue.venue_role import CHAIN_ID, KEYS, STRANGER, USER, RunningVenue, running_venue

QUOTE, PRICES = "/v2/quote", "/v2/delta/prices"
ORDERS, BUILD = "/v2/delta/orders", "/v2/delta/orders/build"
CANCEL, BUILD_CANCEL = "/v2/delta/orders/cancel", "/v2/delta/orders/build/cancellation"
POOR = KEYS[6]
HOUR_S = 3_600
_SUBMIT_COST = 5

Wire = dict[str, Any]
T = TypeVar("T")


def _scarce(settings: Settings) -> Settings:
    """Callers with a key have the price of one submission; WBTC is traded with permits only."""
    assert settings.venue
    tiers = dict(settings.venue.rate_tiers) | {"keyed": RateTier(per_s=0.001, burst=_SUBMIT_COST)}
    tokens = tuple(replace(token, permit_only=token.symbol == "WBTC") for token in settings.tokens)
    return replace(settings, venue=replace(settings.venue, rate_tiers=tiers), tokens=tokens)


class Ground:
    """The venue, and what cases are made of.

    Attributes:
        open, ended: ids of the user's orders: one that waits, one that was cancelled.
    """

    def __init__(self, venue: RunningVenue) -> None:
        self.venue = venue
        self.open = self.ended = ""

    async def prepare(self) -> None:
        """The user may trade; the stranger has approved the router; the poor one's balance has gone."""
        devnet = self.venue.devnet
        await devnet.allow(USER, "WETH", "delta")
        await devnet.allow(STRANGER, "WETH", "router")
        await devnet.allow(POOR, "WETH", "delta")
        had = await devnet.balance(POOR, "WETH")
        await transact(devnet.chain, POOR, devnet.at("WETH"), transfer(USER.address, had))
        self.open, self.ended = [await self._submitted() for _ in range(2)]
        answer = await self.post(CANCEL, await self.cancellation([self.ended]))
        assert answer.status == 200, answer.body
        with trio.fail_after(PATIENCE_S):
            record = await self.venue.get(f"{ORDERS}/{self.ended}")
            while record["status"] != "CANCELLED":
                await trio.sleep(0.01)  # as a client polls
                record = await self.venue.get(f"{ORDERS}/{self.ended}")

    async def _submitted(self) -> str:
        answer = await self.post(ORDERS, self.signed(await self.built()))
        assert answer.status == 200, answer.body
        order_id: str = msgspec.json.decode(answer.body)["id"]
        return order_id

    # --- Requests ---------------------------------------------------------------------------------------

    async def ask(self, path: str, *, key: str = "", **query: Any) -> Response:
        told = {name: value for name, value in query.items() if value is not None}
        headers = {"x-api-key": key} if key else {}
        return await self.venue.ask("GET", f"{path}?{urlencode(told)}" if told else path, b"", headers)

    async def post(self, path: str, body: Any, *, key: str = "") -> Response:
        told = {name: value for name, value in body.items() if value is not None}
        headers = {"content-type": "application/json"} | ({"x-api-key": key} if key else {})
        return await self.venue.ask("POST", path, msgspec.json.encode(told), headers)

    async def priced(self, path: str, **changed: Any) -> Response:
        """A quote of one WETH for USDC, changed."""
        return await self.ask(path, **self.venue.selling("WETH", 1, "USDC", mode="DELTA") | changed)

    async def route(self, *, buys: bool = False, src: str = "WETH") -> Wire:
        venue = self.venue
        asked = venue.buying("USDC", 2_500, src) if buys else venue.selling(src, 1, "USDC")
        route: Wire = (await venue.get(QUOTE, **asked, mode="DELTA"))["delta"]["route"]
        return route

    async def body(self, **changed: Any) -> Wire:
        """Of a build."""
        route = changed.pop("route", None) or await self.route(buys="totalDestAmount" in changed)
        deadline = now_s() + HOUR_S
        return {"route": route, "owner": to_checksum(USER.address), "deadline": deadline} | changed

    async def build(self, **changed: Any) -> Response:
        return await self.post(BUILD, await self.body(**changed))

    async def built(self, **changed: Any) -> Wire:
        """`toSign` of an order that may be built."""
        answer = await self.build(**changed)
        assert answer.status == 200, answer.body
        to_sign: Wire = msgspec.json.decode(answer.body)["toSign"]
        return to_sign

    def signed(
        self, to_sign: Wire, key: SigningKey = USER, domain: Wire | None = None, **changed: Any
    ) -> Wire:
        """A submission of what was built, with members of the struct changed before it is signed."""
        value = to_sign["value"] | changed
        order_type = order_type_of(value)
        digest_of = order_type.compiled.digest_for(_separator_of(to_sign["domain"] | (domain or {})))
        signature = to_hex(to_compact64(*key.sign(digest_of(order_type.from_wire(value)))))
        return {"chainId": CHAIN_ID, "order": value, "signature": signature, "partner": "anon"}

    async def submit(
        self, key: SigningKey = USER, built: Wire | None = None, domain: Wire | None = None, **changed: Any
    ) -> Response:
        """Submit what was built, with members of the struct changed before it is signed."""
        to_sign = await self.built(owner=to_checksum(key.address), **built or {})
        return await self.post(ORDERS, self.signed(to_sign, key, domain, **changed))

    async def submit_late(self, built: Wire) -> Response:
        """Submit a TWAP of three minutes whose slices do not fit by a second."""
        return await self.submit(built=built, deadline=now_s() + 179)

    async def cancellation(
        self,
        ids: list[str],
        key: SigningKey = USER,
        signed: list[str] | None = None,
        chain_id: int = CHAIN_ID,
    ) -> Wire:
        domain = (await self.built())["domain"] | {"chainId": chain_id}
        digest_of = ORDER_CANCELLATIONS.compiled.digest_for(_separator_of(domain))
        digest32 = digest_of(OrderCancellations(tuple(ids if signed is None else signed)))
        return {"orderIds": ids, "signature": to_hex(to_compact64(*key.sign(digest32)))}

    async def cancel(self, ids: list[str], **how: Any) -> Response:
        return await self.post(CANCEL, await self.cancellation(ids, **how))

    async def kept(self) -> tuple[Any, str]:
        """Orders of all owners as they are listed, and the last event."""
        owners = [to_hex(key.address) for key in (USER, STRANGER, POOR)]
        listed = [await self.venue.get(ORDERS, userAddress=owner) for owner in owners]
        return listed, await latest(self.venue.app.delta.store)


class Running:
    """A venue for callers outside trio: its tasks run while a caller waits for an answer."""

    def __init__(self) -> None:
        self._ticks: SimpleQueue[Callable[[], object]] = SimpleQueue()
        self._ended: outcome.Outcome[None] | None = None
        self._ground: Ground | None = None
        self._nursery: trio.Nursery
        self._token: trio.lowlevel.TrioToken

    def do(self, act: Callable[[Ground], Awaitable[T]]) -> T:
        """Run an action on the ground and return its result."""
        found: list[outcome.Outcome[T]] = []

        async def run(ground: Ground) -> None:
            found.append(await outcome.acapture(act, ground))

        assert self._ground is not None
        self._token.run_sync_soon(self._nursery.start_soon, run, self._ground)
        self._run_until(lambda: bool(found))
        return found[0].unwrap()

    @contextmanager
    def serving(self, folder: Path) -> Iterator["Running"]:
        """Run the venue from the time it takes orders; end in good order, or raise the cause."""
        trio.lowlevel.start_guest_run(
            self._serve, folder, run_sync_soon_threadsafe=self._ticks.put, done_callback=self._end
        )
        self._run_until(lambda: self._ground is not None)
        try:
            yield self
        finally:
            if self._ended is None:
                self._token.run_sync_soon(self._nursery.cancel_scope.cancel)
                self._run_until(lambda: self._ended is not None)
        assert self._ended is not None
        self._ended.unwrap()

    def _run_until(self, is_so: Callable[[], bool]) -> None:
        while not is_so():
            if self._ended is not None:
                self._ended.unwrap()
                raise RuntimeError("the venue has ended")
            self._ticks.get()()

    def _end(self, ended: "outcome.Outcome[None]") -> None:
        self._ended = ended

    async def _serve(self, folder: Path) -> None:
        environ = {"API_KEY": API_KEY}
        async with running_venue(folder, changed=_scarce, more=PARTNERS, environ=environ) as venue:
            ground = Ground(venue)
            await ground.prepare()
            async with trio.open_nursery() as nursery:
                self._nursery, self._token = nursery, trio.lowlevel.current_trio_token()
                nursery.start_soon(trio.sleep_forever)
                self._ground = ground


def _separator_of(domain: Wire) -> bytes:
    contract = parse_hex(domain["verifyingContract"], "contract")
    return delta_domain_separator(domain["name"], domain["version"], domain["chainId"], contract)


def now_s() -> int:
    """Unix seconds, as the venue has them."""
    return int(time.time())


NOBODYS_ID = "00000000-0000-4000-8000-000000000000"
ONE, USDC = 10**18, 10**6
SHAPE = {"errorType", "details", "description", "error", "requestId"}
TWAP = {"orderType": "TWAPOrder", "interval": 60, "numSlices": 3, "totalSrcAmount": str(3 * ONE)}
TWAP_BUY = {
    "orderType": "TWAPBuyOrder", "side": "BUY", "interval": 60, "numSlices": 3,
    "totalDestAmount": str(7_500 * USDC), "maxSrcAmount": str(4 * ONE),
}  # fmt: skip

# --- The cases --------------------------------------------------------------------------------------------

Provoke = Callable[[Ground], Awaitable[Response]]


class Case(msgspec.Struct, frozen=True):
    """Provoking act and the expected refusal.

    Attributes:
        row: the error's name in spec 1.25.
        message: of the row.
        tag: errorType.
    """

    row: str
    message: str
    tag: str
    how: str
    provoke: Provoke

    @property
    def name(self) -> str:
        return f"{self.row[:3]} {self.message}, {self.how}"


def rows(row: str, tag: str, message: str, **provoke: Provoke) -> list[Case]:
    return [Case(row, message, tag, how.replace("_", " "), act) for how, act in provoke.items()]


def quoted(**changed: Any) -> dict[str, Provoke]:
    """In both places where Delta prices are asked for."""
    return {
        "quote": lambda ground: ground.priced(QUOTE, **changed),
        "prices": lambda ground: ground.priced(PRICES, **changed),
    }


def built(**changed: Any) -> Provoke:
    return lambda ground: ground.build(**changed)


def submitted(built: Wire | None = None, **changed: Any) -> Provoke:
    return lambda ground: ground.submit(built=built, **changed)


def routed(change: Callable[[Wire], Any]) -> Provoke:
    async def provoke(ground: Ground) -> Response:
        return await ground.build(route=change(await ground.route()))

    return provoke


def _mutated(route: Wire) -> Wire:
    leg = route["destination"]
    more = str(int(leg["output"]["amount"]) + 1)
    return route | {"destination": leg | {"output": leg["output"] | {"amount": more}}}


def _numbers(route: Wire) -> Wire:
    leg = route["origin"]
    return route | {"origin": leg | {"input": leg["input"] | {"amount": int(leg["input"]["amount"])}}}


async def _tampered(ground: Ground) -> Response:
    body = ground.signed(await ground.built())
    order = body["order"]
    return await ground.post(
        ORDERS, body | {"order": order | {"destAmount": str(int(order["destAmount"]) - 1)}}
    )


async def _short(ground: Ground) -> Response:
    body = ground.signed(await ground.built())
    return await ground.post(ORDERS, body | {"signature": body["signature"][:-2]})


async def _elsewhere(ground: Ground) -> Response:
    return await ground.post(ORDERS, ground.signed(await ground.built()) | {"chainId": 5})


async def _unapproved(ground: Ground) -> Response:
    return await ground.submit(STRANGER)


async def _poor(ground: Ground) -> Response:
    return await ground.submit(POOR)


async def _of_another_key(ground: Ground) -> Response:
    return await ground.post(ORDERS, ground.signed(await ground.built(), STRANGER))


def too_often(ask: Provoke) -> Provoke:
    """Once more than the key may."""

    async def provoke(ground: Ground) -> Response:
        with trio.fail_after(PATIENCE_S):
            while (answer := await ask(ground)).status != 429:
                assert answer.status < 500, answer.body
        assert int(dict(answer.headers)[b"retry-after"]) >= 1
        return answer

    return provoke


_LOWER = NATIVE.lower()
_PAST = 1_700_000_000
_ID_101 = [str(number) for number in range(101)]

CASES: list[Case] = [
    *rows("400 No route (same-chain or crosschain)", "NoRoute", "No route", **quoted(srcDecimals=6)),
    *rows(
        "400 No route (same-chain or crosschain)",
        "NoRoute",
        "No route",
        beyond_all_depth=quoted(amount=10**30)["quote"],
        prices_beyond_all_depth=quoted(amount=10**30)["prices"],
        decimals_of_the_destination=quoted(destDecimals=18)["quote"],
    ),
    *rows(
        "400 No route (same-chain or crosschain)",
        "NoRoute",
        "No route (crosschain)",
        **quoted(destChainId=10),
    ),
    *rows("400 Token not supported", "TokenNotSupported", "Token not supported", **quoted(srcToken=NOBODY)),
    *rows(
        "400 Token not supported",
        "TokenNotSupported",
        "Token not supported",
        destination=quoted(destToken=NOBODY)["quote"],
        submit=submitted(srcToken=NOBODY),
        submit_destination=submitted(destToken=NOBODY),
    ),
    *(
        case
        for name in ("srcToken", "destToken")
        for spelling, text in (("zero", "0x0"), ("lowercase", _LOWER))
        for case in rows(
            "400 Invalid srcToken / Invalid destToken",
            "InvalidToken",
            f"Invalid {name}",
            **{f"{where}_{spelling}": act for where, act in quoted(**{name: text}).items()},
        )
    ),
    *rows(
        "422 Unsupported chain",
        "UnsupportedChain",
        "Unsupported chain",
        **quoted(chainId=5),
        submit=_elsewhere,
        balances=lambda ground: ground.ask(f"{ORDERS}/fillablebalance/5/{NOBODY}"),
        available=lambda ground: ground.ask(f"{ORDERS}/availablebalance/5/{NOBODY}"),
        agents=lambda ground: ground.ask("/v2/delta/agents/list/5"),
    ),
    *rows(
        "400 route validation failed",
        "RouteValidationFailed",
        "route validation failed",
        mutated=routed(_mutated),
        re_stringified=routed(lambda route: msgspec.json.encode(route).decode()),
        amounts_as_numbers=routed(_numbers),
    ),
    *rows(
        "400 missing deadline",
        "MissingDeadline",
        "missing deadline",
        build=built(deadline=None),
    ),
    *(
        case
        for twap, tag in ((TWAP, "InvalidTWAPParams"), (TWAP_BUY, "InvalidTWAPBuyParams"))
        for case in rows(
            "400 InvalidTWAPParams / InvalidTWAPBuyParams",
            tag,
            tag,
            **{
                f"without_{name}": built(**twap | {name: None})
                for name in ("interval", "numSlices", "totalSrcAmount", "totalDestAmount", "maxSrcAmount")
                if name in twap
            },
            interval_of_59=built(**twap | {"interval": 59}),
            one_slice=built(**twap | {"numSlices": 1}),
            submit_interval_of_59=submitted(twap, interval=59),
            submit_one_slice=submitted(twap, numSlices=1),
        )
    ),
    *rows(
        "400 InvalidTWAPSrcAmount / InvalidTWAPBuyDestAmount",
        "InvalidTWAPSrcAmount",
        "InvalidTWAPSrcAmount",
        slice_of_another_total=built(**TWAP | {"totalSrcAmount": str(3 * ONE + 3)}),
        below_by_one=built(**TWAP | {"totalSrcAmount": str(3 * ONE - 1)}),
    ),
    *rows(
        "400 InvalidTWAPSrcAmount / InvalidTWAPBuyDestAmount",
        "InvalidTWAPBuyDestAmount",
        "InvalidTWAPBuyDestAmount",
        slice_of_another_total=built(**TWAP_BUY | {"totalDestAmount": str(7_500 * USDC + 3)}),
        below_by_one=built(**TWAP_BUY | {"totalDestAmount": str(7_500 * USDC - 1)}),
    ),
    *rows(
        "400 InvalidExternalOrderParams",
        "InvalidExternalOrderParams",
        "InvalidExternalOrderParams",
        neither=built(orderType="ExternalOrder"),
        no_handler=built(orderType="ExternalOrder", data="0x"),
        no_data=built(orderType="ExternalOrder", handler=NOBODY),
    ),
    *rows(
        "400 InvalidProductiveOrderParams",
        "InvalidProductiveOrderParams",
        "InvalidProductiveOrderParams",
        no_strategy=built(orderType="ProductiveOrder"),
    ),
]


async def _build_without_permit(ground: Ground) -> Response:
    return await ground.build(route=await ground.route(src="WBTC"))


async def _submit_without_permit(ground: Ground) -> Response:
    return await ground.submit(srcToken=ground.venue.devnet.text("WBTC"))


async def _submit_expired(ground: Ground) -> Response:
    return await ground.submit(deadline=now_s())


async def _build_short(ground: Ground) -> Response:
    return await ground.build(**TWAP, deadline=now_s() + 179)


async def _cancel_settled(ground: Ground) -> Response:
    return await ground.cancel([ground.open, ground.ended])


async def _build_cancel_settled(ground: Ground) -> Response:
    return await ground.post(BUILD_CANCEL, {"orderIds": [ground.ended]})


CASES += [
    *rows(
        "400 Permit / Permit2 required (build)",
        "PermitRequired",
        "Permit / Permit2 required",
        build=_build_without_permit,
        submit=_submit_without_permit,
    ),
    *rows(
        "400 Invalid signature (submit)",
        "InvalidSignature",
        "Invalid signature",
        of_another_key=_of_another_key,
        changed_after_it_was_signed=_tampered,
        of_another_chain=lambda ground: ground.submit(domain={"chainId": 1}),
        of_another_contract=lambda ground: ground.submit(domain={"verifyingContract": NOBODY}),
        of_63_bytes=_short,
    ),
    *rows(
        "400 Order expired",
        "OrderExpired",
        "Order expired",
        build=built(deadline=_PAST),
        submit=_submit_expired,
        submit_long_past=submitted(deadline=_PAST),
    ),
    *rows(
        "400 InsufficientAllowance",
        "InsufficientAllowance",
        "InsufficientAllowance",
        router_approved=_unapproved,
    ),
    *rows("400 InsufficientBalance", "InsufficientBalance", "InsufficientBalance", moved_after_pricing=_poor),
    *rows(
        "400 deadline must allow enough time for all slices to execute",
        "TwapDeadlineTooShort",
        "deadline must allow enough time for all slices to execute",
        build=_build_short,
        submit=lambda ground: ground.submit_late(TWAP),
        submit_purchase=lambda ground: ground.submit_late(TWAP_BUY),
    ),
    *(
        case
        for twap, name in (
            (TWAP, "totalSrcAmount"),
            (TWAP_BUY, "totalDestAmount"),
            (TWAP_BUY, "maxSrcAmount"),
        )
        for case in rows(
            "400 totalSrcAmount must be >= numSlices (also totalDestAmount, maxSrcAmount)",
            "TwapTotalTooSmall",
            f"{name} must be >= numSlices",
            build=built(**twap | {name: "2"}),
            submit=submitted(twap, **{name: "2"}),
        )
    ),
    *rows(
        "400 Invalid signature (cancel)",
        "InvalidSignature",
        "Invalid signature",
        of_another_key=lambda ground: ground.cancel([ground.open], key=STRANGER),
        of_other_ids=lambda ground: ground.cancel([ground.open], signed=[ground.ended]),
        of_another_chain=lambda ground: ground.cancel([ground.open], chain_id=1),
        none=lambda ground: ground.post(CANCEL, {"orderIds": [ground.open], "signature": "0x"}),
    ),
    *rows(
        "400 Order already settled",
        "OrderAlreadySettled",
        "Order already settled",
        cancel=_cancel_settled,
        build_cancellation=_build_cancel_settled,
    ),
    *rows(
        "400 orderIds.length > 100",
        "TooManyOrderIds",
        "orderIds.length > 100",
        cancel=lambda ground: ground.cancel(_ID_101),
        build_cancellation=lambda ground: ground.post(BUILD_CANCEL, {"orderIds": _ID_101}),
    ),
    *rows(
        "422 Partner not allowed",
        "PartnerNotAllowed",
        "Partner not allowed",
        **quoted(partner="small", partnerFeeBps=16),
        build=built(partner="acme", partnerFeeBps=191),
        build_tier=built(partner="small", partnerFeeBps=16),
        build_surplus=built(partner="small", partnerTakesSurplus=True),
    ),
    *rows(
        "429",
        "RateLimited",
        "rate limit exceeded",
        quote=too_often(lambda ground: ground.ask(QUOTE, key=API_KEY)),
        prices=too_often(lambda ground: ground.ask(PRICES, key=API_KEY)),
        build=too_often(lambda ground: ground.post(BUILD, {}, key=API_KEY)),
        submit=too_often(lambda ground: ground.post(ORDERS, {}, key=API_KEY)),
        build_cancellation=too_often(lambda ground: ground.post(BUILD_CANCEL, {}, key=API_KEY)),
        cancel=too_often(lambda ground: ground.post(CANCEL, {}, key=API_KEY)),
        list=too_often(lambda ground: ground.ask(ORDERS, key=API_KEY)),
        by_id=too_often(lambda ground: ground.ask(f"{ORDERS}/{NOBODYS_ID}", key=API_KEY)),
        by_hash=too_often(lambda ground: ground.ask(f"{ORDERS}/hash/0x{'00' * 32}", key=API_KEY)),
    ),
]

OF_MARKET = {"400 missing slippage", "400 Invalid priceRoute / Stale priceRoute"}


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with Running().serving(tmp_path_factory.mktemp("matrix")) as running:
        yield running


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_it_is_refused_as_the_row_says_and_nothing_is_kept(running: Running, case: Case) -> None:
    before = running.do(Ground.kept)
    answer: Response = running.do(case.provoke)
    told: Mapping[str, str] = msgspec.json.decode(answer.body)
    assert (answer.status, told["errorType"]) == (int(case.row[:3]), case.tag), told
    assert told.keys() == SHAPE
    assert told["details"] == told["description"] == told["error"]
    assert told["details"] == case.message or told["details"].startswith(f"{case.message}: "), told
    headers = dict(answer.headers)
    assert told["requestId"] == headers[b"x-request-id"].decode() != ""
    assert headers[b"content-type"] == b"application/json"
    assert running.do(Ground.kept) == before


def test_what_the_cases_change_would_be_taken(running: Running) -> None:
    """Whatever is built and signed for a case is refused for what the case changes, and for nothing else."""

    async def taken(ground: Ground) -> list[Response]:
        return [
            await ground.priced(QUOTE),
            await ground.priced(PRICES),
            await ground.ask(ORDERS, userAddress=to_hex(USER.address)),
            *[await ground.submit(built=built) for built in ({}, TWAP, TWAP_BUY)],
            await ground.post(BUILD_CANCEL, {"orderIds": [ground.open]}),
        ]

    answers: list[Response] = running.do(taken)
    assert [(answer.status, answer.body) for answer in answers if answer.status != 200] == []


def test_every_row_of_the_table_is_provoked_but_those_of_market() -> None:
    provoked: dict[str, set[str]] = {}
    for case in CASES:
        provoked.setdefault(case.row, set()).add(case.message)
    assert provoked == {row: {*said} for row, said in SPEC_ROWS if row not in OF_MARKET}

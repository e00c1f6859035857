"""Errors (spec 1.25): every row that concerns Delta orders, provoked over HTTP, word for word.

A venue with makers and a chain serves all cases. A refused case stores no row and writes no event.
"""

from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any

import msgspec
import pytest
import trio

from cambist.codecs.http1 import Response
from cambist.crypto.hexadecimal import to_hex
from support.delta.delta_refusals import (
    BUILD,
    BUILD_CANCEL,
    CANCEL,
    ORDERS,
    POOR,
    PRICES,
    QUOTE,
    Ground,
    Running,
    Wire,
    now_s,
)
from support.delta.error_rows import SPEC_ROWS
from support.patience import PATIENCE_S
from support.venue.trading_requests import API_KEY, NATIVE, NOBODY
from support.venue.venue_role import STRANGER, USER

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

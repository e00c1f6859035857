"""Refusals of POST /v2/delta/orders/build: rows of spec 1.25, and a route that is not passed verbatim."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cambist.codecs.contracts.abi import address_word
from cambist.crypto.addresses import parse_address
from support.venue.quiet_venue import (
    A_PURCHASE,
    A_SALE,
    BUILD,
    CHAIN_ID,
    DELTA,
    NATIVE,
    ONE,
    OTHER,
    PARTNER,
    USER,
    WETH,
    ZERO,
    QuietVenue,
    a_quiet_venue,
    fault,
    fee_of,
    order,
    routed,
)

TWAP = {"orderType": "TWAPOrder", "interval": 60, "numSlices": 3, "totalSrcAmount": str(3 * ONE)}
TWAP_BUY = {
    "orderType": "TWAPBuyOrder",
    "interval": 60,
    "numSlices": 2,
    "totalDestAmount": str(2 * int(A_PURCHASE["amount"])),
    "maxSrcAmount": str(ONE),
}
EIP2612_BYTES, DAI_BYTES = 224, 256


@pytest.fixture
async def venue(tmp_path: Path) -> AsyncIterator[QuietVenue]:
    async with a_quiet_venue(tmp_path) as venue:
        yield venue


# --- The route, verbatim --------------------------------------------------------------------------------


def _numeric(route: dict[str, Any]) -> Any:
    return route | {"fees": route["fees"] | {"gas": route["fees"]["gas"] | {"amount": 1}}}


def _more(route: dict[str, Any]) -> Any:
    amount = str(int(route["destination"]["output"]["amount"]) - 1)
    leg = route["destination"]
    return route | {"destination": leg | {"output": leg["output"] | {"amount": amount}}}


CHANGES: dict[str, Callable[[dict[str, Any]], Any]] = {
    "mutated": _more,
    "a number for a string": _numeric,
    "re-stringified": lambda route: msgspec.json.encode(route).decode(),
    "a member more": lambda route: route | {"note": "mine"},
    "a member less": lambda route: {name: route[name] for name in route if name != "bridge"},
    "null": lambda _: None,
    "nothing in it": lambda _: {},
    "a list": lambda route: [route],
    "spaces in an amount": lambda route: route | {"bridge": " "},
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
async def test_a_route_that_is_not_passed_verbatim(
    venue: QuietVenue, change: Callable[[dict[str, Any]], Any]
) -> None:
    route = await routed(venue)
    reply = await venue.ask(
        "POST",
        BUILD,
        msgspec.json.encode({"route": change(route), "owner": OTHER, "deadline": 2**37}),
    )
    told = msgspec.json.decode(reply.body)
    assert (reply.status, told["errorType"]) == (400, "RouteValidationFailed")
    assert told["details"].startswith("route validation failed")
    await order(venue, route=route)  # as it came it is taken, several times


async def test_the_keys_of_a_route_may_stand_in_any_order(venue: QuietVenue) -> None:
    route = await routed(venue)
    await order(venue, route=dict(reversed(route.items())))


async def test_a_route_of_another_venue(venue: QuietVenue, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    async with a_quiet_venue(other) as there:
        route = await routed(there, amount="123456789012345678")
    assert (await fault(venue, route=route))[1] == "RouteValidationFailed"


async def test_a_route_of_a_process_on_the_same_store(tmp_path: Path) -> None:
    """The one before, too; where Delta is not served any more, that is what is said."""
    async with a_quiet_venue(tmp_path) as before:
        route = await routed(before)
        await before.app.issued.flush()
    async with a_quiet_venue(tmp_path) as after:
        await order(after, route=route)
    async with a_quiet_venue(tmp_path, environ={f"CAMBIST__CHAINS__{CHAIN_ID}__DELTA": "false"}) as after:
        assert (await fault(after, route=route))[:2] == (422, "UnsupportedChain")


async def test_a_route_lives_as_long_as_the_settings_say(tmp_path: Path) -> None:
    async with a_quiet_venue(tmp_path, environ={"CAMBIST__VENUE__ROUTE_LIFE_S": "30"}) as venue:
        route = await routed(venue)
        body = msgspec.json.encode({"route": route, "owner": OTHER, "deadline": 2**37})
        assert (await venue.ask("POST", BUILD, body)).status == 200
        reply = await venue.ask("POST", BUILD, body, later_ms=30_000 + 60_001)
        assert msgspec.json.decode(reply.body)["errorType"] == "RouteValidationFailed"


# --- Fields -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["owner", "route"])
async def test_a_required_field(venue: QuietVenue, name: str) -> None:
    body: dict[str, Any] = {"route": await routed(venue)} | {name: None}
    status, error_type, details = await fault(venue, **body)
    assert (status, error_type) == (400, "InvalidInput")
    assert name in details


@pytest.mark.parametrize("deadline", [None, "null"])
async def test_a_missing_deadline(venue: QuietVenue, deadline: str | None) -> None:
    body = {"route": await routed(venue), "owner": OTHER} | ({"deadline": None} if deadline else {})
    reply = await venue.ask("POST", BUILD, msgspec.json.encode(body))
    told = msgspec.json.decode(reply.body)
    assert (reply.status, told["errorType"]) == (400, "MissingDeadline")
    assert told["details"].startswith("missing deadline")


async def test_a_deadline_that_has_passed(venue: QuietVenue) -> None:
    for deadline in (0, venue.clock.now_ms() // 1_000):
        status, error_type, details = await fault(venue, route=await routed(venue), deadline=deadline)
        assert (status, error_type) == (400, "OrderExpired")
        assert details.startswith("Order expired")


@pytest.mark.parametrize(
    ("deadline", "hint"),
    [
        (253_402_300_800, ""),
        (1_900_000_000_000, ": this looks like milliseconds"),
        (1_900_000_000_000_000, ": this looks like microseconds"),
        (2**53 - 1, ""),
    ],
)
async def test_a_deadline_after_the_year_9999(venue: QuietVenue, deadline: int, hint: str) -> None:
    status, error_type, details = await fault(venue, route=await routed(venue), deadline=deadline)
    assert (status, error_type) == (400, "InvalidInput")
    expected = "expected Unix seconds, at most 253402300799"
    assert details == f"Invalid input: deadline: {expected}, got {deadline}{hint}"


async def test_the_last_deadline(venue: QuietVenue) -> None:
    value = await order(venue, route=await routed(venue), deadline=253_402_300_799)
    assert value["deadline"] == 253_402_300_799


@pytest.mark.parametrize("owner", [ZERO, NATIVE, NATIVE.lower()])
async def test_an_owner_that_is_nobody(venue: QuietVenue, owner: str) -> None:
    status, error_type, details = await fault(venue, route=await routed(venue), owner=owner)
    assert (status, error_type) == (400, "InvalidInput")
    assert details.startswith("Invalid input: owner: expected an account, neither zero nor the native")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("owner", "0x1"),
        ("beneficiary", "0x1"),
        ("partnerAddress", "0x1"),
        ("nonce", "-1"),
        ("nonce", str(2**256)),
        ("nonce", 1),
        ("permit", "0x00ff"),
        ("permit", "zz"),
        ("slippage", 10_001),
        ("limitAmount", "0"),
        ("limitAmount", "1.5"),
        ("metadata", "0xabc"),
        ("metadata", "0x" + "00" * (4_096 + 1)),
        ("partnerFeeBps", 201),
        ("orderType", "FillableOrder"),
        ("side", "HOLD"),
    ],
)
async def test_a_bad_field_is_named(venue: QuietVenue, name: str, value: Any) -> None:
    status, error_type, details = await fault(venue, route=await routed(venue), **{name: value})
    assert (status, error_type) == (400, "InvalidInput")
    assert name in details


@pytest.mark.parametrize(
    ("body", "fee"),
    [
        ({}, (ZERO, True, False, 1)),
        ({"partner": "nobody"}, (ZERO, True, False, 1)),
        ({"partner": "acme"}, (PARTNER.lower(), True, False, 10)),
        ({"partner": "acme", "partnerAddress": PARTNER.lower()}, (PARTNER.lower(), True, False, 10)),
        ({"partner": "acme", "partnerAddress": ZERO}, (PARTNER.lower(), True, False, 10)),
        ({"partner": "acme", "partnerFeeBps": 190}, (PARTNER.lower(), True, False, 200)),
        ({"partnerAddress": OTHER, "partnerFeeBps": 25}, (OTHER.lower(), True, False, 25)),
        ({"partner": "acme", "partnerTakesSurplus": True}, (PARTNER.lower(), True, True, 10)),
        (
            {"partner": "acme", "partnerTakesSurplus": True, "capSurplus": False},
            (PARTNER.lower(), False, True, 10),
        ),
    ],
)
async def test_partner_and_fee(
    venue: QuietVenue, body: dict[str, Any], fee: tuple[str, bool, bool, int]
) -> None:
    assert fee_of(await order(venue, route=await routed(venue), **body)) == fee


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (
            {"partner": "acme", "partnerAddress": OTHER},
            f"partnerAddress: expected none, or {PARTNER}, where partner 'acme' is paid, got '{OTHER}'",
        ),
        (
            {"partner": "nobody", "partnerAddress": PARTNER, "partnerFeeBps": 10},
            "partnerAddress: expected the address of no registered partner beside partner 'nobody'",
        ),
    ],
)
async def test_an_address_beside_a_partner_that_is_paid_elsewhere(
    venue: QuietVenue, body: dict[str, Any], said: str
) -> None:
    told = await fault(venue, route=await routed(venue), **body)
    assert told[:2] == (400, "InvalidInput")
    assert said in told[2]


@pytest.mark.parametrize(
    "body", [{"partner": "acme", "partnerFeeBps": 191}, {"partner": "small", "partnerFeeBps": 16}]
)
async def test_more_than_a_tier_permits(venue: QuietVenue, body: dict[str, Any]) -> None:
    status, error_type, _ = await fault(venue, route=await routed(venue), **body)
    assert (status, error_type) == (422, "PartnerNotAllowed")


async def test_the_partner_of_an_api_key_is_the_default(venue: QuietVenue) -> None:
    body = msgspec.json.encode({"route": await routed(venue), "owner": OTHER, "deadline": 2**37})
    reply = await venue.ask("POST", BUILD, body, {"X-API-KEY": "a-key-of-an-integrator"})
    assert fee_of(msgspec.json.decode(reply.body)["toSign"]["value"])[0] == PARTNER.lower()


# --- Permits ------------------------------------------------------------------------------------------------


def _permit(spender: str, size: int = EIP2612_BYTES) -> str:
    words = address_word(parse_address(OTHER, "owner")) + address_word(parse_address(spender, "spender"))
    return "0x" + (words + bytes(size - len(words))).hex()


@pytest.mark.parametrize("permit", ["0x", "0x00", "0x" + "11" * 96, "0x" + "11" * 192])
async def test_permits_that_name_no_spender(venue: QuietVenue, permit: str) -> None:
    assert (await order(venue, route=await routed(venue), permit=permit))["permit"] == permit


@pytest.mark.parametrize("size", [EIP2612_BYTES, DAI_BYTES])
async def test_a_permit_is_for_the_delta_contract(venue: QuietVenue, size: int) -> None:
    route = await routed(venue)
    assert (await order(venue, route=route, permit=_permit(DELTA, size)))["permit"] == _permit(DELTA, size)
    status, error_type, details = await fault(venue, route=route, permit=_permit(OTHER, size))
    assert (status, error_type) == (400, "InvalidInput")
    assert DELTA.lower() in details


@pytest.mark.parametrize("body", [{"limitAmount": "1"}, TWAP])
async def test_limit_orders_and_twaps_take_no_permit(venue: QuietVenue, body: dict[str, Any]) -> None:
    for permit in ("0x00", _permit(DELTA)):
        status, error_type, details = await fault(venue, route=await routed(venue), permit=permit, **body)
        assert (status, error_type) == (400, "InvalidInput")
        assert "permit" in details


async def test_the_native_token_takes_no_permit(venue: QuietVenue) -> None:
    route = await routed(venue, srcToken=NATIVE)
    assert (await fault(venue, route=route, permit="0x00"))[1] == "InvalidInput"
    await order(venue, route=route, permit="0x")


async def test_a_token_that_takes_permits_only(tmp_path: Path) -> None:
    async with a_quiet_venue(tmp_path, permit_only=WETH) as venue:
        for permit in (None, "0x"):
            status, error_type, details = await fault(venue, route=await routed(venue), permit=permit)
            assert (status, error_type) == (400, "PermitRequired")
            assert details.startswith("Permit / Permit2 required")
        await order(venue, route=await routed(venue), permit=_permit(DELTA))
        for body in ({"limitAmount": "1"}, TWAP):
            assert (await fault(venue, route=await routed(venue), **body))[1] == "PermitRequired"


# --- TWAP ---------------------------------------------------------------------------------------------------


async def test_a_sell_twap(venue: QuietVenue) -> None:
    route = await routed(venue)
    expected = int(route["destination"]["output"]["amount"])
    total = str(3 * ONE + 2)  # the last slice takes the remainder
    value = await order(venue, route=route, **TWAP | {"totalSrcAmount": total}, slippage=50)
    assert (value["interval"], value["numSlices"], value["totalSrcAmount"]) == (60, 3, total)
    assert value["destAmountPerSlice"] == str(expected * 9_950 // 10_000)
    value = await order(venue, route=route, **TWAP, limitAmount="5", side="SELL")
    assert value["destAmountPerSlice"] == "5"


async def test_a_buy_twap(venue: QuietVenue) -> None:
    value = await order(venue, route=await routed(venue, **A_PURCHASE), **TWAP_BUY, side="BUY")
    assert (value["totalDestAmount"], value["maxSrcAmount"]) == (TWAP_BUY["totalDestAmount"], str(ONE))


@pytest.mark.parametrize(
    "change", [{"interval": 59}, {"interval": None}, {"numSlices": 1}, {"numSlices": None}]
)
@pytest.mark.parametrize(
    ("body", "error_type"), [(TWAP, "InvalidTWAPParams"), (TWAP_BUY, "InvalidTWAPBuyParams")]
)
async def test_slices_and_interval(
    venue: QuietVenue, body: dict[str, Any], error_type: str, change: dict[str, Any]
) -> None:
    status, told, details = await fault(venue, route=await routed(venue), **body | change)
    assert (status, told) == (400, error_type)
    assert next(iter(change)) in details


@pytest.mark.parametrize("name", ["totalSrcAmount", "totalDestAmount", "maxSrcAmount"])
async def test_totals_that_are_missing_or_too_small(venue: QuietVenue, name: str) -> None:
    body = TWAP if name in TWAP else TWAP_BUY
    route = await routed(venue, **(A_SALE if body is TWAP else A_PURCHASE))
    missing = "InvalidTWAPParams" if body is TWAP else "InvalidTWAPBuyParams"
    assert (await fault(venue, route=route, **body | {name: None}))[1] == missing
    status, error_type, details = await fault(venue, route=route, **body | {name: "1"})
    assert (status, error_type) == (400, "TwapTotalTooSmall")
    assert details.startswith(f"{name} must be >= numSlices")


async def test_each_slice_of_a_purchase_may_spend_something(venue: QuietVenue) -> None:
    route = await routed(venue, **A_PURCHASE)
    total = 2 * int(A_PURCHASE["amount"])
    for more, least in ((0, 2), (1, 3)):
        body = TWAP_BUY | {"totalDestAmount": str(total + more)}
        await order(venue, route=route, **body | {"maxSrcAmount": str(least)})
    status, error_type, details = await fault(venue, route=route, **body | {"maxSrcAmount": "2"})
    assert (status, error_type) == (400, "InvalidTWAPBuyParams")
    assert details.startswith("InvalidTWAPBuyParams: maxSrcAmount: expected ")


async def test_a_slice_is_the_floor_of_the_total(venue: QuietVenue) -> None:
    sale, purchase = await routed(venue), await routed(venue, **A_PURCHASE)
    for total in (3 * ONE - 1, 3 * ONE + 3):
        told = await fault(venue, route=sale, **TWAP | {"totalSrcAmount": str(total)})
        assert told[:2] == (400, "InvalidTWAPSrcAmount")
    told = await fault(venue, route=purchase, **TWAP_BUY | {"totalDestAmount": "7"})
    assert told[:2] == (400, "InvalidTWAPBuyDestAmount")


async def test_a_twap_has_time_for_all_slices(venue: QuietVenue) -> None:
    route = await routed(venue)
    now_s = venue.clock.now_ms() // 1_000
    status, error_type, details = await fault(venue, route=route, **TWAP, deadline=now_s + 179)
    assert (status, error_type) == (400, "TwapDeadlineTooShort")
    assert details.startswith("deadline must allow enough time for all slices to execute")
    now_s = venue.clock.now_ms() // 1_000
    await order(venue, route=route, **TWAP, deadline=now_s + 182)


@pytest.mark.parametrize(
    ("body", "side"),
    [(TWAP, "BUY"), (TWAP_BUY, "SELL"), ({"orderType": "ProductiveOrder", "strategy": OTHER}, "BUY")],
)
async def test_the_kind_fixes_the_side(venue: QuietVenue, body: dict[str, Any], side: str) -> None:
    status, error_type, details = await fault(venue, route=await routed(venue), **body, side=side)
    assert (status, error_type) == (400, "InvalidInput")
    assert "side" in details


async def test_a_buy_twap_has_no_limit_but_its_maximum(venue: QuietVenue) -> None:
    told = await fault(venue, route=await routed(venue, **A_PURCHASE), **TWAP_BUY, limitAmount="5")
    assert told[:2] == (400, "InvalidInput")
    assert "limitAmount" in told[2]


# --- Kinds with a further contract --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "needs", "error_type"),
    [
        ("ExternalOrder", {"handler": OTHER, "data": "0x12"}, "InvalidExternalOrderParams"),
        ("ProductiveOrder", {"strategy": OTHER}, "InvalidProductiveOrderParams"),
    ],
)
async def test_kinds_with_a_further_contract_need_its_address(
    venue: QuietVenue, kind: str, needs: dict[str, Any], error_type: str
) -> None:
    route = await routed(venue)
    for name in needs:
        told = await fault(venue, route=route, orderType=kind, **needs | {name: None})
        assert told[:2] == (400, error_type)
        assert name in told[2]
        assert (await fault(venue, route=route, orderType=kind, **needs | {name: "x"}))[1] == "InvalidInput"


async def test_a_strategy_that_the_venue_does_not_serve(venue: QuietVenue) -> None:
    route = await routed(venue)
    told = await fault(venue, route=route, orderType="ProductiveOrder", strategy=OTHER)
    assert told[:2] == (400, "InvalidProductiveOrderParams")
    assert "a vault of GET /v2/delta/prices/strategies/{chainId}" in told[2]


@pytest.mark.parametrize("asked", [A_SALE, A_PURCHASE], ids=["SELL", "BUY"])
async def test_an_order_of_a_handler_is_an_order_for_its_owner(
    venue: QuietVenue, asked: dict[str, Any]
) -> None:
    route = await routed(venue, **asked)
    plain = await order(venue, route=route, nonce="7")
    kind = {"orderType": "ExternalOrder", "handler": OTHER, "data": "0x1234"}
    value = await order(venue, route=route, nonce="7", **kind)
    assert (value.pop("handler"), value.pop("data")) == (OTHER, "0x1234")
    assert {name: plain[name] for name in value} == value
    assert plain.keys() - value.keys() == {"beneficiary", "bridge"}


@pytest.mark.parametrize(
    ("changed", "error_type", "field"),
    [
        ({"beneficiary": OTHER}, "InvalidExternalOrderParams", "beneficiary"),
        ({"handler": ZERO}, "InvalidExternalOrderParams", "handler"),
        ({"data": "0x" + "00" * 16_385}, "InvalidInput", "data"),
    ],
)
async def test_parameters_that_no_order_of_a_handler_has(
    venue: QuietVenue, changed: dict[str, Any], error_type: str, field: str
) -> None:
    kind = {"orderType": "ExternalOrder", "handler": OTHER, "data": "0x"} | changed
    told = await fault(venue, route=await routed(venue), **kind)
    assert told[:2] == (400, error_type)
    assert f"{field}: expected" in told[2]
    good = {"beneficiary": USER, "handler": OTHER, "data": "0x"}
    await order(venue, route=await routed(venue), **kind | good)

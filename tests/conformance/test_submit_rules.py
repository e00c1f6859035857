"""Refusals of POST /v2/delta/orders without chain reads, and accepted orders."""

from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from cambist.codecs.eip712_orders.partner_and_fee import PartnerAndFee, pack_partner_and_fee
from cambist.codecs.messages.vocabulary import OrderStatus
from cambist.config import limits
from cambist.config.limits import JSON_INT_MAX, UINT256_MAX, UNIX_SECONDS_MAX, VENUE_ORDER_AGENTS_MAX
from cambist.crypto.addresses import to_checksum
from cambist.crypto.hexadecimal import parse_hex, to_hex
from cambist.engine.store.rows import DeltaOrderRow
from cambist.engine.trade.orders.order_units import step
from cambist.engine.trade.orders.step import OrderStep
from support.chain.world import HOUR_S, NATIVE, ONE, USDC
from support.contracts.rfq_stories import a_wallet_that_sells
from support.contracts.settling import Market
from support.delta.order_front import API_KEY, ORDERS, OrderFront, an_order_front, told, wire_of

pytestmark = pytest.mark.needs("pyrevm")

INVALID = 400, "InvalidInput"


@pytest.fixture
async def front(tmp_path: Path) -> AsyncIterator[OrderFront]:
    async with an_order_front(tmp_path) as front:
        yield front


def market_of(front: OrderFront) -> Market:
    return Market(front.world, b"")


# --- Kinds ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("more", "kind", "side"),
    [
        ({}, "Order", "SELL"),
        ({"partiallyFillable": True}, "FillableOrder", "SELL"),
        ({"partiallyFillable": True, "onChainOrderType": "FillableOrder"}, "FillableOrder", "SELL"),
        ({"partiallyFillable": True, "onChainOrderType": "Order"}, "FillableOrder", "SELL"),
        ({"onChainOrderType": "Order", "type": "LIMIT"}, "Order", "SELL"),
    ],
)
async def test_orders_of_each_kind(front: OrderFront, more: dict[str, Any], kind: str, side: str) -> None:
    record = await front.submitted(await front.a_sale(), **more)
    assert (record["onChainOrderType"], record["side"], record["status"]) == (kind, side, "PENDING")
    assert record["type"] == more.get("type", "MARKET")


@pytest.mark.parametrize("kind", ["TWAPOrder", "TWAPBuyOrder"])
async def test_twap_orders(front: OrderFront, kind: str) -> None:
    market = market_of(front)
    order = await (market.a_twap(interval=61) if kind == "TWAPOrder" else market.a_twap_purchase())
    record = await front.submitted(order, onChainOrderType=kind, type="LIMIT")
    assert (record["onChainOrderType"], record["type"]) == (kind, "LIMIT")
    assert record["side"] == ("SELL" if kind == "TWAPOrder" else "BUY")


HANDLER = b"\x77" * 20


async def test_an_order_of_a_handler_is_taken_as_one_of_its_owner(front: OrderFront) -> None:
    order = await market_of(front).an_external_order(handler=HANDLER)
    record = await front.submitted(order, onChainOrderType="ExternalOrder")
    assert (record["onChainOrderType"], record["side"]) == ("ExternalOrder", "SELL")
    assert record["beneficiary"] == record["owner"]
    assert record["order"]["handler"] == to_checksum(order.handler)


@pytest.mark.parametrize(
    ("changed", "error_type", "field"),
    [
        ({"handler": bytes(20)}, "InvalidExternalOrderParams", "order.handler"),
        ({"data": bytes(16_385)}, "InvalidInput", "order.data"),
        ({"kind": 2}, "InvalidInput", "order.kind"),
        ({"src_amount": 0}, "InvalidInput", "order.srcAmount"),
    ],
)
async def test_what_no_order_of_a_handler_has(
    front: OrderFront, changed: dict[str, Any], error_type: str, field: str
) -> None:
    changed = {"handler": HANDLER} | changed
    refusal = await front.fault(await market_of(front).an_external_order(**changed))
    assert refusal[:2] == (400, error_type)
    assert f"{field}: " in refusal[2]


async def test_a_vault_that_is_no_strategy_of_the_venue(front: OrderFront) -> None:
    refusal = await front.fault(await market_of(front).a_productive_order())
    assert refusal[:2] == (400, "InvalidProductiveOrderParams")
    assert "order.strategy: expected a vault of GET /v2/delta/prices/strategies/{chainId}" in refusal[2]


@pytest.mark.parametrize(
    ("more", "field"),
    [
        ({"onChainOrderType": "TWAPBuyOrder"}, "onChainOrderType"),
        ({"onChainOrderType": "Order"}, "onChainOrderType"),
        ({"partiallyFillable": True}, "partiallyFillable"),
    ],
)
async def test_what_contradicts_a_twap(front: OrderFront, more: dict[str, Any], field: str) -> None:
    refusal = await front.fault(await market_of(front).a_twap(), **more)
    assert refusal[:2] == INVALID
    assert refusal[2].startswith(f"Invalid input: {field}: ")


async def test_fillable_is_said_by_the_flag(front: OrderFront) -> None:
    refusal = await front.fault(await front.a_sale(), onChainOrderType="FillableOrder")
    assert refusal[2].startswith("Invalid input: onChainOrderType: expected Order")


# --- Members --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("member", "value", "field"),
    [
        ("chainId", "31337.0", "chainId"),
        ("chainId", None, "chainId: missing"),
        ("order", None, "order: missing"),
        ("order", [], "order: expected an object"),
        ("order", "{}", "order: expected an object"),
        ("order", {}, "order: expected the members of Order"),
        ("signature", None, "signature: missing"),
        ("signature", 5, "signature: expected a string"),
        ("partner", "x" * 129, "partner"),
        ("type", "limit", "type"),
        ("partiallyFillable", "true", "partiallyFillable: expected a boolean"),
        ("includeAgents", "one", "includeAgents: expected an array"),
        ("includeAgents", ["x"] * (VENUE_ORDER_AGENTS_MAX + 1), "includeAgents: expected at most 100 names"),
        ("excludeAgents", ["x"] * (VENUE_ORDER_AGENTS_MAX + 1), "excludeAgents: expected at most 100 names"),
        ("referrerAddress", "0x1234", "referrerAddress: expected an address"),
        ("note", "of another client's", ""),
    ],
)
async def test_members_of_the_body(front: OrderFront, member: str, value: Any, field: str) -> None:
    body = front.world.delta_body(await front.a_sale()) | {member: value}
    body = {name: kept for name, kept in body.items() if kept is not None}
    answer = await front.post(ORDERS, body)
    if not field:
        assert answer[0] == 200
    else:
        refusal = told(answer)
        assert refusal[:2] == INVALID
        assert refusal[2].startswith(f"Invalid input: {field}"), refusal


@pytest.mark.parametrize(
    ("member", "value"),
    [
        ("srcAmount", 1.5),
        ("srcAmount", "-1"),
        ("srcAmount", str(UINT256_MAX + 1)),
        ("deadline", "soon"),
        ("kind", 256),
        ("permit", "0x0"),
        ("permit", "0x" + "00" * 100),
        ("owner", "0x1234"),
        ("bridge", None),
        ("metadata", 7),
    ],
)
async def test_members_of_the_struct(front: OrderFront, member: str, value: Any) -> None:
    order = await front.a_sale()
    body = front.world.delta_body(order) | {"order": wire_of(order) | {member: value}}
    refusal = told(await front.post(ORDERS, body))
    assert refusal[:2] == INVALID
    assert refusal[2].startswith(f"Invalid input: order.{member}"), refusal


async def test_the_struct_may_be_written_as_other_libraries_write_it(front: OrderFront) -> None:
    """Members in another order, addresses with checksums, numbers as texts: the order is the same."""
    order = await front.a_sale()
    wire = wire_of(order)
    other = dict(reversed(wire.items())) | {
        name: to_checksum(getattr(order, name)) for name in ("owner", "beneficiary")
    }
    other |= {"srcToken": to_checksum(order.src_token), "deadline": str(order.deadline), "kind": "0"}
    status, record = await front.post(ORDERS, front.world.delta_body(order) | {"order": other})
    assert status == 200
    assert record["order"] == wire
    assert record["orderHash"] == to_hex(front.world.delta_hash(order))


# --- Amounts, tokens, fee -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"src_amount": 0}, "order.srcAmount: expected an amount above 0"),
        ({"kind": 1, "dest_amount": 0}, "order.destAmount: expected an amount above 0"),
        ({"kind": 2}, "order.kind: expected 0 (SELL) or 1 (BUY)"),
        ({"dest_amount": UINT256_MAX}, "order.destAmount: expected a product"),
        ({"kind": 1, "src_amount": UINT256_MAX}, "order.srcAmount: expected a product"),
        ({"expected_amount": UINT256_MAX}, "order.expectedAmount: expected a product"),
        ({"partner_and_fee": 201}, "order.partnerAndFee: expected partner << 96"),
        ({"partner_and_fee": 1 << 90}, "order.partnerAndFee: expected partner << 96"),
        ({"metadata": bytes(4_097)}, "order.metadata: expected at most 4096 bytes, got '4097 bytes'"),
        ({"deadline": JSON_INT_MAX + 1}, "order.deadline: expected Unix seconds, at most 253402300799, got "),
        (
            {"deadline": 1_900_000_000_000},
            "order.deadline: expected Unix seconds, at most 253402300799, got 1900000000000: this looks",
        ),
        ({"owner": bytes(20)}, "order.owner: expected an account, neither zero nor the native placeholder"),
        ({"owner": NATIVE}, "order.owner: expected an account, neither zero nor the native placeholder"),
    ],
)
async def test_amounts_fee_and_metadata(front: OrderFront, changed: dict[str, Any], field: str) -> None:
    refusal = await front.fault(await front.a_sale(**changed))
    assert refusal[:2] == INVALID
    assert refusal[2].startswith(f"Invalid input: {field}"), refusal


async def test_extremes_that_are_taken(front: OrderFront) -> None:
    """No minimum, no expectation, the largest fee, all of the metadata, a deadline far away."""
    world = front.world
    fee = pack_partner_and_fee(PartnerAndFee(world.partner.address, 200, True, False))
    order = await front.a_sale(
        dest_amount=0,
        expected_amount=0,
        partner_and_fee=fee,
        metadata=bytes(4_096),
        deadline=UNIX_SECONDS_MAX,
    )
    record = await front.submitted(order)
    assert record["output"]["minAmount"] == record["output"]["expectedAmount"] == "0"
    assert record["expiresAt"] == "9999-12-31T23:59:59.000Z"


async def test_tokens_that_are_not_listed(front: OrderFront) -> None:
    for end in ("src_token", "dest_token"):
        for token in (bytes(20), front.world.at.rfq):
            refusal = await front.fault(await front.a_sale(**{end: token}))
            assert refusal[:2] == (400, "TokenNotSupported")
            assert refusal[2].startswith(f"Token not supported: order.{end[:-6]}Token: ")


async def test_source_and_destination_are_two_tokens(front: OrderFront) -> None:
    weth = front.world.weth
    for src, dest in ((weth, weth), (NATIVE, weth), (weth, NATIVE)):
        refusal = await front.fault(await front.a_sale(src_token=src, dest_token=dest))
        assert refusal[2].startswith("Invalid input: order.destToken: expected another token than srcToken")


async def test_native_tokens_may_be_wanted(front: OrderFront) -> None:
    await front.world.give(front.world.user, front.world.usdc, 5_000 * USDC, front.world.at.delta)
    order = await front.a_sale(
        src_token=front.world.usdc, dest_token=NATIVE, src_amount=2_500 * USDC, dest_amount=ONE
    )
    record = await front.submitted(order)
    assert record["output"]["token"] == "0xEeeeeEeeeEeEeeEeEeEeeEEEeeeeEeeeeeeeEEeE"


# --- TWAP -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["TWAPOrder", "TWAPBuyOrder"])
@pytest.mark.parametrize(
    ("changed", "row", "message"),
    [
        ({"interval": 59}, "params", "order.interval: expected at least 60, got 59"),
        ({"num_slices": 1}, "params", "order.numSlices: expected at least 2, got 1"),
        ({"num_slices": 0}, "params", "order.numSlices: expected at least 2, got 0"),
        ({"interval": 1_200, "num_slices": 4}, "TwapDeadlineTooShort", "order.deadline: expected at least"),
        ({"deadline": 5}, "OrderExpired", "order.deadline: expected a time after"),
    ],
)
async def test_sizes_of_a_twap(
    front: OrderFront, kind: str, changed: dict[str, Any], row: str, message: str
) -> None:
    market = market_of(front)
    sells = kind == "TWAPOrder"
    order = await (market.a_twap(**changed) if sells else market.a_twap_purchase(**changed))
    status, error_type, details = await front.fault(order)
    expected = row if row != "params" else "InvalidTWAPParams" if sells else "InvalidTWAPBuyParams"
    assert (status, error_type) == (400, expected)
    assert message in details
    if expected == "TwapDeadlineTooShort":
        assert details.startswith("deadline must allow enough time for all slices to execute")


async def test_totals_of_a_twap(front: OrderFront) -> None:
    market = market_of(front)
    for order, member in (
        (await market.a_twap(total_src_amount=2), "totalSrcAmount"),
        (await market.a_twap_purchase(total_dest_amount=2), "totalDestAmount"),
        (await market.a_twap_purchase(max_src_amount=2), "maxSrcAmount"),
    ):
        refusal = await front.fault(order)
        assert refusal[:2] == (400, "TwapTotalTooSmall")
        assert refusal[2].startswith(f"{member} must be >= numSlices")


async def test_each_slice_of_a_purchase_may_spend_something(front: OrderFront) -> None:
    market = market_of(front)
    refusal = await front.fault(await market.a_twap_purchase(max_src_amount=3, total_dest_amount=10))
    assert refusal[:2] == (400, "InvalidTWAPBuyParams")
    assert refusal[2].startswith("InvalidTWAPBuyParams: order.maxSrcAmount: expected ")
    refusal = await front.fault(await market.a_twap_purchase(max_src_amount=4, total_dest_amount=10))
    assert refusal[:2] == (400, "GasCostExceedsTradeAmount"), "its slices are worth no gas"


async def test_products_of_a_twap_fit_the_contract(front: OrderFront) -> None:
    market = market_of(front)
    for order in (
        await market.a_twap(dest_amount_per_slice=UINT256_MAX // 1_000),
        await market.a_twap_purchase(max_src_amount=UINT256_MAX // 1_000),
    ):
        assert (await front.fault(order))[:2] == INVALID


async def test_a_twap_whose_slices_just_fit(front: OrderFront) -> None:
    market = market_of(front)
    now_s = await front.world.now_s()
    order = await market.a_twap(interval=600, num_slices=6, deadline=now_s + HOUR_S + 60)
    assert (await front.submitted(order))["status"] == "PENDING"


# --- Partner --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("partner", "fee_bps", "headers", "name"),
    [
        ("acme", 10, {}, "acme"),
        ("acme", 200, {}, "acme"),
        ("", 10, {}, "acme"),
        (None, 10, {}, "acme"),
        ("anon", 15, {}, "acme"),
        ("anon", 9, {}, "anon"),
        ("nobody", 0, {}, "nobody"),
        ("nobody", 9, {}, "nobody"),
        ("", 0, {}, "anon"),
        (None, 0, {}, "anon"),
        (None, 10, {"x-api-key": API_KEY}, "acme"),
        (None, 0, {"x-api-key": API_KEY}, "anon"),
        ("nobody", 0, {"x-api-key": API_KEY}, "nobody"),
    ],
)
async def test_partners(
    front: OrderFront, partner: str | None, fee_bps: int, headers: dict[str, str], name: str
) -> None:
    """choices.md#fees-and-partners: a name that is not registered is kept; the signed fee decides where none
    is sent."""
    order = await front.a_sale(partner_and_fee=paying(front, fee_bps))
    status, record = await front.post(ORDERS, front.world.delta_body(order, partner=partner), headers)
    assert (status, record["partner"]) == (200, name)
    assert (await front.get(f"{ORDERS}/{record['id']}"))["partner"] == name


@pytest.mark.parametrize(
    ("partner", "fee_bps", "whose"),
    [("acme", 0, "no registered partner"), ("acme", 9, "no registered partner"), ("nobody", 10, "'acme'")],
)
async def test_a_partner_that_the_signed_fee_contradicts(
    front: OrderFront, partner: str, fee_bps: int, whose: str
) -> None:
    order = await front.a_sale(partner_and_fee=paying(front, fee_bps))
    status, error_type, details = await front.fault(order, partner=partner)
    assert (status, error_type) == (400, "InvalidInput")
    assert f"partner: expected the partner of the signed fee, {whose}, got '{partner}'" in details


def paying(front: OrderFront, fee_bps: int) -> int:
    """Basis points to the address of acme, which has registered 10; 0 for one to the venue."""
    partner = front.world.partner.address if fee_bps else bytes(20)
    return pack_partner_and_fee(PartnerAndFee(partner, fee_bps or 1, False, True))


@pytest.mark.parametrize(("headers", "status"), [({}, 400), ({"x-api-key": API_KEY}, 200)])
async def test_a_partner_may_have_to_be_there(tmp_path: Path, headers: dict[str, str], status: int) -> None:
    async with an_order_front(tmp_path, strict_partner=True) as front:
        for partner in ("", None):
            body = front.world.delta_body(await front.a_sale(), partner=partner)
            if partner is None or not headers:
                assert (await front.post(ORDERS, body, headers))[0] == status
        assert (await front.submitted(await front.a_sale(), partner="nobody"))["partner"] == "nobody"


# --- How many -------------------------------------------------------------------------------------------


def _to(after: DeltaOrderRow, _: DeltaOrderRow) -> OrderStep[DeltaOrderRow]:
    return OrderStep(after)


async def test_orders_of_one_owner_share_one_balance(front: OrderFront) -> None:
    """Before, ten thousand orders on the same unit. Those that the balance covers are not counted."""
    world, most = front.world, limits.VENUE_LIVE_BEYOND_FUNDS_MAX
    has = await world.balance(world.weth, world.user)
    covered = [await front.a_sale(src_amount=has // (2 * most)) for _ in range(most)]
    for order in covered:
        await front.submitted(order)
    await front.submitted(await front.a_sale(src_amount=has // 4))
    refusal = await front.fault(await front.a_sale(src_amount=has // 2))
    assert refusal[:2] == (400, "TooManyOpenOrders")
    assert f"expected fewer than {most} orders that sell more of the token than its {has}" in refusal[2]
    await world.give(world.stranger, world.weth, ONE, world.at.delta)
    await front.submitted(await front.a_sale(owner=world.stranger.address), world.stranger)
    for order in covered[:2]:
        row = (await front.live.step_all([world.delta_hash(order)], lambda _: None))[0]
        ended = step(row, row.updated_ms, status=OrderStatus.EXPIRED, is_final=True)
        await front.live.step(row.order_hash, partial(_to, ended))
    await front.submitted(await front.a_sale(src_amount=has // 2))


async def test_orders_that_nobody_has_signed_take_nothing_of_their_owners_balance(front: OrderFront) -> None:
    """Anybody may submit them in a contract's name: a stranger must not keep the owner from trading."""
    world = front.world
    wallet = await a_wallet_that_sells(world)
    has = await world.balance(world.weth, wallet)
    for _ in range(limits.VENUE_LIVE_BEYOND_FUNDS_MAX):
        record = await front.submitted(await front.a_sale(owner=wallet, src_amount=has), signature=b"")
        assert record["status"] == "AWAITING_SIGNATURE"
    await front.submitted(await front.a_sale(owner=wallet, src_amount=has))


async def test_orders_have_a_bound_of_memory_in_which_their_data_count(
    front: OrderFront, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "VENUE_LIVE_BYTES_MAX", 2 * limits.VENUE_LIVE_ORDER_BYTES + 4_096)
    await front.submitted(await front.a_sale(metadata=bytes(4_096 - 64)))
    refusal = await front.fault(await front.a_sale(metadata=b"more"))
    assert refusal[:2] == (503, "ServiceUnavailable")
    monkeypatch.setattr(limits, "VENUE_LIVE_BYTES_MAX", 2 * limits.VENUE_LIVE_ORDER_BYTES + 8_192)
    await front.submitted(await front.a_sale(metadata=b"more"))


async def test_an_order_without_signature_gives_way_to_a_network_with_fewer_and_to_what_is_signed(
    front: OrderFront, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Anybody submits orders in a contract's name: those of one network keep no other network's order out."""
    monkeypatch.setattr(limits, "VENUE_UNBACKED_ORDERS_MAX", 3)
    world = front.world
    wallet = await a_wallet_that_sells(world)

    async def unsigned(address: str, src_amount: int) -> tuple[int, Any]:
        front.address = address
        order = await front.a_sale(owner=wallet, src_amount=src_amount)
        return await front.submit(order, signature=b"")

    async def status_of(record: Any) -> str:
        return str((await front.get(f"{ORDERS}/{record['id']}"))["status"])

    hostile = [(await unsigned(f"203.0.113.{number}", ONE - number))[1] for number in (1, 2, 3)]
    status, refusal = await unsigned("203.0.113.4", ONE - 4)
    assert (status, refusal["errorType"]) == (503, "ServiceUnavailable")
    assert "3 orders wait for signatures or funds" in refusal["details"]
    status, honest = await unsigned("198.51.100.1", ONE)
    assert status == 200
    assert (await unsigned("203.0.113.5", ONE - 5))[0] == 503
    assert [await status_of(record) for record in (*hostile, honest)] == [
        "EXPIRED",
        *["AWAITING_SIGNATURE"] * 3,
    ]
    monkeypatch.setattr(limits, "VENUE_LIVE_BYTES_MAX", front.live.bytes + 3 * 65)
    for number in range(3):
        await front.submitted(await front.a_sale(src_amount=ONE - number))
    refusal = await front.fault(await front.a_sale())
    assert refusal[:2] == (503, "ServiceUnavailable"), "what is signed gives way to nothing"
    assert [await status_of(record) for record in (*hostile, honest)] == ["EXPIRED"] * 4


async def test_an_account_has_a_bounded_number_of_orders(
    front: OrderFront, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "VENUE_LIVE_ORDERS_PER_OWNER_MAX", 2)
    world = front.world
    await world.give(world.stranger, world.weth, ONE, world.at.delta)
    orders = [await front.a_sale() for _ in range(3)]
    first = await front.submitted(orders[0])
    await front.submitted(orders[1])
    refusal = await front.fault(orders[2])
    assert refusal[:2] == (400, "TooManyOpenOrders")
    assert refusal[2].startswith("Too many open orders: order.owner: expected fewer than 2 orders")
    assert await front.submitted(orders[0]) == first
    await front.submitted(await front.a_sale(owner=world.stranger.address), world.stranger)
    row = (await front.live.step_all([parse_hex(first["orderHash"], "hash")], lambda _: None))[0]
    ended = step(row, row.updated_ms, status=OrderStatus.EXPIRED, is_final=True)
    await front.live.step(row.order_hash, lambda _: OrderStep(ended))
    await front.submitted(orders[2])


# --- Where ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("chain_id", "said"), [(1, "expected a chain"), (100, "Delta is not served on chain 100")]
)
async def test_chains_without_delta(front: OrderFront, chain_id: int, said: str) -> None:
    refusal = await front.fault(await front.a_sale(), chainId=chain_id)
    assert refusal[:2] == (422, "UnsupportedChain")
    assert refusal[2].startswith(f"Unsupported chain: chainId: {said}")


async def test_a_slash_at_the_end(front: OrderFront) -> None:
    order = await front.a_sale()
    status, record = await front.post(f"{ORDERS}/", front.world.delta_body(order))
    assert status == 200
    for path in (f"{ORDERS}/{record['id']}/", f"{ORDERS}/hash/{record['orderHash']}/"):
        assert await front.get(path) == record
    assert (await front.get(f"{ORDERS}/", userAddress=record["owner"]))["total"] == 1


async def test_what_came_with_an_order_is_kept(front: OrderFront) -> None:
    order = await front.a_sale()
    referrer = b"\x77" * 20
    more: dict[str, Any] = {
        "referrerAddress": to_hex(referrer),
        "includeAgents": ["one", "two"],
        "excludeAgents": ["three"],
    }
    record = await front.submitted(order, **more, partiallyFillable=True)
    live = front.live.get(front.world.delta_hash(order))
    assert live is not None
    document = live.document
    assert document.signature == front.world.delta_signed(order)
    assert (document.referrer, document.partially_fillable) == (referrer, True)
    assert [name for name in ("one", "two", "three", "four") if document.admits(name)] == ["one", "two"]
    assert (await front.get(f"{ORDERS}/{record['id']}"))["order"] == wire_of(order)

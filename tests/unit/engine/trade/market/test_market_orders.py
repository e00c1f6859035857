"""POST /transactions with `orders`: arguments for the Router, every rule, every refusal."""

import json
from typing import Any

import pytest
import trio.testing
from msgspec import structs

from cambist.codecs.contracts.abi import address_word, uint_word
from cambist.codecs.contracts.router_calldata import PAYS_DIRECTLY, RouterSwap
from cambist.codecs.contracts.router_decoding import decode_swap
from cambist.codecs.eip712_orders.nonce_and_meta import pack_firm, pack_otc
from cambist.codecs.eip712_orders.partner_and_fee import PartnerAndFee, unpack_partner_and_fee
from cambist.codecs.eip712_orders.rfq import RfqOrder
from cambist.codecs.messages.market_messages import ContractParams, TransactionEnvelope
from cambist.config.errors import (
    InsufficientAllowance,
    InsufficientBalance,
    InvalidInput,
    InvalidSignature,
    InvalidToken,
    NoRoute,
    OrderClosed,
    OrderExpired,
    PartnerNotAllowed,
    RateLimited,
    RequestError,
    Reverted,
    ServiceUnavailable,
    SimulationFailed,
    TokenNotSupported,
    UnsupportedChain,
)
from cambist.config.limits import NATIVE_PLACEHOLDER, UINT256_MAX, VENUE_SWAP_ORDERS_MAX
from cambist.config.sections.venue import Rate
from cambist.crypto.addresses import to_checksum
from cambist.crypto.hexadecimal import parse_hex, to_hex
from cambist.engine.host.admission.buckets import Buckets
from cambist.engine.host.admission.ledger import Ledger
from cambist.engine.host.admission.signatures import SignatureBudget, SignatureUnits
from support.counted_signatures import counted_recoveries
from support.otc.swap_orders import MAKER, OTHER, an_order, hash_of, sent
from support.venue.admitting import signatures
from support.venue.market_place import (
    CHAIN_ID,
    DAI,
    EXECUTOR,
    KEYED,
    NOW_MS,
    ONE,
    PARTNER,
    RECEIVER,
    RFQ,
    ROUTER,
    STRANGER,
    USDC,
    USER,
    WETH,
    Shop,
    a_shop,
)

NOW_S = NOW_MS // 1_000
GROSS = 2_500 * 10**6
NET = GROSS - GROSS // 10_000
COST = ONE + ONE // 10_000


def sale(*orders: dict[str, Any], **changed: Any) -> dict[str, Any]:
    """Body of a sale of one WETH for USDC."""
    body = {
        "orders": list(orders) or [sent(an_order())],
        "srcToken": "WETH",
        "destToken": "USDC",
        "userAddress": to_checksum(USER),
        "srcAmount": str(ONE),
        "slippage": 100,
        **changed,
    }
    return {name: value for name, value in body.items() if value is not None}


def purchase(*orders: dict[str, Any], **changed: Any) -> dict[str, Any]:
    """Body of a purchase of 2,500 USDC for WETH."""
    return sale(*orders, **{"srcAmount": None, "destAmount": str(GROSS), **changed})


async def built(shop: Shop, body: dict[str, Any], query: str = "", partner: str = "") -> Any:
    raw = json.dumps(body).encode()
    return await shop.desk.transaction(CHAIN_ID, query.encode(), raw, NOW_MS, KEYED, signatures(), partner)


async def told(
    body: dict[str, Any], shop: Shop | None = None, query: str = "", partner: str = ""
) -> RouterSwap:
    """Build a swap and return the arguments for the Router."""
    envelope = await built(shop or a_shop(), body, query, partner)
    assert isinstance(envelope, TransactionEnvelope)
    side, swap = decode_swap(parse_hex(envelope.data, "data"))
    assert (side == "BUY") is bool(swap.hops[0].maker_amount)
    return swap


async def refused(
    kind: type[RequestError], match: str, body: dict[str, Any], shop: Shop | None = None
) -> None:
    with pytest.raises(kind, match=match) as caught:
        await built(shop or a_shop(), body)
    assert type(caught.value) is kind


def tried(swap: RouterSwap) -> list[tuple[RfqOrder, int]]:
    (hop,) = swap.hops
    return [(info.order, info.taker_fill_amount) for info in hop.orders]


# --- Arguments for the Router -------------------------------------------------------------------------


async def test_an_order_becomes_an_envelope() -> None:
    shop, order = a_shop(), an_order(expiry=NOW_S + 60)
    envelope = await built(shop, sale(sent(order)))
    assert envelope == TransactionEnvelope(
        from_address=to_checksum(USER),
        to=to_checksum(ROUTER),
        value="0",
        data=envelope.data,
        gas_price="1100000000",
        gas="240002",
        chain_id=CHAIN_ID,
    )
    _, swap = decode_swap(parse_hex(envelope.data, "data"))
    assert (swap.src_token, swap.dest_token) == (WETH, USDC)
    assert (swap.src_amount, swap.dest_amount, swap.expected_amount) == (ONE, NET * 99 // 100, NET)
    assert (swap.deadline, swap.receiver, swap.permit) == (NOW_S + 60, bytes(20), b"")
    (hop,) = swap.hops
    assert (hop.taker_amount, hop.maker_amount) == (0, 0)
    (info,) = hop.orders
    assert (info.order, info.taker_fill_amount) == (order, ONE)
    assert (info.permit_taker_asset, info.permit_maker_asset) == (b"", b"")


async def test_orders_are_handed_on_in_turn_with_their_most() -> None:
    orders = [an_order(), an_order(maker_amount=GROSS - 1), an_order()]
    items = [
        sent(orders[0], takerTokenFillAmount=str(ONE // 4)),
        sent(orders[1], takerTokenFillAmount=str(ONE // 2)),
        sent(orders[2]),
    ]
    swap = await told(sale(*items))
    assert tried(swap) == [(orders[0], ONE // 4), (orders[1], ONE // 2), (orders[2], ONE)]
    brought = GROSS // 4 + (GROSS - 1) // 2 + GROSS // 4
    assert swap.expected_amount == brought - brought // 10_000


async def test_the_most_of_an_order_may_be_all_of_it() -> None:
    order = an_order()
    assert tried(await told(sale(sent(order, takerTokenFillAmount=str(ONE))))) == [(order, ONE)]


async def test_a_purchase_buys_what_is_missing_and_rounds_up() -> None:
    first = an_order(maker_amount=10**6, taker_amount=7)
    second = an_order(maker_amount=3 * 10**6, taker_amount=10)
    items = [sent(first, takerTokenFillAmount="3"), sent(second)]
    bought = 3 * 10**6 // 7 + 10**6
    swap = await told(purchase(*items, destAmount=str(bought)))
    cost = 3 + 4
    assert (swap.dest_amount, swap.hops[0].maker_amount, swap.hops[0].taker_amount) == (bought, bought, 0)
    assert (swap.expected_amount, swap.src_amount) == (cost, cost * 101 // 100)


SIDES = [
    ("a source alone", {"srcAmount": str(ONE)}, "SELL"),
    ("a destination alone", {"srcAmount": None, "destAmount": str(GROSS)}, "BUY"),
    ("both", {"srcAmount": str(ONE), "destAmount": "5", "slippage": None}, "SELL"),
    ("both, to buy", {"srcAmount": str(2 * ONE), "destAmount": str(GROSS), "side": "buy"}, "BUY"),
    ("said again", {"srcAmount": str(ONE), "side": "SELL"}, "SELL"),
]


@pytest.mark.parametrize(("amounts", "side"), [row[1:] for row in SIDES], ids=[row[0] for row in SIDES])
async def test_amounts_and_side_say_which_is_fixed(amounts: dict[str, Any], side: str) -> None:
    swap = await told(sale(**amounts))
    if side == "SELL":
        assert (swap.src_amount, swap.hops[0].maker_amount) == (ONE, 0)
        assert swap.dest_amount == (5 if "destAmount" in amounts else NET * 99 // 100)
    else:
        assert (swap.dest_amount, swap.hops[0].maker_amount) == (GROSS, GROSS)
        assert swap.src_amount == (2 * ONE if amounts["srcAmount"] else COST * 101 // 100)


async def test_native_ends_stand_for_the_wrapped_ones() -> None:
    envelope = await built(a_shop(), sale(srcToken="ETH"))
    assert envelope.value == str(ONE)
    assert decode_swap(parse_hex(envelope.data, "data"))[1].src_token == parse_hex(NATIVE_PLACEHOLDER, "")
    order = an_order(maker_asset=WETH, taker_asset=USDC, maker_amount=ONE, taker_amount=GROSS)
    body = sale(sent(order), srcToken="USDC", destToken=NATIVE_PLACEHOLDER, srcAmount=str(GROSS))
    swap = await told(body)
    assert (swap.src_token, swap.dest_token) == (USDC, parse_hex(NATIVE_PLACEHOLDER, ""))


async def test_the_signed_price_is_the_bound_without_a_slippage() -> None:
    assert (await told(sale(slippage=None))).dest_amount == NET
    assert (await told(purchase(slippage=None))).src_amount == COST
    worse = sent(an_order(maker_amount=GROSS * 99 // 100, nonce_and_meta=8))
    swap = await told(sale(sent(an_order()), worse, slippage=None))
    assert (swap.dest_amount, len(swap.hops[0].orders)) == (NET, 2)


async def test_without_a_deadline_it_ends_with_the_first_order_to_expire() -> None:
    items = [sent(an_order(expiry=NOW_S + 90)), sent(an_order()), sent(an_order(expiry=NOW_S + 70))]
    assert (await told(sale(*items))).deadline == NOW_S + 70
    assert (await told(sale())).deadline == UINT256_MAX
    assert (await told(sale(*items, deadline=NOW_S + 5))).deadline == NOW_S + 5


async def test_the_rest_of_a_request_is_as_with_a_route() -> None:
    body = sale(
        receiver=to_checksum(RECEIVER), permit="0x01", takeSurplus=True, isDirectFeeTransfer=True,
        partner="wallet", partnerFeeBps="25",
    )  # fmt: skip
    shop = a_shop()
    shop.chain.at_permit2 = ONE
    swap = await told(body, shop)
    assert (swap.receiver, swap.permit) == (RECEIVER, b"\1")
    assert bool(swap.partner_and_fee & PAYS_DIRECTLY)
    terms = unpack_partner_and_fee(swap.partner_and_fee & ~PAYS_DIRECTLY)
    assert terms == PartnerAndFee(PARTNER, 75, True, True)
    assert swap.expected_amount == GROSS - GROSS * 75 // 10_000
    params = await built(a_shop(), sale(), "onlyParams=true")
    assert isinstance(params, ContractParams)
    assert (params.method, params.contract) == ("swapExactIn", to_checksum(ROUTER))
    priced = await built(a_shop(), sale(), "eip1559=true&gasPrice=7&ignoreGasEstimate=true")
    assert (priced.max_fee_per_gas, priced.gas) == ("7", priced.gas_price)


@pytest.mark.parametrize(("sent_as", "bps"), [(None, 50), ("small", 10), ("nobody", 1)])
async def test_the_partner_is_the_callers_unless_another_is_named(sent_as: str | None, bps: int) -> None:
    swap = await told(sale(partner=sent_as), partner="wallet")
    assert unpack_partner_and_fee(swap.partner_and_fee).fee_bps == bps


# --- Takers of an order -------------------------------------------------------------------------------


async def test_the_executor_takes_what_was_made_out_to_it_for_the_user() -> None:
    order = an_order(taker=EXECUTOR, nonce_and_meta=pack_firm(USER, 7))
    assert tried(await told(sale(sent(order)))) == [(order, ONE)]
    await refused(
        InvalidInput,
        rf"orders\[0\].nonceAndMeta: expected userAddress {to_checksum(STRANGER)} in its lower 160 bits"
        ", got .*is for another user",
        sale(sent(order), userAddress=to_checksum(STRANGER)),
    )


@pytest.mark.parametrize("taker", [USER, STRANGER, ROUTER, RFQ])
async def test_an_order_for_one_taker_is_filled_at_the_contract(taker: bytes) -> None:
    items = [sent(an_order()), sent(an_order(taker=taker, nonce_and_meta=pack_otc(MAKER.address, 3)))]
    await refused(
        InvalidInput,
        rf"orders\[1\].taker: expected zero, or the Router's executor {to_checksum(EXECUTOR)}, got .*"
        f"filled by that account itself, at the RFQ contract {to_checksum(RFQ)}",
        sale(*items),
    )


# --- Orders that do not fit ---------------------------------------------------------------------------


def one(**changed: Any) -> dict[str, Any]:
    return {"orders": [sent(an_order()) | changed]}


SAME = sent(an_order())
RULES: list[tuple[str, type[RequestError], str, dict[str, Any]]] = [
    ("a route too", InvalidInput, "orders: the body has a priceRoute already", {"priceRoute": {}}),
    ("neither", InvalidInput, "priceRoute: missing, and the body has no orders", {"orders": None}),
    ("no order at all", InvalidInput, r"orders: expected an array of length >= 1", {"orders": []}),
    ("too many", InvalidInput, r"orders: expected an array of length <= 16",
     {"orders": [SAME] * (VENUE_SWAP_ORDERS_MAX + 1)}),
    ("one twice", InvalidInput, r"orders\[1\]: the order stands twice in the list",
     {"orders": [SAME, dict(SAME)]}),
    ("no object", InvalidInput, r"orders\[0\]: expected an object", {"orders": ["x"]}),
    ("a member missing", InvalidInput, r"orders\[0\].maker: missing",
     {"orders": [{name: value for name, value in SAME.items() if name != "maker"}]}),
    ("a nonce of no digits", InvalidInput, r"orders\[0\].nonceAndMeta", one(nonceAndMeta="0x1")),
    ("an expiry as text", InvalidInput, r"orders\[0\].expiry", one(expiry="0x1")),
    ("no address", InvalidInput, r"orders\[0\].maker: ", one(maker="me")),
    ("nothing given", InvalidInput, r"orders\[0\].makerAmount: expected an amount", one(makerAmount="0")),
    ("nothing taken", InvalidInput, r"orders\[0\].takerAmount: expected an amount", one(takerAmount="0")),
    ("too large for the contract", InvalidInput, r"orders\[0\]: the RFQ contract cannot multiply",
     one(makerAmount=str(UINT256_MAX // (ONE + 1) + 1))),
    ("as large as the contract can multiply, and not signed", InvalidSignature, r"orders\[0\]",
     one(makerAmount=str(UINT256_MAX // (ONE + 1)))),
    ("another source", InvalidInput,
     rf"orders\[0\].takerAsset: expected {to_checksum(WETH)}, as srcToken says",
     one(takerAsset=to_checksum(DAI))),
    ("another destination", InvalidInput, r"orders\[0\].makerAsset: expected .*as destToken says",
     one(makerAsset=to_checksum(DAI))),
    ("the pair turned round", InvalidInput, r"orders\[0\].takerAsset",
     {"srcToken": "USDC", "destToken": "WETH"}),
    ("more than the order", InvalidInput,
     rf"orders\[0\].takerTokenFillAmount: expected at most its takerAmount, {ONE}, got {ONE + 1}",
     one(takerTokenFillAmount=str(ONE + 1))),
    ("none of the order", InvalidInput, r"orders\[0\].takerTokenFillAmount", one(takerTokenFillAmount="0")),
    ("no signature", InvalidSignature, r"orders\[0\].signature: expected 0x and", one(signature="sure")),
    ("a signature too long", InvalidSignature, r"orders\[0\].signature: expected at most 4096 bytes",
     one(signature="0x" + "00" * 4_097)),
    ("a permit of no length", InvalidInput, r"orders\[0\].permitMakerAsset", one(permitMakerAsset="0x0102")),
    ("a permit the contract ignores", InvalidInput, r"orders\[0\].permitMakerAsset: expected 0, 224 or 256",
     one(permitMakerAsset="0x01")),
    ("a permit of another's", InvalidInput, r"orders\[0\].permitMakerAsset: expected the maker",
     one(permitMakerAsset="0x" + "00" * 224)),
    ("a side that is none", InvalidInput, "side: expected one of", {"side": "BOTH"}),
    ("no amount", InvalidInput, "srcAmount: missing", {"srcAmount": None}),
    ("no amount to buy", InvalidInput, "destAmount: missing", {"side": "BUY"}),
    ("an amount of none", InvalidInput, "srcAmount: expected an amount above zero", {"srcAmount": "0"}),
    ("a bound out of reach", InvalidInput, f"destAmount: expected at most the proceeds, {NET}",
     {"destAmount": str(NET + 1)}),
    ("that to buy", InvalidInput, f"srcAmount: expected at least the cost, {COST}",
     {"side": "BUY", "destAmount": str(GROSS), "srcAmount": str(COST - 1)}),
    ("more than there is", InvalidInput,
     f"orders: expected orders that take srcAmount, {ONE + 1}, together, got {ONE}",
     {"srcAmount": str(ONE + 1)}),
    ("more to buy", InvalidInput, f"orders: expected orders that give destAmount, {GROSS + 1}, together",
     {"srcAmount": None, "destAmount": str(GROSS + 1)}),
    ("a token for itself", NoRoute, "another token than srcToken", {"destToken": "ETH"}),
    ("a token that is not listed", TokenNotSupported, "srcToken", {"srcToken": to_checksum(STRANGER)}),
    ("a native token misspelt", InvalidToken, "Invalid srcToken", {"srcToken": NATIVE_PLACEHOLDER.lower()}),
    ("other decimals", NoRoute, "srcDecimals: expected 18", {"srcDecimals": 6}),
    ("the zero user", InvalidInput, "userAddress: expected an account", {"userAddress": "0x" + "0" * 40}),
    ("a receiver of ours", InvalidInput, "receiver: expected an account",
     {"receiver": to_checksum(EXECUTOR)}),
    ("a deadline gone", OrderExpired, "^Order expired: deadline: expected a time", {"deadline": NOW_S}),
    ("a fee above its tier", PartnerNotAllowed, "at most 25", {"partner": "small", "partnerFeeBps": "16"}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "match", "changed"), [row[1:] for row in RULES], ids=[row[0] for row in RULES]
)
async def test_what_does_not_fit_is_refused_by_name(
    kind: type[RequestError], match: str, changed: dict[str, Any]
) -> None:
    shop = a_shop()
    await refused(kind, match, sale(**changed), shop)
    assert not shop.chain.calls


async def test_null_counts_as_absent() -> None:
    assert (await told(sale() | {"priceRoute": None, "side": None})).src_amount == ONE


@pytest.mark.parametrize("missing", ["executor", "rfq"])
async def test_a_chain_without_rfq_takes_no_orders(missing: str) -> None:
    shop = a_shop()
    place = structs.replace(shop.place, **{missing: b""})
    desk = type(shop.desk)({CHAIN_ID: place}, shop.seal, {}, {}, ledger=Ledger(), user_places=1)
    with pytest.raises(UnsupportedChain, match="a chain with `rfq`"):
        await desk.transaction(CHAIN_ID, b"", json.dumps(sale()).encode(), NOW_MS, KEYED, signatures())


# --- Answers of the chain -----------------------------------------------------------------------------


async def test_what_was_filled_or_cancelled_is_left_out_where_the_others_do() -> None:
    shop, orders = a_shop(), [an_order(), an_order(maker_amount=GROSS - 7), an_order(expiry=NOW_S - 1)]
    shop.chain.left[hash_of(orders[0])] = 1
    swap = await told(sale(*map(sent, orders)), shop)
    assert tried(swap) == [(orders[1], ONE)]
    assert swap.expected_amount == GROSS - 7 - (GROSS - 7) // 10_000
    assert swap.deadline == UINT256_MAX


async def test_what_is_left_of_an_order_bounds_it() -> None:
    shop, order, beside = a_shop(), an_order(), an_order(maker_amount=GROSS - 10**6)
    shop.chain.left[hash_of(order)] = GROSS // 4 + 1
    swap = await told(sale(sent(order), sent(beside)), shop)
    brought = GROSS // 4 + (GROSS - 10**6) * 3 // 4
    assert swap.expected_amount == brought - brought // 10_000
    short = f"orders: expected orders that take srcAmount, {ONE}, together, got {ONE // 4}"
    await refused(InvalidInput, short, sale(sent(order)), shop)


FAULTS: list[tuple[str, type[RequestError], str]] = [
    (
        "closed",
        OrderClosed,
        r"^Order closed on the chain: orders\[0\] is filled or cancelled; what is left",
    ),
    ("expired", OrderExpired, rf"^Order expired: orders\[0\].expiry: expected 0, or {NOW_S} at least"),
    (
        "poor",
        InsufficientBalance,
        rf"orders\[0\]: its maker {to_checksum(MAKER.address)} has 5 of makerAsset",
    ),
    (
        "not allowed",
        InsufficientAllowance,
        r"orders\[0\]: its maker .* lets the RFQ contract take 6, 2500000000",
    ),
]


@pytest.mark.parametrize(("fault", "kind", "match"), FAULTS)
async def test_why_orders_do_not_suffice_is_told_of_each(
    fault: str, kind: type[RequestError], match: str
) -> None:
    shop = a_shop()
    first = an_order(expiry=NOW_S - 1) if fault == "expired" else an_order()
    half = an_order(maker=OTHER.address, taker_amount=ONE // 2)
    if fault == "closed":
        shop.chain.left[hash_of(first)] = 1
    funds = {"poor": (5, 10**30), "not allowed": (10**30, 6)}
    if fault in funds:
        shop.chain.funds[MAKER.address] = funds[fault]
    await refused(
        kind, f"{match}.*of all takes {ONE // 2} of srcAmount, {ONE}", sale(sent(first), sent(half)), shop
    )
    body = sale(sent(first), sent(half), sent(an_order(maker=OTHER.address)))
    assert (await told(body, shop)).expected_amount > 0


async def test_an_order_is_good_up_to_the_second_of_its_expiry() -> None:
    assert (await told(sale(sent(an_order(expiry=NOW_S))))).deadline == NOW_S


async def test_a_makers_orders_share_its_funds() -> None:
    """The second order could be filled alone; after the first it is passed over, as on the chain."""
    shop = a_shop()
    shop.chain.funds[MAKER.address] = (GROSS, 10**30)
    orders = [an_order(taker_amount=ONE // 2), an_order(taker_amount=ONE // 2)]
    await refused(InsufficientBalance, r"orders\[1\]: .* has 0 of", sale(*map(sent, orders)), shop)
    third = an_order(maker=OTHER.address, maker_amount=GROSS * 2)
    swap = await told(sale(*map(sent, [*orders, third])), shop)
    assert [order for order, _ in tried(swap)] == [*orders, third]
    assert swap.expected_amount == 2 * GROSS - 2 * GROSS // 10_000


async def test_only_the_part_that_is_filled_has_to_be_funded() -> None:
    shop = a_shop()
    shop.chain.funds[MAKER.address] = (GROSS // 2, GROSS // 2)
    swap = await told(sale(srcAmount=str(ONE // 2)), shop)
    assert swap.expected_amount == GROSS // 2 - GROSS // 2 // 10_000


async def test_a_signature_that_is_not_the_makers_is_refused_whatever_the_others_do() -> None:
    order = an_order()
    await refused(
        InvalidSignature,
        rf"^Invalid signature: orders\[1\].signature: {to_checksum(OTHER.address)} signed this, .*contract",
        sale(sent(an_order()), sent(order, OTHER)),
    )


async def test_signatures_are_paid_before_they_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    shop, recovered = a_shop(), counted_recoveries(monkeypatch)
    units = SignatureUnits(Buckets(Rate(per_s=1, burst=16)))

    async def asked(*orders: dict[str, Any]) -> Any:
        raw, budget = json.dumps(sale(*orders)).encode(), SignatureBudget(units, "a", NOW_MS)
        return await shop.desk.transaction(CHAIN_ID, b"", raw, NOW_MS, KEYED, budget)

    wrong = [sent(an_order(nonce_and_meta=number), OTHER) for number in range(15)]
    with pytest.raises(InvalidInput, match=r"orders\[15\]"):
        await asked(*wrong, sent(an_order(taker_amount=0)))
    assert not recovered, "all orders are held against the rules before a signature is looked at"
    with pytest.raises(InvalidSignature):
        await asked(*wrong)
    assert (len(recovered), units.spent) == (15, 15)
    await asked(sent(an_order()))
    questions = len(shop.chain.asked)
    with pytest.raises(RateLimited, match="too many wrong signatures: retry in 1 s"):
        await asked(sent(an_order()), wrong[0])
    assert (len(recovered), len(shop.chain.asked)) == (16, questions)


@pytest.mark.parametrize("query", ["gasPrice=x", "gasPrice=x&ignoreChecks=true"])
async def test_a_refusal_before_a_contract_is_asked_costs_no_unit(query: str) -> None:
    shop, contract = a_shop(), b"\x1c" * 20
    shop.chain.signed[contract] = b"\x12" * 65
    units = SignatureUnits(Buckets(Rate(per_s=1, burst=16)))
    raw = json.dumps(sale(sent(an_order(maker=contract), signature="0x" + "12" * 65))).encode()
    with pytest.raises(InvalidInput, match="gasPrice"):
        await shop.desk.transaction(
            CHAIN_ID, query.encode(), raw, NOW_MS, KEYED, SignatureBudget(units, "a", NOW_MS)
        )
    assert units.spent == 0


@pytest.mark.parametrize(("is_contracts", "spent"), [(False, 0), (True, 1)])
async def test_orders_that_do_not_suffice_cost_the_unit_of_a_signature_that_a_contract_confirmed(
    *, is_contracts: bool, spent: int
) -> None:
    shop, contract = a_shop(), b"\x1c" * 20
    shop.chain.signed[contract] = b"\x12" * 65
    units = SignatureUnits(Buckets(Rate(per_s=1, burst=16)))
    item = sent(an_order(taker_amount=ONE // 2))
    if is_contracts:
        item = sent(an_order(maker=contract, taker_amount=ONE // 2), signature="0x" + "12" * 65)
    raw = json.dumps(sale(item)).encode()
    with pytest.raises(InvalidInput, match="together"), SignatureBudget(units, "a", NOW_MS) as budget:
        await shop.desk.transaction(CHAIN_ID, b"", raw, NOW_MS, KEYED, budget)
    assert units.spent == spent


async def test_a_contract_signs_by_its_word() -> None:
    shop, contract = a_shop(), b"\x1c" * 20
    item = sent(an_order(maker=contract), signature="0x1234")
    await refused(InvalidSignature, r"orders\[0\].signature: a key's has 64 or 65 bytes", sale(item), shop)
    shop.chain.signed[contract] = b"\x12\x34"
    assert (await told(sale(item), shop)).hops[0].orders[0].signature == b"\x12\x34"
    asked = next(call for call in shop.chain.asked if call.to == contract)
    assert (asked.sender, asked.gas_max) == (RFQ, 1_000_000)


async def test_once_a_part_was_filled_no_signature_is_asked_for() -> None:
    shop, order = a_shop(), an_order()
    shop.chain.left[hash_of(order)] = GROSS // 2 + 1
    assert await told(sale(sent(order, OTHER), srcAmount=str(ONE // 2)), shop)


# --- Permits of makers --------------------------------------------------------------------------------


def a_permit(amount: int, owner: bytes = MAKER.address) -> str:
    return to_hex(address_word(owner) + address_word(RFQ) + uint_word(amount) + bytes(4 * 32))


async def test_a_makers_permit_is_handed_on_where_it_is_needed() -> None:
    shop, permit = a_shop(), a_permit(GROSS)
    shop.chain.permits[MAKER.address] = b""
    body = sale(sent(an_order(), permitMakerAsset=permit))
    assert (await told(body, shop)).hops[0].orders[0].permit_maker_asset == b""
    shop.chain.funds[MAKER.address] = (10**30, GROSS - 1)
    assert (await told(body, shop)).hops[0].orders[0].permit_maker_asset == parse_hex(permit, "")
    low = sale(sent(an_order(), permitMakerAsset=a_permit(GROSS // 2)))
    await refused(InsufficientAllowance, r"orders\[0\]", low, shop)


@pytest.mark.parametrize("answer", [Reverted("no permits here", b""), None])
async def test_a_permit_that_the_token_refuses_grants_nothing(answer: Exception | None) -> None:
    shop = a_shop()
    shop.chain.funds[MAKER.address] = (10**30, 0)
    if answer is not None:
        shop.chain.permits[MAKER.address] = answer
    await refused(
        InsufficientAllowance, "take 0", sale(sent(an_order(), permitMakerAsset=a_permit(GROSS))), shop
    )


async def test_a_second_permit_of_a_maker_does_not_count() -> None:
    """Both were signed with the nonce that the token has now: the first to be shown uses it up."""
    shop = a_shop()
    shop.chain.permits[MAKER.address] = b""
    shop.chain.funds[MAKER.address] = (10**30, 0)
    items = [sent(an_order(taker_amount=ONE // 2), permitMakerAsset=a_permit(GROSS)) for _ in range(2)]
    await refused(InsufficientAllowance, r"orders\[1\]: .* take 0,", sale(*items), shop)


# --- Checks -------------------------------------------------------------------------------------------


async def test_without_checks_nothing_is_asked_of_the_chain() -> None:
    shop, order = a_shop(), an_order(expiry=NOW_S - 1)
    shop.chain.left[hash_of(order)], shop.chain.tokens = 1, 0
    permit = a_permit(1)
    swap = await told(sale(sent(order, OTHER, permitMakerAsset=permit)), shop, "ignoreChecks=true")
    assert tried(swap) == [(order, ONE)]
    assert swap.hops[0].orders[0].permit_maker_asset == parse_hex(permit, "")
    assert swap.expected_amount == NET
    assert not shop.chain.asked
    assert not shop.chain.calls
    with pytest.raises(InvalidInput, match="orders that take"):
        await built(shop, sale(srcAmount=str(2 * ONE)), "ignoreChecks=true")


async def test_what_the_user_has_and_allows_is_looked_at() -> None:
    shop = a_shop()
    shop.chain.funds[USER] = (ONE - 1, 10**30)
    await refused(InsufficientBalance, "userAddress: expected at least", sale(), shop)
    shop.chain.funds[USER] = (ONE, ONE - 1)
    await refused(InsufficientAllowance, "for the Market router", sale(), shop)
    shop.chain.at_permit2 = ONE
    assert await told(sale(permit="0x01"), shop)


async def test_the_swap_is_tried() -> None:
    shop = a_shop()
    shop.chain.outcome = Reverted("INSUFFICIENT_OUTPUT", b"")
    await refused(SimulationFailed, "INSUFFICIENT_OUTPUT", sale(), shop)


async def test_all_that_is_asked_of_orders_is_asked_at_one_block() -> None:
    shop = a_shop()
    orders = [an_order(), an_order(), an_order(maker=OTHER.address)]
    await told(sale(*map(sent, orders)), shop)
    of_user = 2
    assert len(shop.chain.asked) == len(orders) + 2 * len({order.maker for order in orders}) + of_user


async def test_a_chain_that_does_not_answer_is_no_fault_of_the_caller(
    autojump_clock: trio.testing.MockClock,
) -> None:
    shop = a_shop()
    shop.chain.is_stuck = True
    await refused(ServiceUnavailable, "does not answer", sale(), shop)
    shop.chain.is_stuck, shop.chain.is_silent = False, True
    await refused(ServiceUnavailable, "does not tell the remaining", sale(), shop)

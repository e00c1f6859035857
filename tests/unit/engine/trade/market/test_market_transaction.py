"""POST /transactions/{chainId} and GET /swap: every field, every rule, every refusal."""

from typing import Any

import pytest
from msgspec import UNSET, structs

from cambist.codecs.contracts.abi import address_word, uint_word
from cambist.codecs.contracts.calldata import OrderInfo
from cambist.codecs.contracts.router_calldata import (
    PAYS_DIRECTLY,
    Hop,
    RouterSwap,
    swap_exact_in,
    swap_exact_out,
)
from cambist.codecs.eip712_orders.partner_and_fee import PartnerAndFee, unpack_partner_and_fee
from cambist.codecs.eip712_orders.rfq import RfqOrder
from cambist.codecs.messages.market_messages import (
    ContractParams,
    TransactionEnvelope,
)
from cambist.config.errors import (
    InsufficientAllowance,
    InsufficientBalance,
    InvalidInput,
    InvalidPriceRoute,
    InvalidToken,
    MissingSlippage,
    NodeUnavailable,
    NoRoute,
    OrderExpired,
    PartnerNotAllowed,
    RequestError,
    Reverted,
    ServiceUnavailable,
    SimulationFailed,
    StalePriceRoute,
    UnsupportedChain,
)
from cambist.config.limits import NATIVE_PLACEHOLDER
from cambist.config.timeouts import SIMULATION_S
from cambist.crypto.addresses import to_checksum
from cambist.crypto.hexadecimal import parse_hex, to_hex
from cambist.engine.host.admission.ledger import Ledger
from support.venue.market_place import (
    CHAIN_ID,
    DELTA,
    EXECUTOR,
    NOW_MS,
    ONE,
    ORIGIN,
    PARTNER,
    RECEIVER,
    RFQ,
    ROUTER,
    STRANGER,
    USDC,
    USER,
    VAULT,
    WETH,
    Shop,
    a_shop,
)

NOW_S = NOW_MS // 1_000
SELL = f"srcToken=WETH&destToken=USDC&amount={ONE}&network={CHAIN_ID}&version=6.2"
BUY = f"srcToken=WETH&destToken=USDC&amount={2_500 * 10**6}&side=BUY&network={CHAIN_ID}&version=6.2"
GROSS = 2_500 * 10**6 * 6 // 10 + 2_500 * 10**6 * 4 // 10 * 999 // 1_000
NET = GROSS - GROSS // 10_000
SPENT = 6 * ONE // 10 - (-4 * ONE // 10 * 1_000 // 999)
COST = SPENT + SPENT // 10_000


def sale(**changed: Any) -> dict[str, Any]:
    return {"srcAmount": str(ONE), "slippage": 100, **changed}


def purchase(**changed: Any) -> dict[str, Any]:
    return {"destAmount": str(2_500 * 10**6), "slippage": 100, **changed}


async def envelope(shop: Shop, asked: str, body: dict[str, Any], query: str = "") -> TransactionEnvelope:
    built = await shop.build(shop.prices(asked), body, query)
    assert isinstance(built, TransactionEnvelope)
    return built


async def told(shop: Shop, asked: str, body: dict[str, Any]) -> RouterSwap:
    """Build a swap and return the Router's arguments; assert that onlyParams gives the same."""
    data = parse_hex((await envelope(shop, asked, body)).data, "data")
    route = shop.prices(asked)
    params = await shop.build(route, body, "onlyParams=true")
    assert isinstance(params, ContractParams)
    swap = _swap(params.params[0])
    assert params.contract == to_checksum(shop.place.router)
    assert params.method == route.contract_method
    encode = swap_exact_in if route.side == "SELL" else swap_exact_out
    assert len(data) == len(encode(swap))
    assert data[: 4 + 11 * 32] == encode(swap)[: 4 + 11 * 32]  # nonces of the orders are others
    return swap


def _swap(params: list[Any]) -> RouterSwap:
    hops = tuple(
        Hop(
            taker_amount=int(taker),
            maker_amount=int(maker),
            orders=tuple(
                OrderInfo(RfqOrder(*map(_read, order)), _read(signature), int(most))
                for order, signature, most, _, _ in infos
            ),
        )
        for taker, maker, infos in params[-1]
    )
    return RouterSwap(*map(_read, params[:-1]), hops)  # type: ignore[call-arg]


def _read(text: str) -> Any:
    return parse_hex(text, "member") if text.startswith("0x") else int(text)


async def refused(
    kind: type[RequestError],
    match: str,
    body: dict[str, Any],
    *,
    shop: Shop | None = None,
    asked: str = SELL,
    query: str = "",
) -> RequestError:
    shop = shop or a_shop()
    route = shop.prices(asked)
    with pytest.raises(kind, match=match) as caught:
        await shop.build(route, body, query)
    return caught.value


# --- The envelope -------------------------------------------------------------------------------------


async def test_a_sale_becomes_an_envelope() -> None:
    shop = a_shop()
    built = await envelope(shop, SELL, sale())
    assert built == TransactionEnvelope(
        from_address=to_checksum(USER),
        to=to_checksum(ROUTER),
        value="0",
        data=built.data,
        gas_price="1100000000",
        gas="240002",  # 200001 and a fifth, rounded up
        chain_id=CHAIN_ID,
    )
    swap = await told(shop, SELL, sale())
    assert structs.replace(swap, hops=()) == RouterSwap(
        src_token=WETH,
        dest_token=USDC,
        src_amount=ONE,
        dest_amount=NET * 99 // 100,
        expected_amount=NET,
        receiver=bytes(20),
        deadline=NOW_S + 120,
        partner_and_fee=1 | 1 << 9,
        permit=b"",
        hops=(),
    )
    ((first, second),) = [hop.orders for hop in swap.hops]
    assert (first.order.taker_amount, second.order.taker_amount) == (6 * ONE // 10, 4 * ONE // 10)
    assert first.taker_fill_amount == first.order.taker_amount
    assert swap.hops[0].taker_amount == swap.hops[0].maker_amount == 0


async def test_a_purchase_becomes_an_envelope() -> None:
    swap = await told(a_shop(), BUY, purchase())
    assert (swap.src_amount, swap.dest_amount) == (COST * 101 // 100, 2_500 * 10**6)
    assert swap.expected_amount == COST
    assert swap.hops[0].maker_amount == 2_500 * 10**6


async def test_native_tokens_come_with_the_transaction() -> None:
    asked = SELL.replace("srcToken=WETH", f"srcToken={NATIVE_PLACEHOLDER}")
    assert (await envelope(a_shop(), asked, sale())).value == str(ONE)
    buying = BUY.replace("srcToken=WETH", "srcToken=ETH")
    assert (await envelope(a_shop(), buying, purchase())).value == str(COST * 101 // 100)
    assert (await told(a_shop(), asked, sale())).src_token == parse_hex(NATIVE_PLACEHOLDER, "")


async def test_gas_is_left_out_with_either_flag() -> None:
    shop = a_shop()
    assert (await envelope(shop, SELL, sale(), "ignoreGasEstimate=true")).gas is UNSET
    assert [name for name, _ in shop.chain.calls] == ["call"]
    assert (await envelope(shop, SELL, sale(), "ignoreChecks=true")).gas is UNSET
    assert len(shop.chain.calls) == 1
    assert (await envelope(shop, SELL, sale(), "ignoreChecks=false&ignoreGasEstimate=false")).gas == "240002"
    (_, call) = shop.chain.calls[-1]
    assert (call.to, call.sender, call.value_wei) == (ROUTER, USER, 0)


async def test_the_price_of_gas_is_the_chains_or_the_one_given() -> None:
    shop = a_shop()
    built = await envelope(shop, SELL, sale(), "gasPrice=7")
    assert (built.gas_price, built.max_fee_per_gas) == ("7", UNSET)
    built = await envelope(shop, SELL, sale(), "eip1559=true")
    assert (built.gas_price, built.max_fee_per_gas) == (UNSET, "2100000000")
    assert built.max_priority_fee_per_gas == "100000000"
    built = await envelope(shop, SELL, sale(), "eip1559=true&gasPrice=7")
    assert (built.max_fee_per_gas, built.max_priority_fee_per_gas) == ("7", "7")
    await refused(InvalidInput, "gasPrice", sale(), query="gasPrice=0")
    await refused(InvalidInput, "gasPrice", sale(), query="gasPrice=1.5")


async def test_only_params_are_the_call_as_libraries_take_it() -> None:
    shop = a_shop()
    built = await shop.build(shop.prices(SELL), sale(), "onlyParams=true")
    assert isinstance(built, ContractParams)
    assert (built.method, built.contract) == ("swapExactIn", to_checksum(ROUTER))
    (swap,) = built.params
    assert swap[:4] == [to_checksum(WETH), to_checksum(USDC), str(ONE), str(NET * 99 // 100)]
    assert swap[8] == "0x"


# --- The route ----------------------------------------------------------------------------------------


async def test_a_route_of_another_chain_or_none_is_refused() -> None:
    shop = a_shop()
    route = shop.prices(SELL)
    places = {CHAIN_ID: shop.place, 31_338: structs.replace(shop.place, chain_id=31_338)}
    twins = structs.replace(
        shop, desk=type(shop.desk)(places, shop.seal, {}, {}, ledger=Ledger(), user_places=1)
    )
    with pytest.raises(InvalidPriceRoute, match="chainId: expected 31337, got 31338"):
        await twins.build(route, sale(), chain_id=31_338)
    with pytest.raises(UnsupportedChain, match=r"chainId: .*got 5"):
        await shop.build(route, sale(), chain_id=5)


async def test_a_stale_and_a_changed_route_are_refused() -> None:
    shop = a_shop()
    route = shop.prices(SELL)
    with pytest.raises(StalePriceRoute, match=r"^Stale priceRoute"):
        await shop.build(route, sale(), now_ms=NOW_MS + 30_001)
    changed = structs.replace(route, dest_amount=str(NET + 1))
    with pytest.raises(InvalidPriceRoute, match=r"^Invalid priceRoute"):
        await shop.build(changed, sale())
    await shop.build(route, sale())
    await shop.build(route, sale())  # a route may be used several times


async def test_a_route_of_version_5_is_refused_and_6_2_named() -> None:
    await refused(
        InvalidInput, r"priceRoute.version: expected 6\.2.*got '5'", sale(), asked=SELL.replace("6.2", "5")
    )


# --- Fields against the route -------------------------------------------------------------------------


FIELDS: list[tuple[str, type[RequestError], str, dict[str, Any]]] = [
    ("another source", InvalidInput, "srcToken: expected the route's", {"srcToken": "DAI"}),
    ("another destination", InvalidInput, "destToken: expected the route's", {"destToken": "DAI"}),
    ("native for wrapped", InvalidInput, "srcToken: expected the route's", {"srcToken": NATIVE_PLACEHOLDER}),
    ("native misspelt", InvalidToken, "Invalid srcToken", {"srcToken": NATIVE_PLACEHOLDER.lower()}),
    ("source decimals", NoRoute, "srcDecimals: expected 18, got 6", {"srcDecimals": 6}),
    ("destination decimals", NoRoute, "destDecimals: expected 6, got 18", {"destDecimals": 18}),
    ("no source amount", InvalidInput, "srcAmount: missing", {"srcAmount": None}),
    ("another source amount", InvalidInput, "srcAmount: expected the route's", {"srcAmount": "1"}),
    ("a number as amount", InvalidInput, "srcAmount", {"srcAmount": ONE}),
    ("no slippage", MissingSlippage, "^missing slippage", {"slippage": None}),
    ("slippage above", InvalidInput, "slippage", {"slippage": 10_001}),
    ("slippage below", InvalidInput, "slippage", {"slippage": -1}),
    ("a minimum above the quote", InvalidInput, "destAmount: expected at most", {"destAmount": str(NET + 1)}),
    ("that with slippage", InvalidInput, "destAmount", {"destAmount": str(NET + 1), "slippage": 5}),
    ("bad slippage with amount", InvalidInput, "slippage", {"destAmount": "1", "slippage": 10_001}),
    ("no user", InvalidInput, "userAddress: missing|userAddress", {"userAddress": None}),
    ("the zero user", InvalidInput, "userAddress: expected an account", {"userAddress": "0x" + "0" * 40}),
    ("no address as user", InvalidInput, "userAddress", {"userAddress": "me"}),
    ("no address as origin", InvalidInput, "txOrigin", {"txOrigin": "me"}),
    ("no address as receiver", InvalidInput, "receiver", {"receiver": "me"}),
    ("no address as partner", InvalidInput, "partnerAddress", {"partnerAddress": "me", "partnerFeeBps": "1"}),
    ("a fee as number", InvalidInput, "partnerFeeBps: expected 0 to 200", {"partnerFeeBps": 201}),
    ("a fee in words", InvalidInput, "partnerFeeBps: expected a string", {"partnerFeeBps": "1e1"}),
    ("a fee too high", InvalidInput, "partnerFeeBps", {"partnerFeeBps": "201"}),
    ("stacked too high", PartnerNotAllowed, "at most 200", {"partner": "wallet", "partnerFeeBps": "151"}),
    ("above its tier", PartnerNotAllowed, "at most 25", {"partner": "small", "partnerFeeBps": "16"}),
    ("surplus above its tier", PartnerNotAllowed, "takeSurplus", {"partner": "small", "takeSurplus": True}),
    ("a permit of no length", InvalidInput, "permit: expected 0, 1, 96", {"permit": "0x" + "00" * 100}),
    ("a permit of no hex", InvalidInput, "permit", {"permit": "zz"}),
    ("a deadline gone", OrderExpired, "^Order expired: deadline: expected a time", {"deadline": NOW_S}),
    ("a flag in words", InvalidInput, "takeSurplus", {"takeSurplus": "yes"}),
    *(
        ("a receiver of ours", InvalidInput, "receiver: expected an account", {"receiver": to_checksum(at)})
        for at in (ROUTER, EXECUTOR, RFQ, DELTA, VAULT)
    ),
]


@pytest.mark.parametrize(
    ("kind", "match", "changed"), [row[1:] for row in FIELDS], ids=[row[0] for row in FIELDS]
)
async def test_what_does_not_fit_is_refused_by_name(
    kind: type[RequestError], match: str, changed: dict[str, Any]
) -> None:
    shop = a_shop()
    await refused(kind, match, sale(**changed), shop=shop)
    assert not shop.firm.asked  # no maker was asked to sign


async def test_a_purchase_has_its_amounts_the_other_way_round() -> None:
    await refused(InvalidInput, "destAmount: missing", purchase(destAmount=None), asked=BUY)
    await refused(InvalidInput, "destAmount: expected the route's", purchase(destAmount="1"), asked=BUY)
    await refused(MissingSlippage, "missing slippage", purchase(slippage=None), asked=BUY)
    low = purchase(srcAmount=str(COST - 1))
    await refused(InvalidInput, "srcAmount: expected at least", low, asked=BUY)
    swap = await told(a_shop(), BUY, purchase(srcAmount=str(COST), slippage=None))
    assert swap.src_amount == COST


async def test_the_amount_wins_over_slippage() -> None:
    swap = await told(a_shop(), SELL, sale(destAmount=str(NET - 5)))
    assert swap.dest_amount == NET - 5
    assert (await told(a_shop(), SELL, sale(destAmount=str(NET), slippage=None))).dest_amount == NET
    assert (await told(a_shop(), BUY, purchase(srcAmount=str(2 * COST)))).src_amount == 2 * COST


@pytest.mark.parametrize(("bps", "least"), [(0, NET), (1, NET * 9_999 // 10_000), (10_000, 0)])
async def test_slippage_of_a_sale_rounds_down(bps: int, least: int) -> None:
    assert (await told(a_shop(), SELL, sale(slippage=bps))).dest_amount == least


@pytest.mark.parametrize(("bps", "most"), [(0, COST), (1, COST * 10_001 // 10_000), (10_000, 2 * COST)])
async def test_slippage_of_a_purchase_rounds_down(bps: int, most: int) -> None:
    assert (await told(a_shop(), BUY, purchase(slippage=bps))).src_amount == most


async def test_symbols_and_decimals_may_be_said_again() -> None:
    body = sale(srcToken="WETH", destToken="USDC", srcDecimals=18, destDecimals=6)
    assert (await told(a_shop(), SELL, body)).src_token == WETH


async def test_the_user_may_name_a_receiver() -> None:
    assert (await told(a_shop(), SELL, sale(receiver=to_checksum(RECEIVER)))).receiver == RECEIVER
    assert (await told(a_shop(), SELL, sale(receiver="0x" + "0" * 40))).receiver == bytes(20)


async def test_a_deadline_is_kept_or_that_of_the_quotes() -> None:
    assert (await told(a_shop(), SELL, sale(deadline=NOW_S + 1))).deadline == NOW_S + 1
    assert (await told(a_shop(), SELL, sale())).deadline == NOW_S + 120


# --- Fees ---------------------------------------------------------------------------------------------


FEES: list[tuple[str, str, dict[str, Any], PartnerAndFee]] = [
    ("anon", "", {}, PartnerAndFee(bytes(20), 1, False, True)),
    ("the quoted partner", "&partner=wallet", {}, PartnerAndFee(PARTNER, 50, False, True)),
    ("said again", "&partner=wallet", {"partner": "wallet"}, PartnerAndFee(PARTNER, 50, False, True)),
    ("named later", "", {"partner": "wallet"}, PartnerAndFee(PARTNER, 50, False, True)),
    ("dropped later", "&partner=wallet", {"partner": "nobody"}, PartnerAndFee(bytes(20), 1, False, True)),
    ("stacked", "&partner=wallet", {"partnerFeeBps": "25"}, PartnerAndFee(PARTNER, 75, False, True)),
    (
        "a fee and an address of its own",
        "",
        {"partnerAddress": to_checksum(STRANGER), "partnerFeeBps": "30"},
        PartnerAndFee(STRANGER, 30, False, True),
    ),
    ("uncapped", "", {"isCapSurplus": False}, PartnerAndFee(bytes(20), 1, False, False)),
    (
        "surplus for the partner",
        "&partner=wallet",
        {"takeSurplus": True},
        PartnerAndFee(PARTNER, 50, True, True),
    ),
    (
        "surplus for an address",
        "",
        {"takeSurplus": True, "partnerAddress": to_checksum(STRANGER)},
        PartnerAndFee(STRANGER, 1, True, True),
    ),
    (
        "the user keeps it",
        "&partner=wallet",
        {"takeSurplus": True, "isSurplusToUser": True},
        PartnerAndFee(PARTNER, 50, False, True),
    ),
]


@pytest.mark.parametrize(
    ("asked", "changed", "terms"), [row[1:] for row in FEES], ids=[row[0] for row in FEES]
)
@pytest.mark.parametrize("directly", [False, True])
async def test_fees_and_surplus_flags_become_the_terms_of_the_swap(
    asked: str, changed: dict[str, Any], terms: PartnerAndFee, directly: bool
) -> None:
    swap = await told(a_shop(), SELL + asked, sale(**changed, isDirectFeeTransfer=directly))
    assert bool(swap.partner_and_fee & PAYS_DIRECTLY) is directly
    assert unpack_partner_and_fee(swap.partner_and_fee & ~PAYS_DIRECTLY) == terms
    assert swap.expected_amount == GROSS - GROSS * terms.fee_bps // 10_000


async def test_a_quoted_fee_is_kept_without_being_said_again() -> None:
    shop = a_shop()
    query = "&".join(
        [
            f"srcToken={to_checksum(WETH)}&destToken={to_checksum(USDC)}&amount={ONE}&chainId={CHAIN_ID}",
            "srcDecimals=18&destDecimals=6",
        ]
    )
    for extra, terms in (
        ("&partner=wallet&partnerFeeBps=25", PartnerAndFee(PARTNER, 75, False, True)),
        ("&partnerFeeBps=30", PartnerAndFee(bytes(20), 30, False, True)),
    ):
        route = shop.quote((query + extra).encode())
        built = await shop.build(route, sale(), "onlyParams=true")
        assert isinstance(built, ContractParams)
        assert unpack_partner_and_fee(int(built.params[0][7])) == terms
        assert built.params[0][4] == route.dest_amount


# --- Permits ------------------------------------------------------------------------------------------


def own_permit(owner: bytes, spender: bytes, zeros: int = 5, *words: int) -> str:
    """Of two addresses, some words, and zeros; a DAI-style one of eight words has three."""
    return to_hex(
        address_word(owner) + address_word(spender) + b"".join(map(uint_word, words)) + bytes(32 * zeros)
    )


LATER_S = NOW_S + 60
EIP2612 = own_permit(USER, ROUTER, 3, ONE, LATER_S)
DAI_STYLE = own_permit(USER, ROUTER, 3, 0, LATER_S, 1)
AT_PERMIT2 = to_hex(uint_word(ONE) + uint_word(LATER_S) + uint_word(0) + uint_word(LATER_S) + bytes(64))


@pytest.mark.parametrize("permit", ["0x01", AT_PERMIT2, EIP2612, DAI_STYLE, "0x" + "01" * 96])
async def test_a_permit_stands_in_for_an_allowance(permit: str) -> None:
    shop = a_shop()
    shop.chain.allowed, shop.chain.at_permit2 = 0, ONE
    shop.chain.permits[USER] = b""
    body = sale(permit=permit, deadline=NOW_S + 60)
    assert (await told(shop, SELL, body)).permit == parse_hex(permit, "")
    await refused(InsufficientAllowance, "^InsufficientAllowance", sale(permit="0x"), shop=shop)


@pytest.mark.parametrize("permit", ["0x01", AT_PERMIT2, EIP2612, DAI_STYLE, "0x" + "01" * 96])
async def test_makers_are_not_asked_for_a_permit_that_nobody_takes(permit: str) -> None:
    shop = a_shop()
    shop.chain.allowed, shop.chain.permit2 = 0, Reverted("InvalidSigner()", b"")
    body = sale(permit=permit, deadline=NOW_S + 60)
    await refused(InsufficientAllowance, "for the Market router|the permit is refused", body, shop=shop)
    assert shop.firm.asked == []


async def test_a_permit_is_of_the_user_for_the_router() -> None:
    await refused(InvalidInput, "permit: expected the spender", sale(permit=own_permit(USER, DELTA)))
    await refused(InvalidInput, "permit: expected the owner", sale(permit=own_permit(STRANGER, ROUTER)))
    await refused(InvalidInput, "permit: expected the spender", sale(permit=own_permit(USER, STRANGER, 6)))


async def test_a_permit2_transfer_needs_the_deadline_that_it_signs() -> None:
    await refused(InvalidInput, "deadline: a Permit2 transfer", sale(permit="0x" + "01" * 96))


async def test_native_tokens_take_no_permit() -> None:
    asked = SELL.replace("WETH", "ETH")
    await refused(InvalidInput, "permit: expected none", sale(permit="0x01"), asked=asked)


# --- Makers -------------------------------------------------------------------------------------------


async def test_makers_are_asked_within_the_users_bound() -> None:
    shop = a_shop()
    await told(shop, SELL, sale())
    plan, wanted, user, limit = shop.firm.asked[0]
    assert (user, wanted.amount, plan.dest_amount) == (USER, ONE, GROSS)
    least = NET * 99 // 100
    assert limit - limit // 10_000 >= least > limit - 1 - (limit - 1) // 10_000
    await told(shop, BUY, purchase())
    limit = shop.firm.asked[-1][3]
    most = COST * 101 // 100
    assert limit + limit // 10_000 <= most < limit + 1 + (limit + 1) // 10_000


async def test_taxes_of_the_tokens_count_in_the_bound() -> None:
    shop = a_shop()
    await told(shop, SELL + "&destTokenTransferFee=100&destTokenDexTransferFee=50", sale(slippage=0))
    plan, _, _, limit = shop.firm.asked[0]
    assert plan.paths[0].hops[-1].dest_amount - 2 <= limit <= plan.paths[0].hops[-1].dest_amount
    await told(shop, BUY + "&srcTokenTransferFee=100&srcTokenDexTransferFee=50", purchase(slippage=0))
    plan, _, _, limit = shop.firm.asked[-1]
    assert plan.paths[0].hops[0].src_amount <= limit <= plan.paths[0].hops[0].src_amount + 2


@pytest.mark.parametrize("who", ["userAddress", "txOrigin"])
async def test_a_maker_that_has_blacklisted_user_or_origin_is_not_asked(who: str) -> None:
    shop = a_shop()
    route = shop.prices(SELL)
    shop.blacklists["alpha"].add([ORIGIN], NOW_MS)
    await shop.build(route, sale(**{who: to_checksum(ORIGIN)}))
    plan, wanted, _, _ = shop.firm.asked[-1]
    assert plan.makers() == {"beta"}
    assert wanted.without == {"alpha"}
    shop.blacklists["beta"].add([ORIGIN], NOW_MS)
    with pytest.raises(NoRoute, match="do not serve this user"):
        await shop.build(route, sale(**{who: to_checksum(ORIGIN)}))


async def test_a_blacklisting_maker_without_a_part_stays_out_of_the_fallback() -> None:
    """The quoted plan stays, whatever the books are meanwhile."""
    shop = a_shop()
    route = shop.prices(SELL + "&includeDEXS=alpha")
    shop.finder.rates[(WETH, USDC)] /= 2
    shop.blacklists["beta"].add([USER], NOW_MS)
    await shop.build(route, sale())
    plan, wanted, _, _ = shop.firm.asked[-1]
    assert plan.makers() == wanted.only == frozenset({"alpha"})
    assert plan.dest_amount == 2_500 * 10**6
    assert wanted.without == {"beta"}


# --- Checks -------------------------------------------------------------------------------------------


async def test_balance_and_allowance_are_checked_before_anyone_signs() -> None:
    shop = a_shop()
    shop.chain.tokens = ONE - 1
    await refused(InsufficientBalance, f"^InsufficientBalance: .*{ONE}", sale(), shop=shop)
    shop.chain.tokens, shop.chain.allowed = ONE, ONE - 1
    router = to_checksum(ROUTER)
    await refused(InsufficientAllowance, f"Market router {router}, got {ONE - 1}", sale(), shop=shop)
    assert not shop.firm.asked
    await envelope(shop, SELL, sale(), "ignoreChecks=true")
    shop.chain.allowed = ONE
    await envelope(shop, SELL, sale())


async def test_a_purchase_needs_its_maximum() -> None:
    shop = a_shop()
    shop.chain.tokens = COST * 101 // 100 - 1
    await refused(InsufficientBalance, "InsufficientBalance", purchase(), shop=shop, asked=BUY)
    shop.chain.tokens += 1
    await envelope(shop, BUY, purchase())


async def test_native_tokens_are_checked_as_such() -> None:
    shop = a_shop()
    shop.chain.allowed = shop.chain.tokens = 0
    asked = SELL.replace("WETH", "ETH")
    await envelope(shop, asked, sale())
    shop.chain.native = ONE - 1
    await refused(InsufficientBalance, "InsufficientBalance", sale(), shop=shop, asked=asked)


@pytest.mark.parametrize("query", ["", "ignoreGasEstimate=true", "onlyParams=true"])
async def test_a_swap_that_would_revert_is_refused_with_the_word(query: str) -> None:
    shop = a_shop()
    shop.chain.outcome = Reverted("INSUFFICIENT_OUTPUT")
    error = await refused(
        SimulationFailed, "Simulation failed: INSUFFICIENT_OUTPUT", sale(), shop=shop, query=query
    )
    assert error.status == 400
    shop.chain.outcome = Reverted("")
    await refused(SimulationFailed, "without a reason", sale(), shop=shop, query=query)


async def test_a_chain_that_does_not_answer_is_503_and_nothing_is_unchecked() -> None:
    shop = a_shop()
    shop.chain.outcome = NodeUnavailable("all nodes are away")
    assert (await refused(ServiceUnavailable, "all nodes are away", sale(), shop=shop)).status == 503
    shop.gas.seen = None
    route = a_shop().prices(SELL)
    with pytest.raises(ServiceUnavailable):
        await shop.build(route, sale())


async def test_a_token_that_answers_nothing_is_503_and_no_lack_of_funds() -> None:
    shop = a_shop()
    shop.chain.is_silent = True
    await refused(ServiceUnavailable, "has no balance or allowance", sale(), shop=shop)


async def test_a_chain_is_waited_for_so_long(autojump_clock: Any) -> None:
    shop = a_shop()
    shop.chain.is_stuck = True
    await refused(ServiceUnavailable, f"does not answer within {SIMULATION_S:g} s", sale(), shop=shop)

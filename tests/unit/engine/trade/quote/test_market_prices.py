"""GET /prices and the Market path of GET /v2/quote: effects of each parameter, and refusals."""

from decimal import Decimal
from typing import Any

import pytest
from msgspec import UNSET, structs

from cambist.codecs.messages.vocabulary import Side
from cambist.config.errors import (
    InvalidInput,
    InvalidToken,
    NoRoute,
    PartnerNotAllowed,
    RequestError,
    ServiceUnavailable,
    TokenNotSupported,
    UnsupportedChain,
)
from cambist.config.limits import NATIVE_PLACEHOLDER
from cambist.crypto.addresses import to_checksum
from cambist.engine.trade.routing.search.plan import Taxes
from support.venue.market_place import (
    CHAIN_ID,
    DAI,
    NOW_MS,
    ONE,
    ORIGIN,
    ROUTER,
    STRANGER,
    USDC,
    USER,
    WBTC,
    WETH,
    Shop,
    a_shop,
)

GROSS = 2_500 * 10**6 * 6 // 10 + 2_500 * 10**6 * 4 // 10 * 999 // 1_000
NET = GROSS - GROSS // 10_000  # anon pays 1 bps


def query(**changed: Any) -> str:
    """Query of one WETH for USDC by symbols, with changes; None leaves a parameter out."""
    parameters = {
        "srcToken": "WETH",
        "destToken": "USDC",
        "amount": ONE,
        "network": CHAIN_ID,
        "version": "6.2",
        **changed,
    }
    return "&".join(f"{name}={value}" for name, value in parameters.items() if value is not None)


def refused(kind: type[RequestError], match: str, shop: Shop | None = None, **changed: Any) -> RequestError:
    with pytest.raises(kind, match=match) as caught:
        (shop or a_shop()).prices(query(**changed))
    return caught.value


def test_a_sale_is_quoted_after_the_fee() -> None:
    route = a_shop().prices(query())
    assert (route.src_amount, route.dest_amount) == (str(ONE), str(NET))
    assert (route.side, route.version, route.network, route.block_number) == (Side.SELL, "6.2", CHAIN_ID, 19)
    assert (route.partner, route.partner_fee) == ("anon", Decimal("0.01"))
    assert route.contract_method == "swapExactIn"
    assert route.contract_address == route.token_transfer_proxy == to_checksum(ROUTER)


def test_a_purchase_is_quoted_with_the_fee_on_top() -> None:
    route = a_shop().prices(query(side="buy", amount=2_500 * 10**6, partner="wallet"))
    spent = 6 * ONE // 10 - (-4 * ONE // 10 * 1_000 // 999)
    assert int(route.dest_amount) == 2_500 * 10**6
    assert int(route.src_amount) == spent + spent * 50 // 10_000
    assert (route.side, route.contract_method) == (Side.BUY, "swapExactOut")
    assert (route.partner, route.partner_fee) == ("wallet", Decimal("0.5"))


@pytest.mark.parametrize(
    ("src", "text"),
    [
        ("WETH", to_checksum(WETH)),
        (to_checksum(WETH), to_checksum(WETH)),
        (to_checksum(WETH).lower(), to_checksum(WETH)),
        (NATIVE_PLACEHOLDER, NATIVE_PLACEHOLDER),
        ("ETH", NATIVE_PLACEHOLDER),
    ],
)
def test_a_token_is_named_by_address_or_symbol(src: str, text: str) -> None:
    route = a_shop().prices(query(srcToken=src))
    assert (route.src_token, route.src_decimals) == (text, 18)
    assert route.dest_amount == str(NET)
    assert route.best_route[0].swaps[0].src_token == to_checksum(WETH)


@pytest.mark.parametrize("src", ["WETH", to_checksum(WETH)])
def test_decimals_may_be_absent_or_right(src: str) -> None:
    assert a_shop().prices(query(srcToken=src, srcDecimals=18, destDecimals=6)).dest_amount == str(NET)
    assert a_shop().prices(query(srcToken=src)).dest_amount == str(NET)
    refused(NoRoute, "No route: srcDecimals: expected 18, got 6", srcToken=src, srcDecimals=6)
    refused(NoRoute, "No route: destDecimals: expected 6, got 18", srcToken=src, destDecimals=18)


@pytest.mark.parametrize("native", [NATIVE_PLACEHOLDER.lower(), "0x0", "0x" + "0" * 40, "0x12", "nothing"])
def test_the_native_token_has_one_spelling(native: str) -> None:
    refused(InvalidToken, "^Invalid srcToken: ", srcToken=native)
    refused(InvalidToken, "^Invalid destToken: ", destToken=native)


def test_a_token_that_is_not_listed_is_not_supported() -> None:
    other = to_checksum(b"\x77" * 20)
    assert str(refused(TokenNotSupported, "srcToken", srcToken=other)).startswith("Token not supported")
    refused(TokenNotSupported, "destToken", destToken=other)


@pytest.mark.parametrize(
    ("src", "dest"),
    [("WETH", "WETH"), (NATIVE_PLACEHOLDER, "WETH"), ("WETH", NATIVE_PLACEHOLDER), ("ETH", "ETH")],
)
def test_a_token_for_itself_has_no_route(src: str, dest: str) -> None:
    refused(NoRoute, "No route: destToken: expected another token", srcToken=src, destToken=dest)


def test_a_chain_that_is_not_served_is_refused_by_number() -> None:
    error = refused(UnsupportedChain, "Unsupported chain: network: .*got 5", network=5)
    assert error.status == 422
    refused(UnsupportedChain, "network: .*got 1$", network=None)  # the default of spec 1.13.8
    refused(UnsupportedChain, str(CHAIN_ID), a_shop(market=False))


def test_chain_id_is_taken_in_place_of_network() -> None:
    assert a_shop().prices(query(network=None, chainId=CHAIN_ID)).network == CHAIN_ID
    refused(InvalidInput, "chainId: expected the same as network", chainId=1)


@pytest.mark.parametrize("amount", ["0", "-1", "1.5", "1e18", "0x10", "9" * 79])
def test_an_amount_is_raw_units_above_zero(amount: str) -> None:
    refused(InvalidInput, "amount", amount=amount)


def test_without_liquidity_there_is_no_route() -> None:
    shop = a_shop()
    shop.finder.rates.clear()
    assert str(refused(NoRoute, "No route", shop)) == "No route: no live books lead from WETH to USDC"


def test_an_amount_that_the_fee_eats_has_no_route() -> None:
    refused(NoRoute, "No route", amount=1)  # not a unit of USDC


@pytest.mark.parametrize("version", ["5", "6.2"])
def test_a_route_carries_the_version_that_was_asked_for(version: str) -> None:
    assert a_shop().prices(query(version=version)).version == version


@pytest.mark.parametrize("side", Side)
def test_both_versions_are_one_route_apart_from_their_name_and_seal(side: Side) -> None:
    """choices.md#quotes-and-routes."""
    sale: dict[str, Any] = {"side": side, "destToken": "DAI", "otherExchangePrices": "true"}
    shop = a_shop()
    legacy, route = (shop.prices(query(**sale, version=version)) for version in ("5", "6.2"))
    assert legacy.hmac != route.hmac
    assert structs.replace(legacy, version=route.version, hmac=route.hmac) == route


def test_the_version_is_5_when_it_is_absent() -> None:
    assert a_shop().prices(query(version=None)).version == "5"
    refused(InvalidInput, "version: expected one of 5, 6.2", version="6")


def makers(shop: Shop, **changed: Any) -> set[str]:
    swaps = shop.prices(query(**changed)).best_route[0].swaps
    return {exchange.exchange for swap in swaps for exchange in swap.swap_exchanges}


def test_makers_are_included_and_excluded_by_name() -> None:
    shop = a_shop()
    assert makers(shop) == {"alpha", "beta"}
    assert makers(shop, includeDEXS="beta") == {"beta"}
    assert makers(shop, includeDEXS="beta,other") == {"beta"}
    assert makers(shop, excludeDEXS="beta,other") == {"alpha"}
    assert makers(shop, includeDEXS="alpha,beta", excludeDEXS="alpha") == {"beta"}
    said = (
        r"No route: includeDEXS: expected a name of GET /adapters/list \(alpha, beta\), got 'Alpha,UniswapV3'"
    )
    refused(NoRoute, said, shop, includeDEXS="Alpha,UniswapV3")
    refused(NoRoute, "No route", shop, excludeDEXS="alpha,beta")


def test_without_rfq_sources_nothing_is_left() -> None:
    refused(NoRoute, "excludeRFQ", excludeRFQ="true")
    assert makers(a_shop(), excludeRFQ="false") == {"alpha", "beta"}


def test_the_routers_functions_are_included_and_excluded_by_name() -> None:
    shop = a_shop()
    assert shop.prices(query(includeContractMethods="swapExactIn")).contract_method == "swapExactIn"
    assert shop.prices(query(excludeContractMethods="swapExactOut")).contract_method == "swapExactIn"
    refused(NoRoute, "includeContractMethods: expected swapExactIn", includeContractMethods="swapExactOut")
    refused(NoRoute, "excludeContractMethods", excludeContractMethods="simpleSwap,swapExactIn")
    buying: dict[str, Any] = {"side": "BUY", "amount": 10**6}
    assert shop.prices(query(**buying, includeContractMethods="swapExactOut")).side is Side.BUY
    refused(NoRoute, "excludeContractMethods", **buying, excludeContractMethods="swapExactOut")


@pytest.mark.parametrize(
    ("side", "here", "elsewhere", "other"),
    [
        ("SELL", "swapExactIn", "swapExactAmountIn", "swapExactAmountOut"),
        ("BUY", "swapExactOut", "swapExactAmountOut", "swapExactAmountIn"),
    ],
)
def test_functions_have_the_names_that_clients_bring(
    side: str, here: str, elsewhere: str, other: str
) -> None:
    shop, rfq = a_shop(), "swapOnAugustusRFQTryBatchFill"
    asked: dict[str, Any] = {"side": side, "amount": ONE if side == "SELL" else 10**6}
    for names in (elsewhere, rfq, f"{other},{rfq}", f"simpleSwap,{elsewhere}"):
        assert shop.prices(query(**asked, includeContractMethods=names)).contract_method == here
    for names in (other, rfq, f"{other},{rfq}"):
        assert shop.prices(query(**asked, excludeContractMethods=names)).contract_method == here
    refused(NoRoute, f"expected a list without {elsewhere}", **asked, excludeContractMethods=elsewhere)
    said = f"includeContractMethods: expected {here}, {elsewhere} or {rfq}, got 'simpleSwap,{other}'"
    refused(NoRoute, said, **asked, includeContractMethods=f"simpleSwap,{other}")


def test_every_function_has_a_fee_model() -> None:
    route = a_shop().prices(query(excludeContractMethodsWithoutFeeModel="true"))
    assert route.dest_amount == str(NET)


def test_others_are_the_best_route_of_each_maker_alone() -> None:
    assert a_shop().prices(query()).others is UNSET
    route = a_shop().prices(query(otherExchangePrices="true"))
    assert isinstance(route.others, dict)
    assert list(route.others) == ["alpha", "beta"]
    assert route.others["alpha"].dest_amount == str(2_500 * 10**6 - 250_000)
    assert route.others["beta"].dest_amount == str(2_497_500_000 - 249_750)
    exchanges = route.others["beta"].swaps[0].swap_exchanges
    assert [(one.exchange, one.percent) for one in exchanges] == [("beta", Decimal(100))]


def test_a_path_may_be_prescribed() -> None:
    shop = a_shop()
    route = shop.prices(query(destToken="DAI", route="WETH-USDC-DAI"))
    assert [(swap.src_token, swap.dest_token) for swap in route.best_route[0].swaps] == [
        (to_checksum(WETH), to_checksum(USDC)),
        (to_checksum(USDC), to_checksum(DAI)),
    ]
    by_address = "-".join(map(to_checksum, (WETH, USDC, DAI)))
    assert shop.prices(query(destToken="DAI", route=by_address)).dest_amount == route.dest_amount
    assert shop.finder.asked[-1].route == (WETH, USDC, DAI)
    native = shop.prices(query(srcToken="ETH", destToken="DAI", route="ETH-USDC-DAI"))
    assert native.dest_amount == route.dest_amount
    shop.prices(query(destToken="WBTC", route="WETH-USDC-WBTC"))
    assert shop.finder.asked[-1].route == (WETH, USDC, WBTC)


@pytest.mark.parametrize(
    ("route", "kind", "match"),
    [
        ("WETH", InvalidInput, "route: expected 2 to 4 tokens"),
        ("WETH-DAI-WBTC-DAI-USDC", InvalidInput, "route: expected 2 to 4 tokens"),
        ("USDC-WETH", InvalidInput, "route: expected a path from srcToken to destToken"),
        ("WETH-DAI", InvalidInput, "route: expected a path from srcToken to destToken"),
        ("WETH-DAI-DAI-USDC", InvalidInput, "route: expected each token once"),
        ("WETH-ETH-USDC", InvalidInput, "route: expected each token once"),
        ("WETH-nothing-USDC", InvalidInput, "route: expected token addresses or symbols, got 'nothing'"),
        (f"WETH-{to_checksum(STRANGER)}-USDC", TokenNotSupported, "Token not supported: route"),
        ("WETH-DAI-USDC", NoRoute, "^No route: no live books lead from WETH to USDC$"),
    ],
)
def test_a_path_is_two_to_four_tokens_from_end_to_end(
    route: str, kind: type[RequestError], match: str
) -> None:
    refused(kind, match, route=route)


def test_taxes_are_what_is_priced() -> None:
    shop = a_shop()
    taxes = {
        "srcTokenTransferFee": 100,
        "destTokenTransferFee": 200,
        "srcTokenDexTransferFee": 300,
        "destTokenDexTransferFee": 400,
    }
    route = shop.prices(query(**taxes))
    assert shop.finder.asked[-1].taxes == Taxes(100, 200, 300, 400)
    assert int(route.dest_amount) < NET * 91 // 100
    for name in taxes:
        all_of_it: dict[str, Any] = {name: 10_000}
        refused(NoRoute, f"{name}: the receipt would be 0", **all_of_it)
        more: dict[str, Any] = {name: 10_001}
        refused(InvalidInput, f"{name}: expected an integer from 0 to 10000", **more)


def test_impact_is_told_and_never_an_error() -> None:
    shop = a_shop()
    assert shop.prices(query()).max_impact_reached is False  # 0.04 %
    assert shop.prices(query(maxImpact="0.03")).max_impact_reached is True
    assert shop.prices(query(maxImpact="0.04")).max_impact_reached is False
    shop.usd.prices[WETH] *= 2
    assert shop.prices(query()).max_impact_reached is True
    assert shop.prices(query(maxImpact=60)).max_impact_reached is False


def test_a_missing_price_counts_as_impact_unless_that_is_ignored() -> None:
    shop = a_shop()
    assert shop.prices(query(destToken="DAI")).max_impact_reached is True
    route = shop.prices(query(destToken="DAI", ignoreBadUsdPrice="true"))
    assert (route.max_impact_reached, route.dest_usd) == (False, "0")
    assert shop.prices(query(ignoreBadUsdPrice="true", maxImpact=0)).max_impact_reached is True


def test_values_in_dollars_are_those_of_the_amounts_quoted() -> None:
    route = a_shop().prices(query())
    assert route.src_usd == "2500.0000000000"
    assert Decimal(route.dest_usd) == Decimal(NET).scaleb(-6)
    assert route.gas_cost == "250000"
    assert Decimal(route.gas_cost_usd) == Decimal(2_500) * 250_000 * 1_100_000_000 / ONE


def test_makers_that_have_blacklisted_the_user_are_left_out_and_not_told() -> None:
    shop = a_shop()
    shop.blacklists["alpha"].add([USER], NOW_MS)
    route = shop.prices(query(userAddress=to_checksum(USER)))
    assert {one.exchange for one in route.best_route[0].swaps[0].swap_exchanges} == {"beta"}
    assert b"alpha" not in repr(route).encode()
    assert makers(shop, userAddress=to_checksum(ORIGIN)) == {"alpha", "beta"}
    shop.blacklists["beta"].add([USER], NOW_MS)
    refused(NoRoute, "No route", shop, userAddress=to_checksum(USER))


def test_addresses_are_addresses() -> None:
    for name in ("userAddress", "receiver"):
        wrong: dict[str, Any] = {name: "0x12"}
        refused(InvalidInput, f"{name}: expected an address", **wrong)
    assert a_shop().prices(query(receiver=to_checksum(STRANGER))).dest_amount == str(NET)


def test_a_partner_pays_its_registered_fee_and_an_unknown_one_anons() -> None:
    shop = a_shop()
    assert shop.prices(query(partner="wallet")).partner_fee == Decimal("0.5")
    route = shop.prices(query(partner="nobody"))
    assert (route.partner, route.partner_fee) == ("nobody", Decimal("0.01"))


def test_without_a_price_of_gas_nothing_is_quoted() -> None:
    shop = a_shop()
    shop.gas.seen = None
    assert refused(ServiceUnavailable, "no block", shop).status == 503


def quote(**changed: Any) -> bytes:
    parameters = {
        "srcToken": to_checksum(WETH),
        "destToken": to_checksum(USDC),
        "srcDecimals": 18,
        "destDecimals": 6,
        "amount": ONE,
        "chainId": CHAIN_ID,
        **changed,
    }
    return "&".join(f"{name}={value}" for name, value in parameters.items()).encode()


def test_the_market_block_of_a_quote_is_of_version_6_2() -> None:
    route = a_shop().quote(quote())
    assert (route.version, route.dest_amount) == ("6.2", str(NET))


def test_a_quote_takes_a_fee_of_its_own_and_bounds_of_impact() -> None:
    shop = a_shop()

    def asked(**changed: Any) -> Any:
        return shop.quote(quote(**changed))

    assert asked(partner="wallet", partnerFeeBps=50).partner_fee == Decimal(1)
    with pytest.raises(PartnerNotAllowed, match="a sum of at most 200"):
        asked(partner="wallet", partnerFeeBps=151)
    assert asked(maxUSDImpact="0.5").max_impact_reached is True  # a dollar is lost
    assert asked(maxUSDImpact="1").max_impact_reached is False
    with pytest.raises(InvalidInput, match="beneficiary"):
        asked(beneficiary="0x1")
    with pytest.raises(UnsupportedChain, match="chainId"):
        asked(chainId=1)
    shop.blacklists["alpha"].add([USER], NOW_MS)
    exchanges = asked(userAddress=to_checksum(USER)).best_route[0].swaps[0].swap_exchanges
    assert [one.exchange for one in exchanges] == ["beta"]


@pytest.mark.parametrize("bounds", [{}, {"maxImpact": 100}, {"maxUSDImpact": 1_000_000}], ids=str)
def test_a_missing_price_is_an_impact_and_no_error_of_a_quote(bounds: dict[str, Any]) -> None:
    """choices.md#quotes-and-routes: /v2/quote knows no ignoreBadUsdPrice."""
    for src, dest in ((WETH, DAI), (DAI, WETH)):
        ends = {"srcToken": to_checksum(src), "destToken": to_checksum(dest), "destDecimals": 18}
        route = a_shop().quote(quote(**ends, **bounds))
        assert route.max_impact_reached is True
        assert "0" in (route.src_usd, route.dest_usd)

"""GET /prices and POST /transactions/{chainId} (spec 1.13 and 1.14): each parameter, and its effect here.

A row is a parameter; its case sends it and says what of the answer it changes, against the
same request without it. `test_every_row_has_its_case` keeps the tables and the cases together.
"""

import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from msgspec import UNSET, Struct, structs

from cambist.codecs.messages.market_messages import (
    ContractParams,
    PriceRoute,
    PricesQuery,
    TransactionBody,
    TransactionEnvelope,
    TransactionQuery,
)
from cambist.codecs.messages.wire import encode
from cambist.config.errors import (
    InvalidInput,
    NoRoute,
    OrderExpired,
    RequestError,
    TokenNotSupported,
    UnsupportedChain,
)
from cambist.crypto.addresses import to_checksum
from support.otc.swap_orders import an_order, sent
from support.venue.admitting import signatures
from support.venue.market_place import (
    CHAIN_ID,
    KEYED,
    NOW_MS,
    ONE,
    ORIGIN,
    RECEIVER,
    STRANGER,
    USER,
    Shop,
    a_shop,
)

NOW_S = NOW_MS // 1_000


class Row(Struct, frozen=True):
    """Row of a table of parameters.

    Attributes:
        name: of the parameter.
        sent: members sent beside the plain request; None leaves a parameter out.
        holds: of the plain answer and this one.
        refusals: (value, error, words): sending that is refused so.
    """

    name: str
    sent: dict[str, Any]
    holds: Callable[[Any, Any], bool]
    refusals: tuple[tuple[Any, type[RequestError], str], ...] = ()


def _exchanges(route: PriceRoute) -> set[str]:
    return {one.exchange for swap in route.best_route[0].swaps for one in swap.swap_exchanges}


def _way(route: PriceRoute) -> list[str]:
    return [swap.dest_token for swap in route.best_route[0].swaps]


PRICES = [
    Row("srcToken", {"srcToken": "WBTC"}, lambda was, now: was.src_token != now.src_token,
        ((to_checksum(STRANGER), TokenNotSupported, "Token not supported"), (None, InvalidInput, "missing"))),
    Row("destToken", {"destToken": "WBTC"}, lambda was, now: was.dest_token != now.dest_token,
        ((to_checksum(STRANGER), TokenNotSupported, "Token not supported"), (None, InvalidInput, "missing"))),
    Row("amount", {"amount": 2 * ONE}, lambda was, now: 2 * int(was.src_amount) == int(now.src_amount),
        ((None, InvalidInput, "missing"), ("1.0", InvalidInput, "amount"))),
    Row("srcDecimals", {"srcDecimals": 18}, lambda was, now: was == now, ((6, NoRoute, "No route"),)),
    Row("destDecimals", {"destDecimals": 6}, lambda was, now: was == now, ((18, NoRoute, "No route"),)),
    Row("side", {"side": "BUY"}, lambda was, now: now.dest_amount == str(ONE) == was.src_amount,
        (("BOTH", InvalidInput, "side"),)),
    Row("network", {"network": CHAIN_ID}, lambda was, now: now.network == CHAIN_ID,
        ((None, UnsupportedChain, "got 1$"), (5, UnsupportedChain, "Unsupported chain"))),
    Row("otherExchangePrices", {"otherExchangePrices": "true"},
        lambda was, now: was.others is UNSET and set(now.others) == {"alpha", "beta"}),
    Row("includeDEXS", {"includeDEXS": "beta,gamma"}, lambda was, now: _exchanges(now) == {"beta"},
        (("gamma", NoRoute, "No route"),)),
    Row("excludeDEXS", {"excludeDEXS": "beta,gamma"}, lambda was, now: _exchanges(now) == {"alpha"},
        (("alpha,beta", NoRoute, "No route"),)),
    Row("excludeRFQ", {"excludeRFQ": "false"}, lambda was, now: was == now, (("true", NoRoute, "No route"),)),
    Row("includeContractMethods", {"includeContractMethods": "swapExactIn"}, lambda was, now: was == now,
        (("swapExactOut", NoRoute, "No route"),)),
    Row("excludeContractMethods", {"excludeContractMethods": "swapExactOut"}, lambda was, now: was == now,
        (("swapExactIn", NoRoute, "No route"),)),
    Row("userAddress", {"userAddress": to_checksum(ORIGIN)}, lambda was, now: _exchanges(now) == {"beta"},
        (("0x1", InvalidInput, "userAddress"),)),
    Row("receiver", {"receiver": to_checksum(RECEIVER)}, lambda was, now: was == now,
        (("0x1", InvalidInput, "receiver"),)),
    Row("route", {"destToken": "DAI", "route": "WETH-USDC-DAI"}, lambda was, now: len(_way(now)) == 2,
        (("WETH-DAI-USDC-WBTC-USDC", InvalidInput, "at most|2 to 4"),)),
    Row("partnerFeeBps", {"partnerFeeBps": 9}, lambda was, now: (was.partner_fee, now.partner_fee) == (
        Decimal("0.01"), Decimal("0.09")), ((201, InvalidInput, "partnerFeeBps"),)),
    Row("partner", {"partner": "wallet"},
        lambda was, now: (was.partner_fee, now.partner_fee) == (Decimal("0.01"), Decimal("0.5"))),
    Row("maxImpact", {"maxImpact": "0.01"},
        lambda was, now: (was.max_impact_reached, now.max_impact_reached) == (False, True),
        (("1%25", InvalidInput, "maxImpact"),)),
    *(
        Row(name, {name: 100}, lambda was, now: int(now.dest_amount) == int(was.dest_amount) * 99 // 100,
            (("10001", InvalidInput, name),))
        for name in (
            "srcTokenTransferFee", "destTokenTransferFee",
            "srcTokenDexTransferFee", "destTokenDexTransferFee",
        )
    ),
    Row("version", {"version": "6.2"}, lambda was, now: (was.version, now.version) == ("5", "6.2"),
        (("6", InvalidInput, "version"),)),
    Row("excludeContractMethodsWithoutFeeModel", {"excludeContractMethodsWithoutFeeModel": "true"},
        lambda was, now: was == now, (("1", InvalidInput, "true or false"),)),
    Row("ignoreBadUsdPrice", {"destToken": "DAI", "ignoreBadUsdPrice": "true"},
        lambda was, now: not now.max_impact_reached),
]  # fmt: skip


def _shop() -> Shop:
    shop = a_shop()
    shop.blacklists["alpha"].add([ORIGIN], NOW_MS)
    return shop


def _prices(shop: Shop, sent: dict[str, Any]) -> PriceRoute:
    plain = {"srcToken": "WETH", "destToken": "USDC", "amount": ONE, "network": CHAIN_ID, **sent}
    return shop.prices("&".join(f"{name}={value}" for name, value in plain.items() if value is not None))


@pytest.mark.parametrize("row", PRICES, ids=lambda row: row.name)
def test_a_parameter_of_prices_does_what_the_spec_says(row: Row) -> None:
    shop = _shop()
    assert row.holds(_prices(shop, {}), _prices(shop, row.sent))


@pytest.mark.parametrize(
    ("name", "value", "kind", "match"),
    [(row.name, *refusal) for row in PRICES for refusal in row.refusals],
)
def test_a_parameter_of_prices_is_refused(
    name: str, value: Any, kind: type[RequestError], match: str
) -> None:
    with pytest.raises(kind, match=match):
        _prices(_shop(), {name: value})


def _params(index: int) -> Callable[[Any, Any], bool]:
    return lambda was, now: bool(was.params[0][index] != now.params[0][index])


def _same(was: Any, now: Any) -> bool:
    """The swap is the same, its orders apart: their nonces are always new."""
    return bool(was.params[0][:9] == now.params[0][:9])


BODY = [
    Row("priceRoute", {}, _same,
        (({}, RequestError, "Invalid priceRoute"), (None, InvalidInput, "priceRoute: missing"))),
    Row("orders", {"priceRoute": None, "orders": [sent(an_order())]},
        lambda was, now: (len(now.params[0][9][0][2]), was.method) == (1, now.method),
        (([sent(an_order())], InvalidInput, "orders: the body has a priceRoute already"),)),
    Row("side", {"side": "SELL"}, _same,
        (("BUY", InvalidInput, "side: expected the route's, SELL, got 'BUY'"),)),
    Row("srcToken", {"srcToken": "WETH"}, _same, (("DAI", InvalidInput, "srcToken"),)),
    Row("destToken", {"destToken": "USDC"}, _same, (("DAI", InvalidInput, "destToken"),)),
    Row("userAddress", {}, _same, ((None, InvalidInput, "missing"),)),
    Row("srcDecimals", {"srcDecimals": 18}, _same, ((6, NoRoute, "srcDecimals"),)),
    Row("destDecimals", {"destDecimals": 6}, _same, ((7, NoRoute, "destDecimals"),)),
    Row("srcAmount", {}, lambda was, now: now.params[0][2] == str(ONE), ((None, InvalidInput, "missing"),)),
    Row("destAmount", {"destAmount": "5"}, lambda was, now: now.params[0][3] == "5",
        (("9" * 30, InvalidInput, "destAmount"),)),
    Row("slippage", {"slippage": 5}, _params(3), ((None, RequestError, "missing slippage"),)),
    Row("txOrigin", {"txOrigin": to_checksum(ORIGIN)}, lambda was, now: len(now.params[0][9][0][2]) == 1,
        (("0x1", InvalidInput, "txOrigin"),)),
    Row("receiver", {"receiver": to_checksum(RECEIVER)}, _params(5), (("0x1", InvalidInput, "receiver"),)),
    Row("partner", {"partner": "wallet"}, _params(7)),
    Row("partnerAddress", {"partnerAddress": to_checksum(STRANGER), "partnerFeeBps": "9"}, _params(7),
        (("0x1", InvalidInput, "partnerAddress"),)),
    Row("partnerFeeBps", {"partnerFeeBps": "9"}, _params(7), ((201, InvalidInput, "partnerFeeBps"),)),
    Row("permit", {"permit": "0x01"}, _params(8), (("0x0102", InvalidInput, "permit"),)),
    Row("deadline", {"deadline": NOW_S + 5}, _params(6), ((NOW_S, OrderExpired, "deadline"),)),
    Row("isCapSurplus", {"isCapSurplus": False}, _params(7)),
    Row("takeSurplus", {"takeSurplus": True}, _params(7)),
    Row("isSurplusToUser", {"takeSurplus": True, "isSurplusToUser": True},
        lambda was, now: was.params[0][7] == now.params[0][7]),
    Row("isDirectFeeTransfer", {"isDirectFeeTransfer": True}, _params(7)),
]  # fmt: skip


async def _built(sent: dict[str, Any], query: str = "onlyParams=true") -> Any:
    shop = _shop()
    shop.chain.at_permit2 = ONE
    route = _prices(shop, {"version": "6.2"})
    body: dict[str, Any] = {
        "priceRoute": json.loads(encode(route)),
        "srcToken": "WETH",
        "destToken": "USDC",
        "userAddress": to_checksum(USER),
        "srcAmount": str(ONE),
        "slippage": 100,
        **sent,
    }
    raw = json.dumps({name: value for name, value in body.items() if value is not None}).encode()
    return await shop.desk.transaction(CHAIN_ID, query.encode(), raw, NOW_MS, KEYED, signatures())


@pytest.mark.parametrize("row", BODY, ids=lambda row: row.name)
async def test_a_field_of_transactions_does_what_the_spec_says(row: Row) -> None:
    assert row.holds(await _built({}), await _built(row.sent))


@pytest.mark.parametrize(
    ("name", "value", "kind", "match"),
    [(row.name, *refusal) for row in BODY for refusal in row.refusals],
)
async def test_a_field_of_transactions_is_refused(
    name: str, value: Any, kind: type[RequestError], match: str
) -> None:
    with pytest.raises(kind, match=match):
        await _built({name: value})


def _fields(built: TransactionEnvelope) -> set[str]:
    return set(json.loads(encode(built)))


ENVELOPE = {"from", "to", "value", "data", "gasPrice", "gas", "chainId"}
QUERY = {
    "gasPrice": ("gasPrice=7", ENVELOPE),
    "ignoreChecks": ("ignoreChecks=true", ENVELOPE - {"gas"}),
    "ignoreGasEstimate": ("ignoreGasEstimate=true", ENVELOPE - {"gas"}),
    "eip1559": ("eip1559=true", ENVELOPE - {"gasPrice"} | {"maxFeePerGas", "maxPriorityFeePerGas"}),
    "onlyParams": ("onlyParams=true", {"method", "params", "contract"}),
}


@pytest.mark.parametrize(("query", "fields"), QUERY.values(), ids=QUERY)
async def test_the_envelope_has_the_fields_of_the_spec(query: str, fields: set[str]) -> None:
    assert _fields(await _built({}, "")) == ENVELOPE
    built = await _built({}, query)
    assert set(json.loads(encode(built))) == fields
    assert isinstance(built, ContractParams if query.startswith("only") else TransactionEnvelope)


def _names(kind: type[Struct]) -> set[str]:
    return {field.encode_name for field in structs.fields(kind)}


def test_every_row_has_its_case() -> None:
    assert {row.name for row in PRICES} | {"chainId"} == _names(PricesQuery)
    # A consent is no member of the spec's, and changes nothing but the caller's share of makers' stock.
    assert {row.name for row in BODY} | {"consent"} == _names(TransactionBody)
    assert set(QUERY) == _names(TransactionQuery)

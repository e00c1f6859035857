"""Query strings into messages: every rule of the decoder, seen through parameters of spec 1 and 2."""

from decimal import Decimal

import msgspec
import pytest

from cambist.codecs.messages.market_messages import (
    PricesQuery,
    QuoteQuery,
    decode_prices_query,
    decode_quote_query,
    decode_swap_query,
)
from cambist.codecs.messages.query import query_decoder
from cambist.codecs.messages.vocabulary import MarketVersion, Mode, Side
from cambist.config.errors import InvalidInput
from cambist.config.limits import QUERY_BYTES_MAX, QUERY_PARAMETERS_MAX

NATIVE = "0xEeeeeEeeeEeEeeEeEeEeeEEEeeeeEeeeeeeeEEeE"
QUOTE = f"chainId=1&srcToken={NATIVE}&destToken=0xdef&amount=1000&srcDecimals=18&destDecimals=6".encode()
PRICES = b"srcToken=WETH&destToken=USDC&amount=5"


def refusal(query: bytes) -> InvalidInput:
    with pytest.raises(InvalidInput) as caught:
        decode_prices_query(query)
    return caught.value


def test_a_quote_with_its_required_parameters_has_the_defaults_of_the_spec() -> None:
    assert decode_quote_query(QUOTE) == QuoteQuery(
        chain_id=1,
        src_token=NATIVE,
        dest_token="0xdef",
        amount="1000",
        src_decimals=18,
        dest_decimals=6,
        mode=Mode.ALL,
        side=Side.SELL,
    )


@pytest.mark.parametrize(
    "name", ["chainId", "srcToken", "destToken", "amount", "srcDecimals", "destDecimals"]
)
def test_a_missing_required_parameter_is_named(name: str) -> None:
    without = b"&".join(pair for pair in QUOTE.split(b"&") if not pair.startswith(name.encode() + b"="))
    for query in (without, without + f"&{name}=".encode()):
        with pytest.raises(InvalidInput, match=f"{name}: missing"):
            decode_quote_query(query)


def test_an_empty_query_names_the_first_parameter_it_lacks() -> None:
    assert refusal(b"").field == "srcToken"


def test_token_texts_are_kept_as_they_came() -> None:
    lower = decode_quote_query(QUOTE.replace(NATIVE.encode(), NATIVE.lower().encode()))
    assert lower.src_token == NATIVE.lower()
    assert decode_quote_query(QUOTE).src_token == NATIVE


@pytest.mark.parametrize(("text", "side"), [("SELL", Side.SELL), ("buy", Side.BUY), ("Buy", Side.BUY)])
def test_side_comes_in_any_case(text: str, side: Side) -> None:
    assert decode_quote_query(QUOTE + f"&side={text}".encode()).side is side


@pytest.mark.parametrize(
    ("text", "mode"), [("all", Mode.ALL), ("Delta", Mode.DELTA), ("MARKET", Mode.MARKET)]
)
def test_mode_comes_in_any_case(text: str, mode: Mode) -> None:
    assert decode_quote_query(QUOTE + f"&mode={text}".encode()).mode is mode


@pytest.mark.parametrize(
    ("parameter", "said"),
    [
        ("side=HOLD", "side: expected one of SELL, BUY, got 'HOLD'"),
        ("side=%C5%BFell", "side: expected one of SELL, BUY"),
        ("version=7", "version: expected one of 5, 6.2, got '7'"),
        ("network=1.0", "network: expected an integer from 1"),
        ("network=0", "network: expected an integer from 1"),
        ("network=-1", "network: expected an integer from 1"),
        ("network=%2B1", "network: expected an integer from 1"),
        ("network=1_0", "network: expected an integer from 1"),
        ("network=%D9%A1", "network: expected an integer from 1"),
        ("network=9007199254740992", "network: expected an integer from 1 to 9007199254740991"),
        ("network=" + "9" * 5000, "network: expected an integer from 1"),
        ("srcDecimals=37", "srcDecimals: expected an integer from 0 to 36, got '37'"),
        ("srcTokenTransferFee=10001", "srcTokenTransferFee: expected an integer from 0 to 10000"),
        ("excludeRFQ=1", "excludeRFQ: expected true or false, got '1'"),
        ("excludeRFQ=yes", "excludeRFQ: expected true or false, got 'yes'"),
        ("maxImpact=1e2", "maxImpact: expected a decimal number, got '1e2'"),
        ("maxImpact=-1", "maxImpact: expected a decimal number"),
        ("maxImpact=NaN", "maxImpact: expected a decimal number"),
        ("maxImpact=.5", "maxImpact: expected a decimal number"),
        ("partner=" + "p" * 129, "partner: expected at most 128 characters"),
        ("route=%ff", "route: not valid UTF-8"),
        ("route=%ED%A0%80", "route: not valid UTF-8"),
        ("route=%4", "route: a percent sign without two hexadecimal digits"),
        ("srcToken=again", "srcToken: given twice"),
        ("srcToken[]=again", "srcToken[]: expected the spelling srcToken, got 'srcToken[]'"),
        ("includedexs=a", "includedexs: expected the spelling includeDEXS, got 'includedexs'"),
        ("includeDEXS[a]=b", "includeDEXS[a]: expected the spelling includeDEXS"),
        ("includeDEXS[=b", "includeDEXS[: expected the spelling includeDEXS"),
        ("includeDexs[]=b", "includeDexs[]: expected the spelling includeDEXS"),
        ("Partner=", "Partner: expected the spelling partner"),
        ("partner=&partner=", "partner: given twice"),
        ("network=1&chainId=10", "chainId: expected the same as network, 1, got 10"),
    ],
)
def test_a_bad_value_is_refused_by_name(parameter: str, said: str) -> None:
    assert said in refusal(PRICES + b"&" + parameter.encode()).detail


def test_everything_of_prices_at_once() -> None:
    query = (
        PRICES + b"&srcDecimals=18&destDecimals=6&side=BUY&network=137&otherExchangePrices=true"
        b"&includeDEXS=maker-a%2Cmaker-b&excludeDEXS=x,&excludeRFQ=TRUE&includeContractMethods=a,b"
        b"&excludeContractMethods=c&userAddress=0x1&receiver=0x2&route=a-b-c&partner=me&maxImpact=12.50"
        b"&srcTokenTransferFee=1&destTokenTransferFee=2&srcTokenDexTransferFee=3&destTokenDexTransferFee=4"
        b"&version=6.2&excludeContractMethodsWithoutFeeModel=True&ignoreBadUsdPrice=false"
    )
    assert decode_prices_query(query) == PricesQuery(
        src_token="WETH",
        dest_token="USDC",
        amount="5",
        src_decimals=18,
        dest_decimals=6,
        side=Side.BUY,
        network=137,
        other_exchange_prices=True,
        include_dexs=("maker-a", "maker-b"),
        exclude_dexs=("x",),
        exclude_rfq=True,
        include_contract_methods=("a", "b"),
        exclude_contract_methods=("c",),
        user_address="0x1",
        receiver="0x2",
        route="a-b-c",
        partner="me",
        max_impact=Decimal("12.50"),
        src_token_transfer_fee=1,
        dest_token_transfer_fee=2,
        src_token_dex_transfer_fee=3,
        dest_token_dex_transfer_fee=4,
        version=MarketVersion.V6_2,
        exclude_contract_methods_without_fee_model=True,
        ignore_bad_usd_price=False,
    )


def test_a_percentage_is_exact() -> None:
    impact = decode_prices_query(PRICES + b"&maxImpact=0.123456789012345678901234567890").max_impact
    assert str(impact) == "0.123456789012345678901234567890"


@pytest.mark.parametrize(
    ("query", "chain"),
    [(b"", 1), (b"&network=10", 10), (b"&chainId=56", 56), (b"&network=10&chainId=10", 10)],
)
def test_prices_take_chain_id_as_well_as_network(query: bytes, chain: int) -> None:
    assert decode_prices_query(PRICES + query).chain == chain


def test_swap_needs_the_user() -> None:
    with pytest.raises(InvalidInput, match="userAddress: missing"):
        decode_swap_query(PRICES)
    swap = decode_swap_query(PRICES + b"&userAddress=0x1&slippage=100&takeSurplus=true&network=10")
    assert (swap.user_address, swap.slippage, swap.take_surplus, swap.chain) == ("0x1", 100, True, 10)
    assert swap.is_cap_surplus


def test_unknown_parameters_and_empty_ones_are_ignored() -> None:
    plain = decode_prices_query(PRICES)
    assert decode_prices_query(PRICES + b"&apiKey=1&apiKey=2&x&&=&partner=&network=&junk=%ff") == plain


def test_names_and_values_are_percent_decoded_and_plus_is_a_space() -> None:
    query = decode_prices_query(b"src%54oken=%E2%82%AC+1&destToken=a%2Bb&amount=5")
    assert (query.src_token, query.dest_token) == ("€ 1", "a+b")


def test_a_name_in_another_case_is_refused_with_the_right_one() -> None:
    assert "expected the spelling srcToken" in refusal(b"SRCTOKEN=a&destToken=b&amount=1").detail


@pytest.mark.parametrize(
    "written",
    [
        "includeDEXS=a,b,c",
        "includeDEXS=a&includeDEXS=b&includeDEXS=c",
        "includeDEXS[]=a&includeDEXS[]=b&includeDEXS[]=c",
        "includeDEXS[0]=a&includeDEXS[1]=b&includeDEXS[2]=c",
        "includeDEXS%5B%5D=a&includeDEXS%5B%5D=b%2Cc",
        "includeDEXS[]=a&includeDEXS=&includeDEXS=,b&includeDEXS[]=c",
    ],
)
def test_a_list_comes_as_axios_qs_and_php_write_it(written: str) -> None:
    """Source: qs `arrayFormat` repeat, brackets and indices; axios `paramsSerializer.indexes`."""
    assert decode_prices_query(PRICES + b"&" + written.encode()).include_dexs == ("a", "b", "c")


def test_an_unlike_parameter_is_ignored() -> None:
    assert decode_prices_query(PRICES + b"&x[]=1&x=2&filter[srcToken]=3&srcTokens=4").amount == "5"


def test_limits_on_bytes_and_parameters() -> None:
    padding = b"&x=" + b"x" * (QUERY_BYTES_MAX - len(PRICES) - 3)
    assert decode_prices_query(PRICES + padding).amount == "5"
    assert "longer than 8192 bytes" in refusal(PRICES + padding + b"x").detail
    many = PRICES + b"&x=1" * (QUERY_PARAMETERS_MAX - 3)
    assert decode_prices_query(many).amount == "5"
    assert "more than 100 query parameters" in refusal(many + b"&x=1").detail


def test_a_type_that_no_query_can_carry_is_refused_when_the_decoder_is_made() -> None:
    class Nested(msgspec.Struct):
        inner: dict[str, int]

    with pytest.raises(TypeError, match="query string"):
        query_decoder(Nested)

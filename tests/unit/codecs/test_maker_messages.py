"""Messages of makers (spec 3) on the wire, as a maker sends them and as the venue reads them."""

from decimal import Decimal
from typing import Any

import pytest
from msgspec import UNSET

from cambist.codecs.messages.maker_messages import (
    BlacklistBody,
    Decoded,
    ErrorBody,
    FirmOrder,
    FirmRequest,
    FirmResponse,
    Pair,
    PairsBody,
    PriceGrid,
    PricesBody,
    StreamMessage,
    Token,
    TokensBody,
    decode_blacklist,
    decode_error_body,
    decode_firm_request,
    decode_firm_response,
    decode_pairs,
    decode_prices,
    decode_stream_message,
    decode_tokens,
    encode_firm_quote,
)
from cambist.codecs.messages.vocabulary import TokenType
from cambist.codecs.messages.wire import encode
from cambist.config.errors import InvalidInput
from cambist.config.limits import REFUSED_ENTRIES_MAX

WETH = Token(
    symbol="WETH", name="Wrapped Ether", description="d", address="0xc0", decimals=18, type=TokenType.ERC20
)
ORDER = FirmOrder("7", 1700000000, "0xa", "0xb", "0xc", "0xd", "10", "20", "0xee")
REQUEST = b'{"makerAsset":"0xa","takerAsset":"0xb","userAddress":"0xc","takerAddress":"0xd"'


# --- Messages of our maker ----------------------------------------------------------------------------


def test_tokens_as_sent() -> None:
    assert encode(TokensBody({"WETH": WETH})) == (
        b'{"tokens":{"WETH":{"symbol":"WETH","name":"Wrapped Ether","description":"d","address":"0xc0",'
        b'"decimals":18,"type":"ERC20"}}}'
    )


def test_pairs_as_sent() -> None:
    assert encode(PairsBody({"WETH/USDC": Pair("WETH", "USDC", Decimal(1000))})) == (
        b'{"pairs":{"WETH/USDC":{"base":"WETH","quote":"USDC","liquidityUSD":1000}}}'
    )


def test_prices_as_sent_keep_an_empty_side_apart_from_an_absent_one() -> None:
    both = PriceGrid(bids=(("1800.5", "1.2"), ("1800", "3")), asks=())
    body = PricesBody({"A/B": both, "C/D": PriceGrid(), "E/F": PriceGrid(asks=(("1", "2"),))})
    assert encode(body) == (
        b'{"prices":{"A/B":{"bids":[["1800.5","1.2"],["1800","3"]],"asks":[]},"C/D":{},'
        b'"E/F":{"asks":[["1","2"]]}}}'
    )


def test_a_message_is_sent_only_when_set() -> None:
    assert encode(BlacklistBody(("0x1",))) == b'{"blacklist":["0x1"]}'
    assert encode(BlacklistBody(())) == b'{"blacklist":[]}'
    assert encode(BlacklistBody((), message="hello")) == b'{"blacklist":[],"message":"hello"}'


def test_a_firm_quote_as_sent() -> None:
    assert encode(FirmResponse(order=ORDER)) == (
        b'{"order":{"nonceAndMeta":"7","expiry":1700000000,"makerAsset":"0xa","takerAsset":"0xb",'
        b'"maker":"0xc","taker":"0xd","makerAmount":"10","takerAmount":"20","signature":"0xee"}}'
    )


def test_a_blacklisted_user_gets_a_success_without_order() -> None:
    assert encode(FirmResponse()) == b"{}"
    assert encode(FirmResponse(message="blacklisted")) == b'{"message":"blacklisted"}'


def test_an_error_as_sent() -> None:
    assert encode(ErrorBody("no price")) == b'{"error":"no price"}'
    assert decode_error_body(b'{"error":"no price","code":7}') == ErrorBody("no price")


def test_a_stream_message_carries_only_what_it_has() -> None:
    assert encode(StreamMessage()) == b"{}"
    full = StreamMessage({"WETH": WETH}, {}, {"A/B": PriceGrid()}, ("0x1",), "hi")
    assert list(encode(full)[:10]) == list(b'{"tokens":')
    assert encode(StreamMessage(prices={"A/B": PriceGrid(bids=())})) == b'{"prices":{"A/B":{"bids":[]}}}'


# --- Messages that the venue reads ---------------------------------------------------------------------


def test_prices_as_read() -> None:
    raw = (
        b'{"prices":{"A/B":{"bids":[["1","2"]],"asks":[]},"C/D":{},"E/F":{"asks":[["3","4"]]}},"message":"m"}'
    )
    read = decode_prices(raw)
    assert read.refused == {}
    assert read.body.prices["A/B"] == PriceGrid(bids=(("1", "2"),), asks=())
    assert read.body.prices["C/D"] == PriceGrid(bids=UNSET, asks=UNSET)
    assert read.body.prices["E/F"].bids is UNSET
    assert read.body.message == "m"


@pytest.mark.parametrize(
    ("grid", "reason"),
    [
        (b'{"bids":[["1","2"],["1"]]}', "bids[1]: expected an array of length 2"),
        (b'{"bids":[["1","2","3"]]}', "bids[0]: expected an array of length 2"),
        (b'{"asks":[["1",2]]}', "asks[0][1]: expected a string, got an integer"),
        (b'{"asks":{}}', "asks: expected an array, got an object"),
        (b"[1]", "expected an object, got an array"),
        (b"0", "expected an object, got an integer"),
    ],
)
def test_a_bad_grid_costs_only_its_pair(grid: bytes, reason: str) -> None:
    read = decode_prices(b'{"prices":{"A/B":{"bids":[["1","2"]]},"BAD/X":%s,"C/D":{}}}' % grid)
    assert read.body.prices == {"A/B": PriceGrid(bids=(("1", "2"),)), "C/D": PriceGrid()}
    assert list(read.refused) == ["prices.BAD/X"]
    assert reason in read.refused["prices.BAD/X"]


@pytest.mark.parametrize(
    ("token", "reason"),
    [
        (b'{"address":"0x1","decimals":18,"type":"ERC721"}', "type: expected one of ERC20, got 'ERC721'"),
        (
            b'{"address":"0x1","decimals":"18.0","type":"ERC20"}',
            "decimals: expected an integer, got a string",
        ),
        (b'{"address":"0x1","decimals":37,"type":"ERC20"}', "decimals: expected an integer <= 36"),
        (b'{"address":"0x1","decimals":-1,"type":"ERC20"}', "decimals: expected an integer >= 0"),
        (b'{"decimals":18,"type":"ERC20"}', "address: missing"),
    ],
)
def test_a_bad_token_costs_only_itself(token: bytes, reason: str) -> None:
    read = decode_tokens(b'{"tokens":{"BAD":%s,"OK":{"address":"0x1","decimals":0,"type":"ERC20"}}}' % token)
    assert list(read.body.tokens) == ["OK"]
    assert reason in read.refused["tokens.BAD"]


@pytest.mark.parametrize("number", [b"1", b"0", b"1234567.89", b"1e6"])
def test_liquidity_is_any_number_and_exact(number: bytes) -> None:
    read = decode_pairs(b'{"pairs":{"A/B":{"base":"A","quote":"B","liquidityUSD":%s}}}' % number)
    assert read.body.pairs["A/B"] == Pair("A", "B", Decimal(number.decode()))


@pytest.mark.parametrize("number", [b"true", b'"NaN"', b'"Infinity"', b"1e400", b"1e-400"])
def test_a_senseless_liquidity_costs_only_its_pair(number: bytes) -> None:
    read = decode_pairs(b'{"pairs":{"A/B":{"base":"A","quote":"B","liquidityUSD":%s}}}' % number)
    assert read.body.pairs == {}
    assert "liquidityUSD: expected a number" in read.refused["pairs.A/B"]


def test_a_bad_blacklist_entry_costs_only_itself() -> None:
    read = decode_blacklist(b'{"blacklist":["0x1",7,"0x2"]}')
    assert read.body.blacklist == ("0x1", "0x2")
    assert list(read.refused) == ["blacklist.1"]


def test_a_stream_message_as_read() -> None:
    read = decode_stream_message(
        b'{"tokens":{"A":{"address":"0x1","decimals":6,"type":"ERC20"},"B":{}},"pairs":{},'
        b'"prices":{"A/B":{"asks":[]},"C/D":7},"blacklist":["0x1",{}],"message":null,"version":3}'
    )
    assert list(read.refused) == ["tokens.B", "prices.C/D", "blacklist.1"]
    assert read.body.prices == {"A/B": PriceGrid(asks=())}
    assert read.body.blacklist == ("0x1",)
    assert read.body.pairs == {}
    assert decode_stream_message(b"{}").body == StreamMessage()


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b"{}", "prices: missing"),
        (b'{"prices":[{}]}', "prices: expected an object, got an array"),
        (b'{"prices":{"A/B":{"bids":7}}', "the JSON ends too early"),
        (b'{"prices":{},"message":7}', "message: expected a string or null, got an integer"),
        (b'{"error":"closed"}', "prices: missing"),
    ],
)
def test_a_body_that_is_no_price_body_is_refused_whole(raw: bytes, said: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        decode_prices(raw)
    assert said in caught.value.detail


def test_a_body_of_noise_is_refused_whole() -> None:
    noise = b'{"prices":{%s}}' % b",".join(b'"P%d":7' % n for n in range(REFUSED_ENTRIES_MAX + 1))
    with pytest.raises(InvalidInput, match="more than 1000 bad entries"):
        decode_prices(noise)


def test_a_firm_request_as_read_ignores_what_others_add() -> None:
    read = decode_firm_request(REQUEST + b',"makerAmount":"5","partner":"anon","special":true}')
    assert read == FirmRequest(
        maker_asset="0xa", taker_asset="0xb", maker_amount="5", user_address="0xc", taker_address="0xd"
    )
    assert encode(read) == (
        b'{"makerAsset":"0xa","takerAsset":"0xb","makerAmount":"5","userAddress":"0xc","takerAddress":"0xd"}'
    )
    assert decode_firm_request(REQUEST + b',"makerAmount":null,"takerAmount":"5"}').taker_amount == "5"


def test_a_firm_amount_is_never_a_number() -> None:
    with pytest.raises(InvalidInput, match="takerAmount: expected a string or null, got an integer"):
        decode_firm_request(REQUEST + b',"takerAmount":5}')


def test_a_firm_response_as_read() -> None:
    assert decode_firm_response(encode(FirmResponse(order=ORDER))).order == ORDER
    assert decode_firm_response(b'{"message":"blacklisted","x":1}') == FirmResponse(message="blacklisted")
    assert decode_firm_response(b'{"order":null}').order is None
    with pytest.raises(InvalidInput, match=r"order\.expiry: expected an integer, got a string"):
        decode_firm_response(encode(FirmResponse(order=ORDER)).replace(str(ORDER.expiry).encode(), b'"soon"'))


# --- As languages write them ---------------------------------------------------------------------------

DIALECTS = {
    "Go: nil slices in a grid": (
        decode_prices,
        b'{"prices":{"A/B":{"bids":null,"asks":null}}}',
        PricesBody({"A/B": PriceGrid()}),
    ),
    "Go: a nil grid": (decode_prices, b'{"prices":{"A/B":null}}', PricesBody({"A/B": PriceGrid()})),
    "Go: a nil map": (decode_prices, b'{"prices":null}', PricesBody({})),
    "Go: a nil slice": (decode_blacklist, b'{"blacklist":null,"message":""}', BlacklistBody((), "")),
    "PHP: an empty array": (decode_prices, b'{"prices":[]}', PricesBody({})),
    "PHP: an empty grid": (decode_prices, b'{"prices":{"A/B":[ ]}}', PricesBody({"A/B": PriceGrid()})),
    "PHP: no pairs on a socket": (
        decode_stream_message,
        b'{"pairs":[],"prices":{"A/B":[]}}',
        StreamMessage(pairs={}, prices={"A/B": PriceGrid()}),
    ),
    "Java: nulls for what is absent": (
        decode_stream_message,
        (
            b'{"tokens":null,"pairs":null,"prices":{"A/B":{"bids":[["1","2"]],"asks":null}},'
            b'"blacklist":null,"message":null}'
        ),
        StreamMessage(prices={"A/B": PriceGrid(bids=(("1", "2"),))}),
    ),
    "Java: a token without texts": (
        decode_tokens,
        (
            b'{"tokens":{"A":{"symbol":null,"name":null,"description":null,"address":"0x1","decimals":6,'
            b'"type":"ERC20"}}}'
        ),
        TokensBody({"A": Token(address="0x1", decimals=6, type=TokenType.ERC20)}),
    ),
    "Lua: a whole number with a fraction": (
        decode_tokens,
        b'{"tokens":{"A":{"address":"0x1","decimals":18.0,"type":"ERC20"}}}',
        TokensBody({"A": Token(address="0x1", decimals=18, type=TokenType.ERC20)}),
    ),
    "JavaScript: a BigInt as text": (
        decode_tokens,
        b'{"tokens":{"A":{"address":"0x1","decimals":"18","type":"ERC20"}}}',
        TokensBody({"A": Token(address="0x1", decimals=18, type=TokenType.ERC20)}),
    ),
    "anybody: a pair without liquidity": (
        decode_pairs,
        b'{"pairs":{"A/B":{"base":"A","quote":"B"},"C/D":{"base":"C","quote":"D","liquidityUSD":null}}}',
        PairsBody({"A/B": Pair("A", "B"), "C/D": Pair("C", "D")}),
    ),
}
"""Bodies as encoding/json, json_encode, Jackson, dkjson and JSON.stringify write them, and what they mean."""


@pytest.mark.parametrize(("decode", "raw", "body"), DIALECTS.values(), ids=DIALECTS)
def test_a_body_as_a_language_writes_it_costs_no_entry(decode: Any, raw: bytes, body: object) -> None:
    assert decode(raw) == Decoded(body, {})


def test_a_firm_order_as_languages_write_it() -> None:
    raw = encode(FirmResponse(order=ORDER))
    for written in (f'"{ORDER.expiry}"', f"{ORDER.expiry}.0", f"{ORDER.expiry}.000e0"):
        said = raw.replace(f'"expiry":{ORDER.expiry}'.encode(), f'"expiry":{written}'.encode())
        assert decode_firm_response(said).order == ORDER
    assert decode_firm_response(b'{"order":null,"error":null,"message":null}') == FirmResponse(order=None)
    assert decode_firm_response(b"[]") == FirmResponse()


def test_raw_units_stay_strict() -> None:
    raw = encode(FirmResponse(order=ORDER))
    said = raw.replace(
        f'"makerAmount":"{ORDER.maker_amount}"'.encode(), f'"makerAmount":{ORDER.maker_amount}'.encode()
    )
    assert said != raw
    with pytest.raises(InvalidInput, match=r"order\.makerAmount: expected a string, got an integer"):
        decode_firm_response(said)


def test_one_message_holds_a_bounded_number_of_entries() -> None:
    pairs = ",".join(f'"P{number}":{{}}' for number in range(10_001))
    with pytest.raises(InvalidInput, match="prices: expected an object of length <= 10000"):
        decode_prices(f'{{"prices":{{{pairs}}}}}'.encode())
    with pytest.raises(InvalidInput, match="blacklist: expected an array of length <= 100000"):
        decode_blacklist(b'{"blacklist":[' + b'"0x",' * 100_000 + b"1]}")


def test_a_side_too_long_costs_only_its_pair() -> None:
    side = ",".join(['["1","1"]'] * 1_001)
    decoded = decode_prices(f'{{"prices":{{"A/B":{{"bids":[{side}]}},"C/D":{{"bids":[]}}}}}}'.encode())
    assert list(decoded.body.prices) == ["C/D"]
    assert "length <= 1000" in decoded.refused["prices.A/B"]


def test_the_fast_encoder_of_a_quote_says_the_same() -> None:
    members = (
        2**255 + 7,
        1_795_000_150,
        "0x" + "Ab" * 20,
        "0x" + "12" * 20,
        "0x" + "cd" * 20,
        "0x" + "ef" * 20,
    )
    signature = bytes(range(65))
    for maker_amount, taker_amount in (("007", 12), (5, "10"), (2**256 - 1, 1)):
        order = FirmOrder(
            str(members[0]), *members[1:], str(maker_amount), str(taker_amount), f"0x{signature.hex()}"
        )
        assert encode_firm_quote(*members, maker_amount, taker_amount, signature) == encode(
            FirmResponse(order)
        )

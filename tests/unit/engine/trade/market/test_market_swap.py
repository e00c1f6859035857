"""GET /swap: a price and its transaction in one answer, by the rules of both."""

import pytest
from msgspec import UNSET

from cambist.codecs.contracts.router_calldata import SWAP_EXACT_OUT
from cambist.codecs.contracts.router_decoding import decode_swap
from cambist.codecs.messages.market_messages import SwapResponse, TransactionEnvelope
from cambist.config.errors import InvalidInput, MissingSlippage, OrderExpired, RequestError
from cambist.crypto.addresses import to_checksum
from cambist.crypto.hexadecimal import parse_hex
from support.venue.admitting import signatures
from support.venue.market_place import (
    CHAIN_ID,
    KEYED,
    NOW_MS,
    ONE,
    ORIGIN,
    PARTNER,
    ROUTER,
    USER,
    Shop,
    a_shop,
)

ENDS = f"srcToken=WETH&destToken=USDC&network={CHAIN_ID}"
PLAIN = f"{ENDS}&amount={ONE}"
SWAP = f"{PLAIN}&userAddress={to_checksum(USER)}"


async def swap(shop: Shop, query: str) -> SwapResponse:
    return await shop.desk.swap(query.encode(), NOW_MS, KEYED, signatures())


async def test_a_swap_is_a_price_and_its_transaction_without_gas() -> None:
    shop = a_shop()
    shop.chain.allowed = 0
    answer = await swap(shop, SWAP + "&slippage=100&partner=wallet&partnerFeeBps=25")
    assert answer.price_route.version == "6.2"
    assert (answer.price_route.partner, int(answer.price_route.partner_fee * 100)) == ("wallet", 75)
    assert answer.tx_params.gas is UNSET
    assert answer.tx_params.gas_price == "1100000000"
    assert answer.tx_params.to == to_checksum(ROUTER)
    data = parse_hex(answer.tx_params.data, "data")
    assert int.from_bytes(data[4 + 32 * 8 : 4 + 32 * 9], "big") == (
        int.from_bytes(PARTNER, "big") << 96 | 1 << 9 | 75
    )
    built = await shop.build(
        answer.price_route, {"srcAmount": str(ONE), "slippage": 100}, "ignoreChecks=true"
    )
    assert isinstance(built, TransactionEnvelope)
    assert len(built.data) == len(answer.tx_params.data)


async def test_a_swap_that_buys() -> None:
    answer = await swap(
        a_shop(), f"{ENDS}&amount=1000000&side=BUY&userAddress={to_checksum(USER)}&slippage=0"
    )
    assert parse_hex(answer.tx_params.data, "data")[:4] == SWAP_EXACT_OUT


@pytest.mark.parametrize(
    ("query", "kind", "match"),
    [
        (SWAP, MissingSlippage, "^missing slippage"),
        (PLAIN + "&slippage=1", InvalidInput, "userAddress: missing"),
        (SWAP + "&slippage=1&version=5", InvalidInput, r"version: expected 6\.2"),
        (SWAP + "&slippage=10001", InvalidInput, "slippage"),
        (SWAP + "&slippage=1&receiver=x", InvalidInput, "receiver"),
        (SWAP + "&slippage=1&txOrigin=x", InvalidInput, "txOrigin"),
        (SWAP + "&slippage=1&deadline=1", OrderExpired, "deadline"),
    ],
)
async def test_a_swap_is_refused_by_the_same_rules(query: str, kind: type[RequestError], match: str) -> None:
    with pytest.raises(kind, match=match):
        await swap(a_shop(), query)


async def test_a_swap_leaves_out_makers_that_blacklisted_its_origin() -> None:
    shop = a_shop()
    shop.blacklists["alpha"].add([ORIGIN], NOW_MS)
    await swap(shop, SWAP + f"&slippage=1&txOrigin={to_checksum(ORIGIN)}")
    assert shop.firm.asked[-1][0].makers() == {"beta"}


@pytest.mark.parametrize("fee_bps", [0, 1, 2, 200])
async def test_a_fee_that_is_asked_for_goes_to_the_address_that_is_named(fee_bps: int) -> None:
    """A fee of one basis point is also the default: without a requested fee, the venue gets it."""
    query = f"&slippage=100&partnerAddress={to_checksum(PARTNER)}&partnerFeeBps={fee_bps}"
    answer = await swap(a_shop(), SWAP + query)
    _, built = decode_swap(parse_hex(answer.tx_params.data, "data"))
    assert built.partner_and_fee >> 96 == (int.from_bytes(PARTNER, "big") if fee_bps else 0)
    assert built.partner_and_fee & 0xFF == (fee_bps or 1) == int(answer.price_route.partner_fee * 100)

"""Receivers that would swallow tokens, and amounts at the end of the number range."""

from fractions import Fraction

import pytest

from cambist.codecs.contracts.router_decoding import decode_swap
from cambist.codecs.messages.market_messages import TransactionEnvelope
from cambist.config.errors import InvalidInput, NoRoute
from cambist.config.limits import NATIVE_PLACEHOLDER, UINT256_MAX
from cambist.crypto.addresses import to_checksum
from cambist.crypto.hexadecimal import parse_hex
from support.venue.market_place import CHAIN_ID, DAI, PARTNER, USDC, WBTC, WETH, Shop, a_shop

SALE = f"srcToken=USDC&destToken=ETH&amount={10**9}&network={CHAIN_ID}&version=6.2"


@pytest.mark.parametrize("receiver", [*map(to_checksum, (WETH, USDC, DAI, WBTC)), NATIVE_PLACEHOLDER.lower()])
async def test_a_token_is_no_receiver(receiver: str) -> None:
    """A transfer to the wrapped native token even credits the Router, where no account can claim it."""
    shop = a_shop()
    with pytest.raises(InvalidInput, match="receiver"):
        await shop.build(shop.prices(SALE), {"srcAmount": str(10**9), "slippage": 100, "receiver": receiver})


@pytest.mark.parametrize("below", [0, 1, UINT256_MAX // 10_001 - 1])
async def test_a_purchase_whose_fee_is_beyond_256_bits_is_no_route(below: int) -> None:
    shop = costing(UINT256_MAX - below)
    with pytest.raises(NoRoute):
        shop.prices(f"srcToken=WETH&destToken=USDC&amount=1&side=BUY&network={CHAIN_ID}&version=6.2")


@pytest.mark.parametrize("below", [1, 0])
async def test_a_purchase_of_256_bits_with_its_fee_is_built(below: int) -> None:
    shop = costing(UINT256_MAX * 10_000 // 10_001 + 1 - below)
    route = shop.prices(f"srcToken=WETH&destToken=USDC&amount=1&side=BUY&network={CHAIN_ID}&version=6.2")
    shop.chain.tokens = shop.chain.allowed = UINT256_MAX
    built = await shop.build(route, {"destAmount": "1", "slippage": 10_000})
    assert isinstance(built, TransactionEnvelope)
    _, swap = decode_swap(parse_hex(built.data, "data"))
    assert swap.src_amount == UINT256_MAX
    assert swap.expected_amount == int(route.src_amount) == UINT256_MAX - below


async def test_a_purchase_that_a_fee_of_its_build_takes_beyond_256_bits_is_no_route() -> None:
    shop = costing(UINT256_MAX * 10_000 // 10_001)
    route = shop.prices(f"srcToken=WETH&destToken=USDC&amount=1&side=BUY&network={CHAIN_ID}&version=6.2")
    shop.chain.tokens = shop.chain.allowed = UINT256_MAX
    fee = {"partnerAddress": to_checksum(PARTNER), "partnerFeeBps": 100}
    with pytest.raises(NoRoute, match=r"2\^256 - 1"):
        await shop.build(route, {"destAmount": "1", "slippage": 0, **fee})


def costing(amount: int) -> Shop:
    """A shop in which a raw unit of USDC costs `amount` raw units of WETH."""
    shop = a_shop()
    shop.finder.rates[(WETH, USDC)] = Fraction(1, amount)
    return shop

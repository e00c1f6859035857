"""Surplus counts from the amount that the Router would hold if every fill came as quoted: no quoted amount,
and no tax of a token, may be shared as a surplus.
"""

from typing import Any

import pytest

from cambist.codecs.contracts.router_calldata import PAYS_DIRECTLY, RouterSwap
from cambist.codecs.contracts.router_decoding import decode_swap
from cambist.codecs.eip712_orders.partner_and_fee import unpack_partner_and_fee
from cambist.codecs.messages.market_messages import TransactionEnvelope
from cambist.codecs.messages.vocabulary import Side
from cambist.crypto.hexadecimal import parse_hex
from cambist.engine.chain.proceeds import of_purchase, of_sale
from support.venue.market_place import CHAIN_ID, ONE, Shop, a_shop

USDC_AMOUNT = 2_500 * 10**6
TAXES = ("", "&destTokenTransferFee=1000", "&destTokenDexTransferFee=300", "&srcTokenTransferFee=500",
         "&srcTokenDexTransferFee=200", "&destTokenTransferFee=1000&destTokenDexTransferFee=300",
         "&srcTokenTransferFee=500&srcTokenDexTransferFee=200")  # fmt: skip
SHARING = {"takeSurplus": True, "isCapSurplus": False, "slippage": 100}


def taxed(amount: int, bps: int) -> int:
    return amount * (10_000 - bps) // 10_000


async def built(shop: Shop, asked: str, body: dict[str, Any]) -> tuple[Side, RouterSwap]:
    envelope = await shop.build(shop.prices(asked), {**body, **SHARING})
    assert isinstance(envelope, TransactionEnvelope)
    return decode_swap(parse_hex(envelope.data, "data"))


@pytest.mark.parametrize("taxes", TAXES)
@pytest.mark.parametrize("partner", ["", "&partner=wallet"])
async def test_a_sale_as_it_was_quoted_has_no_surplus(taxes: str, partner: str) -> None:
    shop = a_shop()
    asked = f"srcToken=WETH&destToken=USDC&amount={ONE}&network={CHAIN_ID}&version=6.2{partner}{taxes}"
    side, swap = await built(shop, asked, {"srcAmount": str(ONE)})
    assert side is Side.SELL
    plan, wanted, _, _ = shop.firm.asked[0]
    terms = unpack_partner_and_fee(swap.partner_and_fee & ~PAYS_DIRECTLY)
    gross = taxed(plan.paths[0].hops[-1].dest_amount, wanted.taxes.dest_dex)
    cut = of_sale(gross, swap.expected_amount, swap.dest_amount, terms)
    assert cut.share == 0
    quoted = int(shop.prices(asked).dest_amount)
    assert quoted - 1 <= taxed(gross - cut.fee, wanted.taxes.dest) <= quoted + 1
    better = of_sale(gross + 10**6, swap.expected_amount, swap.dest_amount, terms)
    assert better.share == (10**6 - (better.fee - cut.fee)) // 2, "what is better than quoted is shared"


@pytest.mark.parametrize("taxes", TAXES)
@pytest.mark.parametrize("partner", ["", "&partner=wallet"])
async def test_a_purchase_as_it_was_quoted_has_no_surplus(taxes: str, partner: str) -> None:
    shop = a_shop()
    asked = (
        f"srcToken=WETH&destToken=USDC&amount={USDC_AMOUNT}&side=BUY&network={CHAIN_ID}&version=6.2"
        f"{partner}{taxes}"
    )
    side, swap = await built(shop, asked, {"destAmount": str(USDC_AMOUNT)})
    assert side is Side.BUY
    plan, _, _, _ = shop.firm.asked[0]
    terms = unpack_partner_and_fee(swap.partner_and_fee & ~PAYS_DIRECTLY)
    cut = of_purchase(plan.src_amount, swap.expected_amount, swap.src_amount, terms)
    assert cut is not None
    assert cut.share == 0
    assert plan.src_amount + cut.fee == swap.expected_amount

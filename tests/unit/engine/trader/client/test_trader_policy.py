"""A trader's key signs transactions to the trusted contract only, and trades on its own chain only."""

from typing import Any

import pytest

from cambist.codecs.messages.vocabulary import OrderType, Side
from cambist.config.errors import PolicyError
from cambist.crypto.secp256k1 import SigningKey
from cambist.engine.chain.port import EthCall
from cambist.engine.dev.embedded.embedded import EmbeddedChain
from cambist.engine.trader.client.allowing import Allowing, MissingAllowance
from cambist.engine.trader.client.order.order_placing import OrderPlacer
from cambist.engine.trader.client.order_terms import OrderWish
from cambist.engine.trader.client.otc.otc_posting import OtcPoster
from cambist.engine.trader.client.otc.otc_terms import OtcWish
from cambist.engine.trader.client.swap.swapping import Swapper
from cambist.engine.trader.client.terms import TradedToken, Wish
from cambist.engine.trader.client.trader import Trader

pytestmark = pytest.mark.needs("pyrevm")

CHAIN_ID = 31_337
KEY = SigningKey(b"\7" * 32)
CONTRACT, OTHER = b"\x42" * 20, b"\x43" * 20
SRC, DEST = TradedToken(b"\x51" * 20, "SRC", 18), TradedToken(b"\xd5" * 20, "DEST", 6)
UNUSED: Any = None  # a venue that must not be asked


@pytest.fixture
def trader() -> Trader:
    chain = EmbeddedChain(CHAIN_ID, lambda: 1_800_000_000, {KEY.address: 10**18})
    return Trader(chain=chain, key=KEY, wall_s=lambda: 0, tell=lambda _: None)


async def test_a_transaction_goes_to_the_trusted_contract_within_its_value(trader: Trader) -> None:
    receipt = await trader.send("deposit", EthCall(CONTRACT, b"", KEY.address, 5), CONTRACT, value_max_wei=5)
    assert receipt.succeeded
    assert await trader.chain.balance(CONTRACT) == 5


@pytest.mark.parametrize(
    ("to", "value_wei", "says"),
    [(OTHER, 5, "contract 0x4343"), (CONTRACT, 6, "value in wei 6: this key signs at most 5")],
)
async def test_a_transaction_elsewhere_or_of_more_value_is_not_signed(
    trader: Trader, to: bytes, value_wei: int, says: str
) -> None:
    with pytest.raises(PolicyError, match=says):
        await trader.send("deposit", EthCall(to, b"", KEY.address, value_wei), CONTRACT, value_max_wei=5)
    assert await trader.chain.nonce(KEY.address) == 0
    assert await trader.chain.balance(to) == 0


@pytest.mark.parametrize("allowing", Allowing)
async def test_an_approval_is_sent_if_an_allowance_is_missing_and_no_permit_replaces_it(
    trader: Trader, allowing: Allowing
) -> None:
    account = Trader(chain=trader.chain, key=KEY, wall_s=lambda: 0, tell=lambda _: None, allowing=allowing)
    missing = MissingAllowance(SRC.address, CONTRACT, 7, 0)
    assert allowing.approves(missing) == (allowing is not Allowing.PERMIT)
    assert not allowing.approves(None)
    await account.approve(None)
    assert await trader.chain.nonce(KEY.address) == 0
    await account.approve(missing)
    assert await trader.chain.nonce(KEY.address) == (allowing is not Allowing.PERMIT)


async def test_a_wish_of_another_chain_is_refused_before_the_venue_is_asked(trader: Trader) -> None:
    ends: dict[str, Any] = {"chain_id": CHAIN_ID + 1, "src": SRC, "dest": DEST}
    swap = Wish(**ends, side=Side.SELL, amount=1, slippage_bps=50, user=KEY.address, receiver=KEY.address)
    order = OrderWish(
        **ends,
        side=Side.SELL,
        amount=1,
        slippage_bps=50,
        limit_amount=None,
        type=OrderType.MARKET,
        owner=KEY.address,
        beneficiary=KEY.address,
        partner="",
        life_s=60,
    )
    otc = OtcWish(**ends, src_amount=1, dest_amount=1, maker=KEY.address, taker=bytes(20), life_s=60)
    says = "the wish is of chain 31338, the trader of chain 31337"
    with pytest.raises(PolicyError, match=says):
        await Swapper(trader, UNUSED).offer(swap)
    with pytest.raises(PolicyError, match=says):
        await OrderPlacer(trader, UNUSED).offer(order)
    with pytest.raises(PolicyError, match=says):
        await OtcPoster(trader, UNUSED).offer(otc)

"""The venue's readers of fee APIs and attestations take the dev service's answers, which hold."""

import msgspec
import pytest
from trio.testing import MockClock

from cambist.codecs.bridges import cctp
from cambist.codecs.bridges.bridge_terms import BridgeFee, fee_of, output_of
from cambist.config.sections.bridges import BridgedToken, BridgeSettings
from cambist.engine.trade.delta.bridging.attestations import AttestedMessage, attested_in, messages_target
from cambist.engine.trade.delta.bridging.origins import BurnedMessage
from cambist.feeds.bridges.fee_answers import FeeAnswer, FeeLane, LaneFee, asking_fee
from support.bridge.two_chains import STOCK, TwoChains, two_chains
from support.chain.world import USDC
from support.patience import until_told


async def told_fee(two: TwoChains, symbol: str, kind: str) -> LaneFee:
    """Fee from the first chain to the second, as the venue's feed derives it without a margin."""
    at = two.tokens[symbol]
    tokens = (BridgedToken(chains={one: "0x" + token.hex() for one, token in at.items()}),)
    settings = BridgeSettings(
        kind="cctp" if kind == "cctp" else "across",
        url="http://bridge.example",
        tokens=tokens,
        margin_bps=0,
        tier="fast" if kind == "cctp" else None,
    )
    lane = FeeLane(
        bridge=kind,
        settings=settings,
        chains=(two.first, two.second),
        tokens=(at[two.first], at[two.second]),
        amounts=(10 * USDC, 50_000 * USDC),
        spoke_pool=two.places[two.first].spoke_pool,
        domains=(two.places[two.first].domain, two.places[two.second].domain),
        decimals=(two.decimals(symbol, two.first), two.decimals(symbol, two.second)),
    )
    asking = asking_fee(lane)
    target = next(asking)
    while True:
        status, body = await two.get(target)
        try:
            target = asking.send(FeeAnswer(status, msgspec.json.encode(body)))
        except StopIteration as end:
            found: LaneFee = end.value
            return found


@pytest.mark.parametrize("symbol", ["USDC", "USDT"])
async def test_a_deposit_at_the_derived_fee_of_across_is_filled(
    autojump_clock: MockClock, symbol: str
) -> None:
    async with two_chains() as two:
        told = await told_fee(two, symbol, "across")
        assert told == LaneFee(BridgeFee(400, 20_000), 40_001, 50_000 * USDC, 1_000)
        scaling = two.decimals(symbol, two.second) - two.decimals(symbol, two.first)
        amount = 12_345_678_901
        output = output_of(told.fee, scaling, amount)
        deposit = await two.deposit(two.first, amount, symbol, output=output)
        await until_told(lambda: two.fills(deposit))
        two.relayer.order(is_insolvent=True)
        assert (await told_fee(two, symbol, "across")).most == 0
        assert amount < STOCK * USDC


async def test_a_burn_at_the_derived_fee_of_cctp_is_attested_fast(autojump_clock: MockClock) -> None:
    async with two_chains() as two:
        told = await told_fee(two, "USDC", "cctp")
        assert told.fee == BridgeFee(100, 0)
        amount = 12_345_678_901
        burn = await two.signed_burn(
            two.first, amount, max_fee=fee_of(told.fee, amount), min_finality=cctp.FINALITY_CONFIRMED
        )
        chain = two.chains[two.first]
        tx_hash = await chain.send_raw(burn.raw)
        receipt = await chain.receipt(tx_hash)
        assert receipt is not None
        (sent,) = (
            event
            for log in receipt.logs
            if isinstance(event := cctp.decode_cctp_log(log.topics, log.data), cctp.MessageSent)
        )
        message = cctp.parse_message(sent.message)
        burned = BurnedMessage(message, cctp.parse_burn(message.body), 0)
        target = messages_target(two.places[two.first].domain, tx_hash)

        async def answered() -> bytes | None:
            status, body = await two.get(target)
            return msgspec.json.encode(body) if status == 200 else None

        await until_told(answered)
        early = await answered()
        assert early is not None
        assert attested_in(early, burned) == ""
        await two.attested(two.first, tx_hash)
        late = await answered()
        assert late is not None
        attested = attested_in(late, burned)
        assert isinstance(attested, AttestedMessage)
        assert cctp.parse_message(attested.raw).finality_executed == cctp.FINALITY_CONFIRMED
        await two.receive(two.second, attested.raw, attested.attestation)

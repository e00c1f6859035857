"""Strangers, odd bridges and nodes that are away: who else delivers, less that comes, and outages."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from cambist.codecs.bridges import cctp
from cambist.codecs.bridges.bridge_terms import BridgeKind
from cambist.codecs.contracts.abi import address_word, uint_word
from cambist.config.errors import Reverted
from support.bridge.bridged_stories import ACROSS, CCTP, FAIR, BridgedStory, a_bridged_story, arriving
from support.bridge.two_chains import OWNER, TwoChains
from support.chain.bridge_logs import filled
from support.chain.log_emitter import RUNTIME
from support.chain.log_emitter import calldata as emitted
from support.chain.put_code import put_code
from support.chain.world import URGENT_TIP_WEI
from support.contracts.bridging import PAUSE_DEPOSITS, SET_LIMIT
from support.delta.delta_stories import Record
from support.patience import until

pytestmark = pytest.mark.one_of(2)

KINDS = pytest.mark.parametrize("kind", BridgeKind)

REFUSALS = {ACROSS: "DepositsArePaused()", CCTP: "Burn token not supported"}
"""Words of a bridge's contract that takes nothing."""


async def burned(story: BridgedStory, record: Record) -> tuple[bytes, bytes]:
    """Message and attestation of an order's burn."""
    tx_hash = bytes.fromhex(record["transactions"][0]["originTx"][2:])
    return await story.two.attested(story.two.first, tx_hash)


# --- Strangers ----------------------------------------------------------------------------------------


async def test_a_stranger_fills_before_the_expected_relayer(two: TwoChains, tmp_path: Path) -> None:
    async with a_bridged_story(two, tmp_path) as story:
        two.relayer.order(is_silent=True)
        before = await story.balances()
        record = await story.bridging(ACROSS)
        await until(two.relayer.open_deposits)
        (deposit,) = two.relayer.open_deposits()
        receipt = await two.fill(deposit, two.stranger)
        record = await story.becomes(record, "COMPLETED")
        assert record["transactions"][0]["destinationTx"] == f"0x{receipt.tx_hash.hex()}"
        assert await story.moved_since(before) == story.sold() | {("user", "far USDC"): arriving()}
        two.relayer.order(is_silent=False)
        await story.becomes_final(record)
        assert await story.moved_since(before) == story.sold() | {("user", "far USDC"): arriving()}


async def test_somebody_else_sends_the_message_first(two: TwoChains, tmp_path: Path) -> None:
    """Its owner is in a hurry: the venue sees its nonce used, and sends nothing."""
    async with a_bridged_story(two, tmp_path) as story:
        before = await story.balances()
        relayer = story.world.relayer.address
        story.nodes[two.second].is_away = True
        record = await story.bridging(CCTP)
        message, attestation = await burned(story, record)
        receipt = await two.receive(two.second, message, attestation)
        sent = await story.far.chain.nonce(relayer)
        story.nodes[two.second].is_away = False
        record = await story.becomes(record, "COMPLETED")
        assert record["transactions"][0]["destinationTx"] == f"0x{receipt.tx_hash.hex()}"
        assert await story.moved_since(before) == story.carried(CCTP)
        await story.becomes_final(record)
        assert await story.far.chain.nonce(relayer) == sent


async def test_the_same_message_twice_pays_once(two: TwoChains, tmp_path: Path) -> None:
    async with a_bridged_story(two, tmp_path) as story:
        before = await story.balances()
        record = await story.becomes(await story.submitted(await story.an_order(CCTP)), "COMPLETED")
        message, attestation = await burned(story, record)
        with pytest.raises(Reverted, match="Nonce already used"):
            await two.receive(two.second, message, attestation)
        assert await story.moved_since(before) == story.carried(CCTP)
        await story.becomes_final(record)


async def test_the_venue_and_a_stranger_send_the_message_into_one_block(
    two: TwoChains, tmp_path: Path
) -> None:
    """The stranger's is first: the venue's transaction fails, costs nobody but the venue, and is the last."""
    async with a_bridged_story(two, tmp_path) as story:
        before = await story.balances()
        far, relayer = story.far, story.world.relayer.address
        await far.chain.set_automine(on=False)
        record = await story.bridging(CCTP)
        message, attestation = await burned(story, record)

        venue = story.web.app.delta.chains[two.second].relayer
        await until(lambda: venue.statistics().pending and venue.statistics().counts["handed"])
        data = cctp.receive_message(message, attestation)
        signed = await far.signed_tx(
            two.stranger, two.places[two.second].transmitter, data, gas=1_000_000, tip_wei=URGENT_TIP_WEI
        )
        tx_hash = await far.chain.send_raw(signed.raw)
        await far.chain.set_automine(on=True)
        await far.chain.mine()
        record = await story.becomes(record, "COMPLETED")
        assert record["transactions"][0]["destinationTx"] == f"0x{tx_hash.hex()}"
        sent = await far.chain.nonce(relayer)
        await story.becomes_final(record)
        assert await far.chain.nonce(relayer) == sent == 1
        assert await story.moved_since(before) == story.carried(CCTP)


# --- Bridges that do otherwise than promised ------------------------------------------------------------


async def test_a_bridge_that_pays_less_is_alarmed_and_the_record_says_what_came(
    two: TwoChains, tmp_path: Path
) -> None:
    """Across pays less by the owner's own signature alone: the pool here is one that lies."""
    async with a_bridged_story(two, tmp_path) as story:
        two.relayer.order(is_silent=True)
        before = await story.balances()
        record = await story.bridging(ACROSS)
        await until(two.relayer.open_deposits)
        (deposit,) = two.relayer.open_deposits()
        came = arriving() - 1
        far = story.far
        await far.mint(far.usdc, far.user, came)
        await put_code(far.chain, far.spoke_pool, RUNTIME)
        fill = filled(deposit.relay(two.first), output=came)
        receipt = await two.send(two.second, two.stranger, far.spoke_pool, emitted(fill))
        record = await story.becomes(record, "COMPLETED")
        assert record["output"]["executedAmount"] == str(came)
        (transaction,) = record["transactions"]
        assert transaction["receivedAmount"] == str(came)
        assert transaction["destinationTx"] == f"0x{receipt.tx_hash.hex()}"
        assert (await story.moved_since(before))["user", "far USDC"] == came
        await until(lambda: story.deliveries().odd == 1)


async def test_a_forged_fill_is_no_delivery(two: TwoChains, tmp_path: Path) -> None:
    """Anybody may fill a deposit that does not exist: of another amount, or from another origin."""
    async with a_bridged_story(two, tmp_path) as story:
        two.relayer.order(is_silent=True)
        record = await story.bridging(ACROSS)
        await until(two.relayer.open_deposits)
        (deposit,) = two.relayer.open_deposits()
        for lie in (
            {"output_amount": 1},
            {"input_amount": 1},
            {"recipient": address_word(two.stranger.address)},
        ):
            await two.fill(replace(deposit, **lie), two.stranger)
        await story.far.chain.mine(3)
        two.relayer.order(is_silent=False)
        record = await story.becomes(record, "COMPLETED")
        assert record["output"]["executedAmount"] == str(arriving())
        await until(lambda: story.deliveries().delivered == 1)
        assert story.deliveries().odd == 0


@KINDS
async def test_a_bridge_takes_nothing_for_a_time(two: TwoChains, tmp_path: Path, kind: BridgeKind) -> None:
    """The order waits with its owner's tokens untouched, and says why."""
    async with a_bridged_story(two, tmp_path) as story:
        await opened(story, kind, is_open=False)
        before = await story.balances()
        record = await story.submitted(await story.an_order(kind))
        assert REFUSALS[kind] in await story.says(record, "reverted")
        assert await story.moved_since(before) == {}
        await opened(story, kind, is_open=True)
        await story.becomes(record, "COMPLETED")
        assert await story.moved_since(before) == story.carried(kind)


async def opened(story: BridgedStory, kind: BridgeKind, *, is_open: bool) -> None:
    """Let the first chain's bridge take deposits or burns, or none."""
    world = story.world
    if kind is ACROSS:
        await world.send(OWNER, world.spoke_pool, PAUSE_DEPOSITS + uint_word(not is_open))
    else:
        limit = SET_LIMIT + address_word(world.usdc) + uint_word(is_open * 10**12)
        await world.send(world.owner, world.token_messenger, limit)


# --- Nodes that are away ----------------------------------------------------------------------------------


@KINDS
async def test_the_destinations_node_is_away_for_a_time(
    two: TwoChains, tmp_path: Path, kind: BridgeKind
) -> None:
    async with a_bridged_story(two, tmp_path) as story:
        before = await story.balances()
        story.nodes[two.second].is_away = True
        record = await story.bridging(kind)
        await until(lambda: story.deliveries().fault)
        assert "away" in await story.says(record, "transferUnderWay")
        other = await story.becomes(await story.submitted(await story.world.a_delta_order()), "COMPLETED")
        assert other["output"]["executedAmount"] == str(FAIR), "the first chain goes on"
        story.nodes[two.second].is_away = False
        await story.becomes(record, "COMPLETED")
        moved = await story.moved_since(before)
        assert moved["user", "far USDC"] == story.carried(kind)["user", "far USDC"]
        await until(lambda: not story.deliveries().fault)
        await story.becomes_final(record)


@KINDS
async def test_the_origins_node_is_away_while_the_transfer_arrives(
    two: TwoChains, tmp_path: Path, kind: BridgeKind
) -> None:
    """The transfer is followed on the second chain, whose node answers."""
    async with a_bridged_story(two, tmp_path) as story:
        two.relayer.order(is_silent=True)
        two.attester.order(is_silent=True)
        before = await story.balances()
        record = await story.bridging(kind)
        await story.has_read_what_left()
        story.nodes[two.first].is_away = True
        two.relayer.order(is_silent=False)
        two.attester.order(is_silent=False)
        await story.becomes(record, "COMPLETED")
        assert await story.moved_since(before) == story.carried(kind)
        story.nodes[two.first].is_away = False
        await story.becomes_final(record)

"""`cambist order` across chains, against a scripted venue; both chains are embedded, behind JSON-RPC."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from cambist.codecs.bridges.bridge_terms import BridgeFee, input_of, output_of
from cambist.crypto.addresses import to_checksum
from cambist.engine.chain.port import Chain, Receipt
from cambist.engine.trade.delta.orders.transfers import bridge_of
from cambist.engine.trader.client.following import receipt_of
from support.chain.world import ONE, USDC
from support.client.scripted_bridges import ACROSS, CCTP, FEE
from support.client.scripted_orders import OrderLies, Placed
from support.client.shells import BridgedShell, a_bridged_shell

QUOTED = 2_500 * USDC
ARRIVING = output_of(FEE, 0, QUOTED)
FAR = "31338"


@pytest.fixture
async def shell(tmp_path: Path) -> AsyncIterator[BridgedShell]:
    async with a_bridged_shell(tmp_path) as opened:
        yield opened


async def test_a_sale_shows_its_bridge_asks_and_ends_with_what_both_chains_say(shell: BridgedShell) -> None:
    far = shell.venue.far
    done = await shell.order("swap", "weth", "usdc", "1", *shell.proven, typed="y\n")
    assert done.returncode == 0, done.stderr.decode()
    shown, said = done.stderr.decode(), done.stdout.decode()
    placed = shell.venue.only
    for part in (
        f"buy                2498.72 USDC  {to_checksum(far.usdc)}",
        "bridge             across to chain 31338, about 30 s",
        f"by contract        {to_checksum(shell.world.spoke_pool)}",
        "note               that contract has no public address here: check it",
        "bridge fee         1.28 USDC, included",
        f"bridged            USDC  {to_checksum(shell.world.usdc)}",
        "if it fails        you get the bridged USDC back: no fill within 1 h",
        "at least received  2486.2264 USDC  (50 bps)",
        "Place it? [y/N]",
        f"order {placed.id} is BRIDGING: on its way to chain 31338, 2486.2264 USDC at least",
        "on chain 31338: 2498.72 USDC",
        "is COMPLETED: settled",
    ):
        assert part in shown, (part, shown)
    assert "unproven" not in shown
    assert f"order settled: {placed.id} COMPLETED" in said
    assert "spent        1 WETH\nbridged      2500 USDC\nreceived     2498.72 USDC\n" in said
    assert f"delivery     0x{shell.venue.deliveries[placed.receipts[0].tx_hash][0].tx_hash.hex()}" in said
    assert await far.balance(far.usdc, shell.world.user) == ARRIVING


async def test_a_purchase_by_cctp_and_by_addresses(shell: BridgedShell) -> None:
    shell.venue.terms, world = CCTP, shell.world
    told = await shell.told(
        *("swap", to_checksum(world.weth), to_checksum(shell.venue.far.usdc), "1000", "--side", "buy"),
        *("--to-chain", FAR, "--to-rpc", shell.far_node, "--via", to_checksum(world.usdc), "--yes"),
        *("--bridge", "cctp", "--bridge", "across"),
    )
    entering = input_of(FEE, 0, 1_000 * USDC)
    assert (told["outcome"], told["isProven"], told["bridge"]) == ("settled", True, "cctp")
    assert (told["bridged"], told["received"], told["refunded"]) == (str(entering), str(entering), "0")
    assert (told["chainId"], told["destChainId"]) == (31_337, 31_338)
    assert told["destToken"] == to_checksum(shell.venue.far.usdc)
    assert told["bridgeToken"] == to_checksum(world.usdc)
    (query,) = shell.venue.queries
    assert query["includeBridges"] == "cctp,across"


async def test_without_a_node_there_what_arrived_is_marked_as_the_venues_word(shell: BridgedShell) -> None:
    done = await shell.invoke("swap", "WETH", "USDC", "1", *shell.across, "--yes")
    assert done.exit_code == 0, done.stderr
    assert "unproven           that USDC has 6 decimals: --to-rpc reads its contract" in done.stderr
    assert "arrived      2498.72 USDC, as the venue says: --to-rpc proves it" in done.stdout
    assert "received " not in done.stdout
    told = await shell.told("swap", "WETH", "USDC", "1", *shell.across, "--yes")
    assert (told["outcome"], told["isProven"], told["received"]) == ("settled", False, "0")
    assert (told["executed"], told["bridged"]) == (str(ARRIVING), str(QUOTED))


async def test_without_a_word_about_it_the_venue_chooses_the_bridges_token(shell: BridgedShell) -> None:
    done = await shell.invoke("swap", "WETH", "USDC", "1", "--to-chain", FAR, "--dry-run")
    assert done.exit_code == 0, done.stderr
    assert "note               the venue chose the bridged token: --via binds it" in done.stderr
    assert shell.venue.submissions == []


async def test_a_refund_ends_with_3_and_is_told_with_its_amount(shell: BridgedShell) -> None:
    shell.venue.at_look = shell.venue.settle_and_refund
    done = await shell.invoke("swap", "WETH", "USDC", "1", *shell.proven, "--yes")
    assert done.exit_code == 3, done.stderr
    (refund,) = shell.venue.refunds[shell.venue.only.id]
    assert "is REFUNDING: the bridge failed, and what entered it is on its way back" in done.stderr
    assert f"refunded by {refund['tx']} on chain 31337: 2500 USDC" in done.stderr
    assert f"order ended: {shell.venue.only.id} REFUNDED" in done.stdout
    assert "bridged      2500 USDC\nrefunded     2500 USDC\n" in done.stdout
    assert f"refund       {refund['tx']} on chain 31337: 2500 USDC\n" in done.stdout
    told = await shell.told("swap", "WETH", "USDC", "1", *shell.across, "--yes", status=3)
    assert (told["status"], told["isProven"], told["refunded"]) == ("REFUNDED", True, str(QUOTED))
    assert told["refunds"][0]["amount"] == str(QUOTED)


async def test_time_that_is_up_while_it_is_bridged(shell: BridgedShell) -> None:
    shell.venue.at_look = shell.venue.settle
    done = await shell.invoke("swap", "WETH", "USDC", "1", *shell.proven, "--yes", "--timeout", "4")
    assert done.exit_code == 4, done.stderr
    placed = shell.venue.only
    assert f"order not ended: {placed.id} BRIDGING" in done.stdout
    assert f"`cambist order watch {placed.id}" in done.stderr


async def test_a_delivery_that_the_chain_does_not_show_is_not_believed(
    shell: BridgedShell, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def hasty(there: Chain, tx_hash: bytes) -> Receipt | None:
        with monkeypatch.context() as hurried:
            hurried.setattr("cambist.engine.trader.client.following.TRADER_RECEIPT_S", 0.5)
            return await receipt_of(there, tx_hash)

    monkeypatch.setattr("cambist.engine.trader.client.order.transfer_proof.receipt_of", hasty)

    def lies(record: dict[str, Any]) -> dict[str, Any]:
        rows = [row | {"destinationTx": row["originTx"]} for row in record["transactions"]]
        return record | {"transactions": rows}

    placed = await shell.told("swap", "WETH", "USDC", "1", *shell.across, "--yes")
    shell.venue.order_lies = OrderLies(record=lies)
    settlement = f"0x{shell.venue.only.receipts[0].tx_hash.hex()}"
    watch = ("watch", placed["id"], "--rpc", shell.node)
    told = await shell.told(*watch, "--to-rpc", shell.far_node, status=4)
    assert (told["outcome"], told["isProven"], told["received"]) == ("unknown", False, "0")
    assert told["reason"] == f"chain 31338 does not know the transaction {settlement}"
    assert (await shell.told(*watch))["deliveries"] == [settlement]


async def test_a_watched_order_is_proven_on_both_chains(shell: BridgedShell) -> None:
    async def at_look(placed: Placed) -> None:
        if placed.status == "BRIDGING":
            await shell.venue.settle_and_deliver(placed)

    shell.venue.at_look = shell.venue.settle
    told = await shell.told("swap", "WETH", "USDC", "1", *shell.across, "--yes", "--no-wait")
    await shell.venue.settle(shell.venue.only)
    shell.venue.at_look = at_look
    done = await shell.invoke("watch", told["id"], "--rpc", shell.node, "--to-rpc", shell.far_node)
    assert done.exit_code == 0, done.stderr
    assert "on chain 31338: 2498720000 raw units" in done.stderr
    assert "spent        1 WETH\nbridged      2500 USDC\nreceived     2498.72 USDC\n" in done.stdout
    for options, received in (((), "0"), (("--to-rpc", shell.far_node), str(ARRIVING))):
        told = await shell.told("watch", told["id"], "--rpc", shell.node, *options)
        assert (told["received"], told["isProven"]) == (received, bool(options))
    assert (await shell.told("watch", told["id"]))["executed"] == str(ARRIVING)


async def test_limits_and_slices_cross_too(shell: BridgedShell) -> None:
    told = await shell.told("limit", "WETH", "USDC", "1", "--limit", "2600", *shell.across, "--yes")
    assert (told["outcome"], told["limit"]) == ("placed", str(2_600 * USDC))
    told = await shell.told(
        *("twap", "WETH", "USDC", "2", "--slices", "2", "--interval", "5m", *shell.proven, "--yes")
    )
    assert told["limit"] == str(2 * (ARRIVING * 9_950 // 10_000))
    assert [bridge_of(placed.order).destination_chain_id for placed in shell.venue.placed.values()] == [
        31_338
    ] * 2


async def test_a_list_has_both_chains(shell: BridgedShell) -> None:
    told = await shell.told("swap", "WETH", "USDC", "1", *shell.across, "--yes")
    await shell.told("swap", "WETH", "USDC", "1", "--yes", "--no-wait")
    done = await shell.invoke("list")
    assert done.exit_code == 0, done.stderr
    here, across = [line for line in done.stdout.splitlines() if "swap" in line]
    assert "  31337           1 WETH" in here
    assert told["id"] in across
    assert "  31337 to 31338  1 WETH" in across
    assert "at least 2486.2264 USDC" in across


WRONG: list[tuple[tuple[str, ...], int, str]] = [
    (("--to-chain", "31337", "--via", "USDC"), 2, "--to-chain: equals --chain"),
    (("--via", "USDC"), 2, "--via: only with --to-chain"),
    (("--bridge", "across"), 2, "--bridge: only with --to-chain"),
    (("--max-bridge-fee", "5"), 2, "--max-bridge-fee: only with --to-chain"),
    (("--to-rpc", "http://127.0.0.1:9"), 2, "--to-rpc: only with --to-chain"),
    (("--to-chain", FAR, "--yes"), 2, "--via: is needed with --yes"),
    (("--to-chain", FAR, "--via", "NOPE"), 2, "--via: expected an address or a symbol that the venue lists"),
    (
        ("--to-chain", FAR, "--via", "WETH", "--yes"),
        1,
        "not signed: address of route.origin.output: expected 0x",
    ),
    (
        ("--to-chain", FAR, "--via", "USDC", "--yes", "--max-bridge-fee", "5"),
        1,
        "not signed: the bridge's fee: expected at most 5 basis points of 2500000000, got 1280000",
    ),
]


async def test_what_is_wrong_is_said_in_one_line(shell: BridgedShell) -> None:
    for options, status, said in WRONG:
        done = await shell.invoke("swap", "WETH", "USDC", "1", *options)
        assert done.exit_code == status, (options, done.stderr)
        assert said in done.stderr, (options, done.stderr)
        assert "Traceback" not in done.stderr, options
    for arguments, said in (
        (("swap", "WETH", "NOPE", "1", *shell.across), "BUY_TOKEN: expected an address or a symbol"),
        (
            ("swap", "WETH", f"0x{'12' * 20}", "1", *shell.across),
            "BUY_TOKEN: the venue lists no token 0x1212121212121212121212121212121212121212 there: --to-rpc",
        ),
        (("swap", "WETH", f"0x{'12' * 20}", "1", *shell.proven), "BUY_TOKEN: no token at 0x1212"),
        (("swap", "WETH", f"0x{'ee' * 20}", "1", *shell.across), "--to-wrapped: is needed: this release"),
        (("limit", "WETH", "USDC", "1", "--limit", "2600", "--partial", *shell.across), "--partial: not"),
        (("watch", "nobody", "--to-rpc", shell.far_node), "--to-rpc: only with --rpc"),
    ):
        done = await shell.invoke(*arguments)
        assert done.exit_code == 2, (arguments, done.stderr)
        assert said in done.stderr, (arguments, done.stderr)
    assert shell.venue.submissions == []


async def test_a_fee_may_be_what_the_trader_gives(shell: BridgedShell) -> None:
    shell.venue.terms = type(ACROSS)(BridgeFee(20_000, 0), 3_600, bytes(20), 0)
    done = await shell.invoke("swap", "WETH", "USDC", "1", *shell.across, "--dry-run")
    assert done.exit_code == 1
    assert "the bridge's fee: expected at most 100 basis points" in done.stderr
    told = await shell.told(
        "swap", "WETH", "USDC", "1", *shell.across, "--max-bridge-fee", "200", "--dry-run"
    )
    assert (told["outcome"], told["bridgeFee"]) == ("rehearsed", str(QUOTED // 50))
    assert told["quotedDest"] == str(QUOTED * 49 // 50)
    assert told["quotedSrc"] == str(ONE)

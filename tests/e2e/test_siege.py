"""A siege: all attacks of strangers at once, at full rate, while honest traders are measured.

`HYPOTHESIS_PROFILE=long pytest -s tests/e2e/test_siege.py` besieges for ten minutes; the usual run takes half
a minute, and asserts neither times nor how many trades succeed. Chains, makers and agents have a process
beside the venue's, and the besiegers, who have machines of their own, one that runs where the others leave
time.
"""

import gc
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
import trio

from cambist.codecs.contracts.abi import address_word, bytes_tail, encode, selector
from cambist.codecs.contracts.calldata import approve, transfer
from cambist.config.chains import ChainSettings
from cambist.config.sections.nodes import NodeSettings
from cambist.crypto.addresses import parse_address, to_checksum
from cambist.crypto.custody.mnemonic import DEV_MNEMONIC, account_keys
from cambist.crypto.secp256k1 import SigningKey
from cambist.engine.chain.artifacts import known_errors
from cambist.engine.chain.deploy.deploy import create
from cambist.engine.chain.transact import transact
from cambist.engine.dev.devnet.anvil import AnvilChain
from cambist.engine.host.admission.budgets import GAS_GIVEN, GAS_OF_NEW_OWNERS, PPM
from support.chain.evm_programs import assembled, deploys
from support.contracts.rfq_stories import execute
from support.patience import STORY_S
from support.siege.honest import Acts, Traders
from support.siege.place import CHAIN_ID, FAR_CHAIN_ID, Place, a_place
from support.siege.plan import SiegePlan
from support.tracked_files import ROOT

IS_LONG = os.environ.get("HYPOTHESIS_PROFILE") == "long"
SIEGE_S = float(os.environ.get("SIEGE_S", "600" if IS_LONG else "12"))
QUIET_S = min(SIEGE_S, 180)
WARM_S = 6
SUCCESS_MIN, TIMES_MAX = 0.8, 2
PERCENTILE = {"anvil": 99, "embedded": 50}
"""Node -> percentile of the honest acts' times that may be TIMES_MAX of the quiet one.

The embedded chains are Python on the cores of all others: what strangers pay to have mined there slows the
slowest acts of everybody.
"""
TURNCOATS = 24
RICH = "128 2 EXP 0x40 MSTORE 32 0x40 RETURN"
"""A token that answers 2^128 to every call."""
BURNING = "again: @again JUMP"
"""A receiver that burns all the gas that it gets."""
ONE = 10**18
BESIEGER, RELAYER = account_keys(DEV_MNEMONIC, 2)
"""Accounts of the devnet: the first pays for the besiegers' contracts."""
REACHED = {
    "stock": {"200", "429"}, "victim": {"200", "429"}, "turncoat": {"200"}, "dust_orders": {"400"},
    "one_balance": {"200"}, "burnt_gas": {"200"}, "dusted_arrivals": {"200"},
    "no_balance": {"400"}, "unsigned": {"200"}, "wrong_key": {"400"},
    "fake_token": {"200"}, "no_funds": {"200"}, "drafts": {"200"}, "quotes": {"200"},
    "readings": {"200", "401", "404"}, "idle_readers": {"200"},
}  # fmt: skip
"""Answers by which each attack shows that it came past the rate of requests to what it is about."""
HONEST, GREEDY = (0, 1, 2, 3), 4
"""Accounts of `up` that the honest traders have, and that of a besieger with tokens."""
BRIDGER = 2
"""Account of the honest trader whose tokens are swapped after a bridge."""


@pytest.mark.process
@pytest.mark.seldom
@pytest.mark.parametrize("node", ["embedded", "anvil"])
def test_honest_traders_trade_on_while_strangers_attack_in_all_ways(tmp_path: Path, node: str) -> None:
    with a_place(tmp_path, *(["--anvil"] if node == "anvil" else [])) as place:
        trio.run(_story, place, tmp_path, PERCENTILE[node])


async def _story(place: Place, folder: Path, percentile: int) -> None:
    settings = NodeSettings(urls=(place.node,))
    accounts = place.told["accounts"]
    keys = [accounts[number]["key"] for number in HONEST]
    async with (
        AnvilChain.open(CHAIN_ID, settings, known_errors()) as chain,
        AnvilChain.open(FAR_CHAIN_ID, NodeSettings(urls=(place.far_node,)), known_errors()) as far,
        Traders.open(place.venue, place.node, place.told["tokens"], keys) as traders,
    ):
        plan = await furnished(place, chain, far)
        await traders.trade(WARM_S)  # first approvals, and code that runs for the first time
        # A full collection of all that the tests have imported would take 40 ms of some honest act.
        gc.collect()
        gc.freeze()
        quiet = await traders.trade(QUIET_S)
        say("quiet", quiet)
        first = await height(chain) + 1, await height(far) + 1
        meanwhile, answers, most = await siege(place, plan, traders, folder)
        say("besieged", meanwhile)
        say("attacks", answers)
        say("reserved at most", {stake: f"{part / PPM:.1%}" for stake, part in most.items()})
        # The greedy one's orders to the other chain are worth their gas as well: they sell WBTC at a price.
        paid_for = await transactions_of(place, (*HONEST, GREEDY))
        failed, given = await unpaid_gas(place.node, first[0], await height(chain), paid_for)
        there, _ = await unpaid_gas(place.far_node, first[1], await height(far), paid_for)
        failed += there
        say("unpaid gas", {"failed": failed, "given": given})
        rests = await resting(place)
    for name, acts in meanwhile.items():
        assert acts.seconds, (name, acts.faults[:5])
        if IS_LONG:
            assert acts.success >= SUCCESS_MIN * quiet[name].success, (name, acts.faults[:5])
            assert acts.slowest(percentile) <= TIMES_MAX * quiet[name].slowest(percentile), name
    assert most["nothing"] <= PPM // 4
    assert most["allowance"] <= PPM // 4
    assert failed <= GAS_OF_NEW_OWNERS.most * max(SIEGE_S / GAS_OF_NEW_OWNERS.refill_s, 1)
    assert given <= GAS_GIVEN.most
    assert rests == {}
    for name, statuses in REACHED.items():
        wanted = statuses if IS_LONG else set()  # in a short siege the rates may take all of an attack
        assert wanted <= answers[name].keys(), (name, answers[name])


async def siege(
    place: Place, plan: SiegePlan, traders: Traders, folder: Path
) -> tuple[dict[str, Acts], dict[str, dict[str, int]], dict[str, int]]:
    """Besiege the venue while the honest traders trade.

    Returns:
        Outcomes of their acts; answers to the attacks by status; greatest reserved part of a maker's stock by
            what callers had shown.
    """
    answers: dict[str, dict[str, int]] = {}
    most: dict[str, int] = {}

    async def attack() -> None:
        answers.update(await besieged(plan, folder))

    async def watch() -> None:
        while True:
            status = await place.get("/operator/status")
            for maker in status["chains"][str(CHAIN_ID)]["stock"].values():
                for stake, part in maker.items():
                    most[stake] = max(most.get(stake, 0), part)
            await trio.sleep(1)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(watch)
        async with trio.open_nursery() as both:
            both.start_soon(attack)
            meanwhile = await traders.trade(SIEGE_S)
        nursery.cancel_scope.cancel()
    return meanwhile, answers, most


async def besieged(plan: SiegePlan, folder: Path) -> dict[str, dict[str, int]]:
    """Run the besiegers' process to its end; its answers by attack and status."""
    file = folder / "plan.json"
    file.write_bytes(msgspec.json.encode(plan))
    done = await trio.run_process(
        [sys.executable, "-m", "support.siege.besiegers", str(file)],
        capture_stdout=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "tests")))},
        cwd=folder,
    )
    found: dict[str, dict[str, int]] = msgspec.json.decode(done.stdout)
    return found


async def furnished(place: Place, chain: AnvilChain, far: AnvilChain) -> SiegePlan:
    """Make the besiegers' contracts, which one of them pays, and tell them what they need to know."""
    receipt = await transact(chain, BESIEGER, b"", deploys(assembled(RICH)))
    assert receipt.contract is not None
    weth, delta = place.token("WETH"), parse_address(place.contracts["delta"], "delta")
    await transact(chain, BESIEGER, weth, selector("deposit()"), value_wei=(TURNCOATS + 1) * ONE)
    allow = selector("act(address,bytes)") + encode(address_word(weth), bytes_tail(approve(delta, ONE)))
    salts = [number.to_bytes(32, "big") for number in range(TURNCOATS)]
    turncoats = [await create(chain, BESIEGER, "DevTurncoat", salt32=salt) for salt in salts]
    for wallet in turncoats:
        await transact(chain, BESIEGER, weth, transfer(wallet, ONE))
        await transact(chain, BESIEGER, wallet, allow)
    greedy = SigningKey(bytes.fromhex(place.told["accounts"][GREEDY]["key"][2:]))
    wallet = await create(chain, BESIEGER, "DevWallet", address_word(greedy.address))
    await transact(chain, BESIEGER, weth, transfer(wallet, ONE))
    await transact(chain, greedy, wallet, execute(weth, approve(delta, ONE)))
    burner = (await transact(far, BESIEGER, b"", deploys(assembled(BURNING)))).contract
    assert burner is not None
    names = ChainSettings(name="devnet")
    return SiegePlan(
        port=int(place.venue.rpartition(":")[2]),
        seconds=SIEGE_S,
        chain_id=CHAIN_ID,
        far_chain_id=FAR_CHAIN_ID,
        far_node=place.far_node,
        tokens=place.told["tokens"] | {"FAKE": to_checksum(receipt.contract)},
        delta=place.contracts["delta"],
        delta_domain=(names.delta_domain_name, names.delta_domain_version),
        rfq=place.contracts["augustusRFQ"],
        rfq_domain=names.rfq_domain_name,
        rich=to_checksum(RELAYER.address),
        victim=place.told["accounts"][0]["address"],
        bridger=place.told["accounts"][BRIDGER]["address"],
        greedy_key=place.told["accounts"][GREEDY]["key"],
        turncoats=tuple(map(to_checksum, turncoats)),
        wallet=to_checksum(wallet),
        burner=to_checksum(burner),
    )


# --- What the venue paid, and who rests -----------------------------------------------------------------


async def unpaid_gas(node: str, first: int, last: int, paid_for: set[str]) -> tuple[int, int]:
    """Gas of the relayer's transactions in these blocks: of failed ones, and of those that nobody pays for.

    Args:
        paid_for: hashes of transactions whose orders are worth their gas.
    """
    failed = given = 0
    async with httpx.AsyncClient(timeout=STORY_S) as web:
        for number in range(first, last + 1):
            asked = {"jsonrpc": "2.0", "id": 1, "method": "eth_getBlockReceipts", "params": [hex(number)]}
            for receipt in (await web.post(node, json=asked)).json()["result"]:
                if parse_address(receipt["from"], "from") == RELAYER.address:
                    gas = int(receipt["gasUsed"], 16)
                    failed += gas * (receipt["status"] == "0x0")
                    given += gas * (receipt["status"] == "0x1" and receipt["transactionHash"] not in paid_for)
    return failed, given


async def transactions_of(place: Place, accounts: Iterable[int]) -> set[str]:
    """Hashes of the settlements of accounts' Delta orders."""
    return {
        sent["originTx"]
        for number in accounts
        for record in await orders_of(place, place.told["accounts"][number]["address"])
        for sent in record["transactions"]
    }


async def orders_of(place: Place, owner: str) -> list[dict[str, Any]]:
    """All Delta orders of an account."""
    found: list[dict[str, Any]] = []
    while True:
        page = await place.get("/v2/delta/orders", userAddress=owner, page=len(found) // 100 + 1, limit=100)
        found += page["data"]
        if not page["hasMore"]:
            return found


async def resting(place: Place) -> dict[str, Any]:
    """Makers and agents that rest or have faults, with what the venue says of them."""
    makers = await place.get("/makers/scores", network=CHAIN_ID)
    agents = await place.get(f"/v2/delta/agents/scores/{CHAIN_ID}")
    found = {score["makerName"]: score for score in makers if score["blockUntil"] or score["reasons"]}
    return found | {score["name"]: score for score in agents if score["restsUntil"] or score["strikes"]}


async def height(chain: AnvilChain) -> int:
    """Number of the latest block."""
    header = await chain.block()
    assert header is not None
    return header.number


def say(title: str, lines: dict[str, Any]) -> None:
    """Print what is measured."""
    print(title, *[f"    {name:<14}{line}" for name, line in lines.items()], sep="\n", flush=True)  # noqa: T201

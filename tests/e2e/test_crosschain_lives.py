"""Random lives of orders across two real chains: re-organisations, outages, silence and time, then peace.

In the end each order is delivered or refunded, its record names transactions that are on the chains, and the
owner has what the records say. CRASH_SEED repeats a run; without it each run has a seed of its own, which is
printed.
"""

import os
import secrets
from collections import Counter
from pathlib import Path
from random import Random

import pytest
import trio

from cambist.codecs.bridges.bridge_terms import BridgeKind
from cambist.codecs.contracts.contract_events import Transfer
from cambist.engine.chain.port import DevChain
from support.bridge.bridged_stories import FAIR, FILL_WITHIN_S, BridgedStory, a_bridged_story
from support.bridge.two_chains import TwoChains
from support.chain.world import ONE, USDC
from support.contracts.settling import events
from support.delta.delta_stories import Record
from support.order_of_tests import IS_WHOLE

pytestmark = pytest.mark.one_of(2)

LIVES = int(os.environ.get("CRASH_ROUNDS", "3" if IS_WHOLE else "1"))
ACTS = 30
SMALL = ONE // 10
BOUGHT = FAIR // 10
WEEK_S = 7 * 86_400
LOST_S = 3.0
"""Seconds after which the dev relayer gives up a transaction that a re-organisation has dropped."""
ENDS = {"COMPLETED", "REFUNDED"}


class Fate:
    """Troubles of a story, and their end."""

    def __init__(self, story: BridgedStory, random: Random) -> None:
        self.story = story
        self.random = random
        self.records: list[Record] = []
        self.told: list[str] = []

    async def act(self) -> None:
        """Do one thing, and give the venue a moment."""
        acts = [self.sells] * 5 + [self.replaces] * 3 + [self.is_away, self.is_silent, self.waits, self.mines]
        act = self.random.choice(acts)
        self.told.append(act.__name__)
        await act()
        await trio.sleep(self.random.random() / 20)

    async def sells(self) -> None:
        """The user sells; the bridge is either."""
        terms = {"src_amount": SMALL, "dest_amount": 230 * USDC, "expected_amount": 250 * USDC}
        terms["deadline"] = await self.story.world.now_s() + WEEK_S
        order = await self.story.an_order(self.random.choice([*BridgeKind]), **terms)
        status, told = await self.story.submit(order)
        if status == 200:
            self.records.append(told)
        else:
            assert status == 503, told

    async def replaces(self) -> None:
        """A chain replaces its last blocks, and its clock goes on."""
        chain = self.random.choice(self.chains)
        time_s = (await chain.upcoming()).time_s
        await chain.reorganise(self.random.randint(1, 2))
        await chain.set_time(time_s + 1)
        await chain.mine()

    async def is_away(self) -> None:
        node = self.random.choice([*self.story.nodes.values()])
        node.is_away = not node.is_away

    async def is_silent(self) -> None:
        two = self.story.two
        actor = self.random.choice((two.relayer, two.attester))
        actor.order(is_silent=not actor.orders.is_silent)

    async def waits(self) -> None:
        """Time passes, sometimes too much for a deposit."""
        await self.story.pass_time(self.random.choice((5, 60, FILL_WITHIN_S + 60)))

    async def mines(self) -> None:
        await self.random.choice(self.chains).mine(self.random.randint(1, 4))

    async def ends(self) -> None:
        """All goes well from now on: the pool pays out, as the real one does once fills are final."""
        story = self.story
        for node in story.nodes.values():
            node.is_away = False
        story.two.relayer.order(is_silent=False, pays_out=True)
        story.two.attester.order(is_silent=False)

    @property
    def chains(self) -> list[DevChain]:
        return [self.story.world.chain, self.story.far.chain]


async def ended(story: BridgedStory, record: Record) -> Record:
    """Record once its order is final."""
    await story.becomes_final(record)
    return await story.record(record["id"])


async def is_borne_out(story: BridgedStory, record: Record, used: Counter[str]) -> tuple[int, int, int]:
    """Raw units of WETH spent, USDC refunded, and USDC delivered, by the chains; the record says the same."""
    user = story.world.user.address
    (settled,) = record["transactions"]
    receipt = await story.world.chain.receipt(bytes.fromhex(settled["originTx"][2:]))
    assert receipt is not None
    spent = sum(one.amount for one in events(receipt, Transfer) if one.owner == user)
    assert settled["spentAmount"] == str(spent) == str(SMALL)
    if record["status"] == "COMPLETED":
        assert record["refunds"] == []
        delivered = await story.far.chain.receipt(bytes.fromhex(settled["destinationTx"][2:]))
        assert delivered is not None
        came = sum(one.amount for one in events(delivered, Transfer) if one.receiver == user)
        assert settled["receivedAmount"] == record["output"]["executedAmount"] == str(came)
        used[settled["destinationTx"]] += 1
        return spent, 0, came
    (refund,) = record["refunds"]
    paid = await story.world.chain.receipt(bytes.fromhex(refund["tx"][2:]))
    assert paid is not None
    back = sum(one.amount for one in events(paid, Transfer) if one.receiver == user)
    assert refund["amount"] == str(back) == str(BOUGHT)
    assert settled["destinationTx"] is None
    used[refund["tx"]] += 1
    return spent, back, 0


@pytest.mark.parametrize("number", range(LIVES))
async def test_whatever_happens_each_order_arrives_or_comes_back(
    two: TwoChains, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    seed = int(os.environ.get("CRASH_SEED") or secrets.randbits(32)) + number
    print(f"CRASH_SEED={seed - number}, life {number}")  # noqa: T201  whoever sees it fail repeats it
    monkeypatch.setattr("cambist.engine.chain.transact.TRANSACTION_S", LOST_S)
    async with a_bridged_story(two, tmp_path) as story:
        fate = Fate(story, Random(seed))
        await story.confirm()
        before = await story.balances()
        for _ in range(ACTS):
            await fate.act()
        await fate.ends()
        used: Counter[str] = Counter()
        sums = [0, 0, 0]
        for record in fate.records:
            done = await ended(story, record)
            assert done["status"] in ENDS, done
            for at, amount in enumerate(await is_borne_out(story, done, used)):
                sums[at] += amount
        assert set(used.values()) <= {1}
        moved = await story.moved_since(before)
        assert (-moved.get(("user", "WETH"), 0), moved.get(("user", "USDC"), 0)) == (sums[0], sums[1])
        assert moved.get(("user", "far USDC"), 0) >= sums[2]

"""Failed settlements are charged to the owners whose code or acts made them fail; doubts resolve later."""

from types import SimpleNamespace
from typing import Any

import pytest
import trio

from cambist.config import limits
from cambist.engine.host.admission.budgets import (
    GAS_OF_CODE,
    GAS_OF_DOUBTS,
    GAS_OF_NETWORK,
    GAS_OF_NEW_OWNERS,
    GAS_OF_OWNER,
    PLACES_OF_NEW_OWNERS,
)
from cambist.engine.host.admission.ledger import Ledger
from cambist.engine.trade.delta.settlement.owner_costs import OwnerCosts

REST_MS, REST_MS_MAX = 5_000, 900_000
GAS = 400_000
ONE, TWO, KEY = (bytes([number]) * 20 for number in (1, 2, 3))


class Stage:
    """Costs of owners: accounts whose first byte is below 3 are contracts, of one code unless told apart.

    Attributes:
        codes: code hash of an owner.
        submitter: network that submits the orders.
    """

    def __init__(self) -> None:
        self.now_ms = 1_700_000_000_000
        self.codes: dict[bytes, bytes] = {}
        self.submitter = "key k"
        self.costs = OwnerCosts(
            Ledger(),
            1,
            self._codes_of,
            rest_ms=REST_MS,
            rest_ms_max=REST_MS_MAX,
            wall_ms=lambda: self.now_ms,
        )
        self._number = 0

    async def _codes_of(self, live: Any) -> frozenset[bytes]:
        await trio.lowlevel.checkpoint()
        return self.payers(live.terms.owner)[live.terms.owner]

    def payers(self, *owners: bytes) -> dict[bytes, frozenset[bytes]]:
        """Owners with the hashes of their code."""
        return {
            owner: frozenset({self.codes.get(owner, b"wallet")} if owner[0] < 3 else ()) for owner in owners
        }

    async def begin(self, *owners: bytes, gas: int = GAS, is_sent: bool = False) -> str:
        """Key of a settlement that may be sent; empty if it may not."""
        self._number += 1
        orders: list[Any] = [
            SimpleNamespace(terms=SimpleNamespace(owner=owner), causer=self.submitter) for owner in owners
        ]
        key = f"settle {self._number}"
        return key if await self.judged(key, orders, gas, is_sent=is_sent) else ""

    async def judged(self, key: str, orders: list[Any], gas: int = GAS, *, is_sent: bool = False) -> bool:
        """Whether a settlement may be sent, as its task asks."""
        codes = {} if is_sent else await self.costs.codes_of_new(orders)
        return self.costs.begin(key, orders, gas, codes, is_sent=is_sent)

    async def fail(self, owner: bytes, agent: str = "ann", gas: int = GAS) -> bool:
        """Have a settlement fail by its owner's code; whether it was sent."""
        key = await self.begin(owner, gas=gas)
        if key:
            self.costs.failed(key, agent, gas, self.payers(owner), is_doubted=True)
        return bool(key)

    async def settle(self, owner: bytes, agent: str = "ann") -> dict[bytes, str]:
        """Have a settlement succeed; the doubted agents."""
        key = await self.begin(owner)
        assert key
        return self.costs.settled(key, agent)

    def rest_s(self, owner: bytes) -> int:
        until_ms = self.costs.rests_until_ms(owner)
        return (until_ms - self.now_ms) // 1_000 if until_ms else 0


async def test_an_owner_whose_code_fails_a_settlement_rests_at_once_and_ever_longer() -> None:
    stage = Stage()
    assert await stage.fail(ONE)
    assert stage.rest_s(ONE) == 5
    assert not await stage.fail(ONE)
    assert not await stage.begin(TWO, ONE), "an order of an owner that does not rest, crossed with one of its"
    assert stage.rest_s(TWO) == 0
    stage.now_ms += 5_000
    assert await stage.fail(ONE)
    assert stage.rest_s(ONE) == 10
    stage.now_ms += 10_000
    assert await stage.begin(TWO)


async def test_an_owners_failures_are_paid_from_a_budget_of_a_day() -> None:
    """One million units: two failures of 400,000, and the third order waits until the gas has come back."""
    stage = Stage()
    for _ in range(2):
        assert await stage.fail(ONE)
        stage.now_ms += 1_000_000
    assert not await stage.fail(ONE)
    day_s = GAS_OF_OWNER.refill_s
    missing = 3 * GAS - GAS_OF_OWNER.most - GAS_OF_OWNER.most * 2_000 // day_s
    assert abs(stage.rest_s(ONE) - missing * day_s // GAS_OF_OWNER.most) <= 1
    stage.now_ms += 1_000 * (stage.rest_s(ONE) + 1)
    assert await stage.fail(ONE)


async def test_many_wallets_of_an_hour_share_one_budget_whatever_their_code() -> None:
    """An attacker has as many wallets as it likes, and a code of its own for each."""
    stage, spent = Stage(), 0
    for number in range(1_000):
        owner = number.to_bytes(20, "big")
        stage.codes[owner] = owner
        spent += GAS * await stage.fail(owner)
    assert spent == GAS_OF_NEW_OWNERS.most
    assert await stage.begin(KEY), "an account without code"


async def test_a_network_whose_wallets_fail_leaves_the_gas_of_others_to_others() -> None:
    stage = Stage()
    stage.submitter = "network 203.0.113"
    wallets = [bytes([1, number]) * 10 for number in range(20)]
    stage.codes = {wallet: bytes([number]) for number, wallet in enumerate(wallets)}
    failed = [await stage.fail(wallet) for wallet in wallets[:10]]
    assert sum(failed) == GAS_OF_NETWORK.most // GAS < GAS_OF_NEW_OWNERS.most // GAS // 2
    assert stage.rest_s(wallets[9]) > 0
    stage.submitter = "network 198.51.100"
    assert await stage.settle(wallets[10]) == {}
    stage.now_ms += 3_600_000
    stage.submitter = "network 203.0.113"
    assert await stage.fail(wallets[11])


async def test_the_holder_of_a_key_answers_for_its_users_to_the_operator() -> None:
    stage = Stage()
    wallets = [bytes([1, number]) * 10 for number in range(20)]
    stage.codes = {wallet: bytes([number]) for number, wallet in enumerate(wallets)}
    failed = [await stage.fail(wallet) for wallet in wallets]
    assert sum(failed) == GAS_OF_NEW_OWNERS.most // GAS


async def test_wallets_of_one_code_share_a_smaller_budget() -> None:
    stage, spent = Stage(), 0
    for number in range(1_000):
        spent += GAS * await stage.fail(number.to_bytes(20, "big"))
    assert spent == GAS_OF_CODE.most
    stage.codes[ONE] = b"another"
    assert await stage.begin(ONE)


async def test_of_too_many_owners_the_one_that_settled_longest_ago_counts_as_new(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "AGENT_OWNERS_KEPT_MAX", 2)
    stage = Stage()
    for owner in (ONE, TWO, ONE, KEY):
        await stage.settle(owner)
    for owner, rest_s in ((ONE, 0), (TWO, 5)):
        await stage.fail(owner)
        assert stage.rest_s(owner) == rest_s


async def test_an_owner_that_has_settled_does_not_share_it() -> None:
    stage = Stage()
    assert await stage.settle(ONE) == {}
    for number in range(1_000):
        await stage.fail(b"\0" + number.to_bytes(19, "big"))
    assert not await stage.begin(TWO)
    assert [bool(await stage.begin(ONE)) for _ in range(8)] == [True] * 8


async def test_new_owners_share_a_few_places_until_they_have_settled() -> None:
    stage = Stage()
    owners = [bytes([0, number]) * 10 for number in range(PLACES_OF_NEW_OWNERS.most + 1)]
    keys = [await stage.begin(owner, gas=100_000) for owner in owners]
    assert [bool(key) for key in keys] == [True] * PLACES_OF_NEW_OWNERS.most + [False]
    assert stage.rest_s(owners[-1]) == 1
    stage.costs.settled(keys[0], "ann")
    stage.now_ms += 1_000
    assert await stage.begin(owners[-1], gas=100_000)
    assert await stage.begin(owners[0], gas=100_000)


async def test_settlements_that_no_task_follows_to_their_end_give_their_places_back_after_an_hour() -> None:
    """Their orders are another engine's by then."""
    stage = Stage()
    for number in range(PLACES_OF_NEW_OWNERS.most):
        assert await stage.begin(bytes([0, number]) * 10, gas=100_000)
    stage.now_ms += 3_600_000
    assert not await stage.begin(ONE, gas=100_000)
    stage.now_ms += 10_000
    assert await stage.begin(ONE, gas=100_000)


async def test_an_owner_that_settles_waits_no_longer_for_room() -> None:
    stage = Stage()
    key = await stage.begin(ONE, gas=GAS_OF_OWNER.most)
    assert not await stage.begin(ONE)
    assert stage.rest_s(ONE) == 10
    stage.costs.settled(key, "ann")
    assert stage.rest_s(ONE) == 0
    assert await stage.begin(ONE)


async def test_what_an_owner_did_not_cause_costs_it_nothing() -> None:
    stage = Stage()
    for _ in range(10):
        key = await stage.begin(ONE)
        stage.costs.failed(key, "ann", GAS, {}, is_doubted=False)
        assert stage.rest_s(ONE) == 0
    key = await stage.begin(ONE)
    stage.costs.failed(key, "ann", 0, stage.payers(ONE), is_doubted=False)
    assert stage.rest_s(ONE) == 0, "nothing was mined"


async def test_an_account_without_code_pays_for_what_its_acts_make_fail() -> None:
    stage = Stage()
    for _ in range(2):
        assert await stage.fail(KEY)
        stage.now_ms += 1_000_000
    assert await stage.fail(KEY), "it is known only afterwards"
    assert stage.rest_s(KEY) > 3_600
    assert await stage.begin(ONE)


async def test_crossed_orders_are_charged_once_and_a_second_end_does_nothing() -> None:
    stage = Stage()
    orders: list[Any] = [
        SimpleNamespace(terms=SimpleNamespace(owner=owner), causer="key k") for owner in (ONE, TWO)
    ]
    for _ in range(2):
        assert await stage.judged("both", orders, 2 * GAS)
    assert stage.costs.failed("both", "ann", GAS, stage.payers(ONE, TWO), is_doubted=True)
    assert not stage.costs.failed("both", "ann", GAS, stage.payers(ONE, TWO), is_doubted=True)
    assert stage.rest_s(ONE) == stage.rest_s(TWO) == 5
    stage.now_ms += 5_000
    assert await stage.begin(ONE, gas=GAS)


async def test_only_who_caused_a_failure_of_crossed_orders_pays() -> None:
    """Its code, or its act: not the owner on the other side."""
    stage = Stage()
    key = await stage.begin(ONE, KEY)
    stage.costs.failed(key, "ann", GAS, stage.payers(ONE), is_doubted=True)
    assert (stage.rest_s(ONE), stage.rest_s(KEY)) == (5, 0)
    key = await stage.begin(TWO, KEY)
    stage.costs.failed(key, "ann", GAS, stage.payers(KEY), is_doubted=True)
    assert (stage.rest_s(TWO), stage.rest_s(KEY)) == (0, 5)


async def test_a_settlement_that_an_earlier_process_has_sent_is_not_charged() -> None:
    stage = Stage()
    await stage.fail(ONE)
    key = await stage.begin(ONE, is_sent=True)
    assert key
    assert stage.costs.settled(key, "ann") == {}


async def test_a_doubt_counts_once_another_agent_settles_for_the_owner() -> None:
    stage = Stage()
    await stage.fail(ONE, "ann", 100_000)
    stage.now_ms += 5_000
    assert await stage.settle(ONE, "bob") == {ONE: "ann"}
    await stage.fail(ONE, "cid", 100_000)
    stage.now_ms += 60_000
    assert await stage.settle(ONE, "bob") == {}, "an owner counts once"


async def test_a_doubt_of_an_owner_that_fails_two_agents_counts_against_none() -> None:
    stage = Stage()
    await stage.fail(ONE, "ann", 100_000)
    stage.now_ms += 5_000
    await stage.fail(ONE, "bob", 100_000)
    stage.now_ms += 60_000
    assert await stage.settle(ONE, "cid") == {}


async def test_an_agent_that_settles_in_the_end_was_not_the_cause() -> None:
    stage = Stage()
    await stage.fail(ONE, "ann")
    stage.now_ms += 5_000
    assert await stage.settle(ONE, "ann") == {}


async def test_the_venues_own_bids_neither_cast_doubts_nor_resolve_them() -> None:
    """No code of an agent runs in them; a bridge-only order of an owner says nothing of an agent."""
    stage, own = Stage(), "0xDe17A00000000000000000000000000000000000"
    await stage.fail(ONE, own, 100_000)
    stage.now_ms += 5_000
    assert await stage.settle(ONE, "ann") == {}
    await stage.fail(TWO, "ann", 100_000)
    stage.now_ms += 5_000
    assert await stage.settle(TWO, own) == {}
    assert await stage.settle(TWO, "bob") == {TWO: "ann"}


async def test_strangers_that_fail_own_bids_bar_nobody_and_own_bids_make_no_owner_known_to_others() -> None:
    """All bridge-only orders have one name for their bidder; else a few owners could stop all others'."""
    stage, own = Stage(), "0xDe17A00000000000000000000000000000000000"
    for _ in range(3):
        stage.costs.wasted(own, GAS_OF_DOUBTS.most)
        stage.costs.wasted("ann", GAS_OF_DOUBTS.most)
    assert not stage.costs.is_barred(own, ONE)
    assert stage.costs.is_barred("ann", ONE)
    await stage.settle(ONE, own)
    assert stage.costs.is_barred("ann", ONE), "the owner is known to no other agent"
    await stage.settle(ONE, "bob")
    assert not stage.costs.is_barred("ann", ONE)


# --- Until when -----------------------------------------------------------------------------------------


async def test_an_owner_rests_up_to_the_millisecond_and_not_at_its_end() -> None:
    stage = Stage()
    assert stage.costs.rests_until_ms(ONE) == 0
    assert await stage.fail(ONE, gas=GAS_OF_OWNER.most)
    end_ms = stage.now_ms + REST_MS
    for now_ms, until_ms in ((end_ms - 1, end_ms), (end_ms, 0)):
        stage.now_ms = now_ms
        assert stage.costs.rests_until_ms(ONE) == until_ms


@pytest.mark.parametrize("is_other_open", [False, True])
async def test_an_owner_without_gas_waits_until_it_comes_back_and_looks_sooner_if_others_may_give_it_back(
    is_other_open: bool,
) -> None:
    """A million units come back in a day, half of them in half a day."""
    stage = Stage()
    assert await stage.fail(ONE, gas=GAS_OF_OWNER.most)
    stage.now_ms += REST_MS
    assert not is_other_open or await stage.begin(TWO)
    assert not await stage.begin(ONE, gas=GAS_OF_OWNER.most // 2)
    end_ms = stage.now_ms + (10_000 if is_other_open else 43_200_000 - REST_MS)
    for now_ms, until_ms in ((stage.now_ms, end_ms), (end_ms - 1, end_ms), (end_ms, 0)):
        stage.now_ms = now_ms
        assert stage.costs.rests_until_ms(ONE) == until_ms
    assert bool(await stage.begin(ONE, gas=GAS_OF_OWNER.most // 2)) is not is_other_open


async def test_an_owner_without_a_place_looks_again_after_a_second() -> None:
    stage = Stage()
    for number in range(PLACES_OF_NEW_OWNERS.most):
        assert await stage.begin(bytes([0, number]) * 10, gas=1)
    assert not await stage.begin(ONE, gas=1)
    assert stage.costs.rests_until_ms(ONE) == stage.now_ms + 1_000


async def test_an_owner_whose_acts_cost_more_than_it_has_waits_for_its_gas_and_not_for_its_rest() -> None:
    stage = Stage()
    assert await stage.fail(KEY, gas=GAS_OF_OWNER.most)
    stage.now_ms += REST_MS
    assert await stage.fail(KEY, gas=GAS_OF_OWNER.most // 2)
    assert stage.costs.rests_until_ms(KEY) == stage.now_ms + 43_200_000 - REST_MS
    assert stage.costs.rests_until_ms(ONE) == 0


async def test_an_owner_that_settles_between_failures_rests_as_after_the_first() -> None:
    stage = Stage()
    assert await stage.fail(ONE, gas=100_000)
    stage.now_ms += REST_MS
    await stage.settle(ONE)
    assert await stage.fail(ONE, gas=100_000), "once for each time that it settles, it has no rest"
    assert stage.rest_s(ONE) == 0
    assert await stage.fail(ONE, gas=100_000)
    assert stage.rest_s(ONE) == 5


# --- What is charged ------------------------------------------------------------------------------------


async def test_a_settlement_above_an_owners_budget_takes_all_of_it_and_no_more() -> None:
    stage = Stage()
    key = await stage.begin(ONE, gas=100 * GAS_OF_NEW_OWNERS.most)
    assert key
    assert not await stage.begin(TWO, gas=1), "all owners' gas is taken"
    stage.costs.failed(key, "ann", 0, {}, is_doubted=False)
    stage.now_ms += 10_000
    assert await stage.begin(TWO, gas=1)


async def test_a_network_answers_for_the_contracts_of_its_orders_alone() -> None:
    stage = Stage()
    stage.submitter = "network 203.0.113"
    keys = [bytes([9, number]) * 10 for number in range(20)]
    for key in keys:
        assert await stage.fail(key, gas=GAS_OF_OWNER.most)
    assert await stage.begin(ONE, gas=GAS_OF_NETWORK.most)


async def test_orders_whose_submitter_is_unknown_are_charged_to_no_network() -> None:
    """As after a restart."""
    stage = Stage()
    stage.submitter = ""
    wallets = [bytes([1, number]) * 10 for number in range(20)]
    stage.codes = {wallet: bytes([number]) for number, wallet in enumerate(wallets)}
    failed = [await stage.fail(wallet) for wallet in wallets]
    assert sum(failed) == GAS_OF_NEW_OWNERS.most // GAS


async def test_a_crossing_is_charged_to_its_contracts_and_not_to_its_keys() -> None:
    stage = Stage()
    assert await stage.begin(ONE, KEY, gas=GAS_OF_OWNER.most)
    assert await stage.begin(TWO, KEY, gas=GAS_OF_OWNER.most)
    assert not await stage.begin(ONE, gas=1)
    assert await stage.begin(KEY, gas=1)


async def test_a_settlement_is_judged_once_whatever_becomes_of_it() -> None:
    stage = Stage()
    orders: list[Any] = [SimpleNamespace(terms=SimpleNamespace(owner=ONE), causer="key k")]
    assert await stage.judged("one", orders)
    assert stage.costs.failed("one", "ann", 0, {}, is_doubted=False)
    assert await stage.judged("one", orders)
    assert not stage.costs.failed("one", "ann", GAS, stage.payers(ONE), is_doubted=True), "it has ended"
    stage.costs.failed(await stage.begin(ONE), "ann", GAS, stage.payers(ONE), is_doubted=False)
    assert not await stage.judged("two", orders)
    stage.now_ms += 1_000_000
    assert not await stage.judged("two", orders)
    assert await stage.judged("three", orders)


async def test_a_settlement_that_was_sent_before_takes_neither_gas_nor_places() -> None:
    stage = Stage()
    for _ in range(PLACES_OF_NEW_OWNERS.most + 1):
        assert await stage.begin(ONE, gas=GAS_OF_OWNER.most, is_sent=True)
    assert await stage.begin(TWO, gas=GAS_OF_CODE.most)


async def test_the_code_of_a_settlement_is_told_of_the_owners_that_have_some() -> None:
    stage = Stage()
    stage.codes[TWO] = b"another"
    orders: list[Any] = [SimpleNamespace(terms=SimpleNamespace(owner=owner)) for owner in (ONE, KEY, TWO)]
    found = await stage.costs.codes(orders)
    assert found == {ONE: frozenset({b"wallet"}), TWO: frozenset({b"another"})}


async def test_a_failure_that_is_not_in_doubt_counts_against_no_agent_later() -> None:
    stage = Stage()
    stage.costs.failed(await stage.begin(ONE), "ann", 0, {}, is_doubted=False)
    assert await stage.settle(ONE, "bob") == {}


# --- Agents that waste gas -------------------------------------------------------------------------------


async def test_an_agent_that_wasted_gas_is_barred_from_owners_that_only_it_knows() -> None:
    """Four million units an hour: two halves, then a quarter, which comes back in a quarter of an hour."""
    stage = Stage()
    await stage.settle(TWO, "ann")
    await stage.settle(KEY, "ann")
    await stage.settle(KEY, "bob")
    most, began_ms = GAS_OF_DOUBTS.most, stage.now_ms
    for gas_used, barred_s in ((most // 2, 0), (most // 2, 0), (most // 4, 900)):
        stage.costs.wasted("ann", gas_used)
        for at_ms in (began_ms, began_ms + 899_999, began_ms + 900_000):
            stage.now_ms = at_ms
            is_barred = at_ms - began_ms < 1_000 * barred_s
            assert stage.costs.is_barred("ann", ONE) is is_barred
            assert stage.costs.is_barred("ann", TWO) is is_barred
            assert not stage.costs.is_barred("ann", KEY), "another agent settles for it too"
            assert not stage.costs.is_barred("bob", ONE)
        stage.now_ms = began_ms


def test_a_failure_above_an_agents_budget_takes_all_of_it_and_no_more() -> None:
    stage = Stage()
    stage.costs.wasted("ann", 10 * GAS_OF_DOUBTS.most)
    assert not stage.costs.is_barred("ann", ONE)
    stage.costs.wasted("ann", GAS_OF_DOUBTS.most // 3_600)
    assert stage.costs.is_barred("ann", ONE)
    stage.now_ms += 2_000
    assert not stage.costs.is_barred("ann", ONE)

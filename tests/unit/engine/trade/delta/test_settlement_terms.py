"""Settlements as effects store them: made from a bid, with the amounts and gas that their agent keeps to."""

import msgspec
import pytest

from cambist.codecs.messages.vocabulary import Side
from cambist.engine.store.rows import DeltaFill, Effect, EffectState, amount32
from cambist.engine.trade.delta.settlement.settling import (
    Settlement,
    settlement_in,
    settlement_of,
    settlement_payload,
)
from cambist.engine.trade.orders.order_units import effect_key
from support.delta.bidding import DEADLINE_S, USDC_ONE, a_delta_order, a_proven, a_round_order, hash_of
from support.store.stores import NOW_MS
from support.store.stores import a_delta_order as a_row

GAS_MAX = 10_000_000


def a_settlement(
    *, amount: int = 0, is_purchase: bool = False, simulated_gas: int = 0, key: str = ""
) -> Settlement:
    return Settlement(
        key, b"data", 1, 2, "ann", 3, str(amount), is_purchase=is_purchase, simulated_gas=simulated_gas
    )


@pytest.mark.parametrize(
    ("is_purchase", "simulated", "kept", "broken"),
    [
        (False, 10_000, [9_990, 10_000, 99_999], [9_989, 0]),
        (False, 10_999, [10_989], [10_988]),
        (False, 999, [999, 1_000], [998]),
        (True, 10_000, [10_010, 10_000, 0], [10_011, 99_999]),
        (True, 10_999, [11_009], [11_010]),
        (True, 999, [999, 998], [1_000]),
    ],
)
def test_an_agent_keeps_its_amount_within_a_thousandth_rounded_down(
    is_purchase: bool, simulated: int, kept: list[int], broken: list[int]
) -> None:
    settlement = a_settlement(amount=simulated, is_purchase=is_purchase)
    assert [settlement.is_kept(amount) for amount in kept] == [True] * len(kept)
    assert [settlement.is_kept(amount) for amount in broken] == [False] * len(broken)


@pytest.mark.parametrize(
    ("simulated", "most"), [(200_000, 245_000), (200_009, 245_009), (200_010, 245_011), (0, 25_000)]
)
def test_an_agent_keeps_its_gas_within_a_tenth_and_a_first_write(simulated: int, most: int) -> None:
    assert a_settlement(simulated_gas=simulated).gas_kept == most


def test_the_amount_of_a_fill_is_what_the_user_received_or_paid() -> None:
    amounts = amount32(5), amount32(9), NOW_MS, amount32(5)
    fill = DeltaFill(1, bytes(32), bytes(32), 0, 1, hash_of(1), None, *amounts, is_closed=True)
    assert a_settlement().amount_in(fill) == 9
    assert a_settlement(is_purchase=True).amount_in(fill) == 5


@pytest.mark.parametrize("deadline_s", [DEADLINE_S - 8, DEADLINE_S - 7, DEADLINE_S - 6])
def test_each_order_of_a_crossing_has_the_settlement_of_the_whole_with_its_own_amounts(
    deadline_s: int,
) -> None:
    sale = a_round_order(1)
    purchase = a_round_order(2, a_delta_order(buys=True, nonce=2, deadline=DEADLINE_S - 7))
    third = a_round_order(3)
    parts = (sale, 2_450 * USDC_ONE), (purchase, 10**18), (third, 2_460 * USDC_ONE)
    bid = a_proven("ann", *parts, gas=100_001, better=[3, 4, 5], calldata=b"crossed")
    found = [settlement_of(bid, at, "key", 7, deadline_s, GAS_MAX) for at in range(3)]
    for at, ((asked, promised), settlement) in enumerate(zip(parts, found, strict=True)):
        is_purchase = asked.terms.side is Side.BUY
        assert settlement == Settlement(
            key="key",
            data=b"crossed",
            gas=300_003 + 100_001 + 50_000,
            deadline_s=min(deadline_s, DEADLINE_S - 7),
            agent="ann",
            auction_id=7,
            amount=str(promised - 4 if is_purchase else promised + 3 + at),
            part_amount=str(asked.part.amount),
            others=tuple(other.order_hash for other, _ in parts if other is not asked),
            is_purchase=is_purchase,
            promised=str(promised),
            simulated_gas=300_003,
            owners_data=bid.candidate.owners_calldata,
        )


@pytest.mark.parametrize(("gas_max", "gas"), [(449_999, 449_999), (450_000, 450_000), (450_001, 450_000)])
def test_a_settlement_may_use_a_third_more_gas_than_its_simulation_and_a_slack(
    gas_max: int, gas: int
) -> None:
    bid = a_proven("ann", (a_round_order(1), 2_400), gas=300_000)
    assert settlement_of(bid, 0, "", 1, DEADLINE_S, gas_max).gas == gas


@pytest.mark.parametrize("key", ["", "the first order's"])
def test_a_settlement_without_a_key_has_the_key_of_the_effect_that_stores_it(key: str) -> None:
    row, settlement = a_row(1, version=5), a_settlement(key=key)
    payload = settlement_payload(settlement, row)
    times = 1, EffectState.INTENDED, 0, NOW_MS, NOW_MS
    effect = Effect("", row.order_hash, row.shard, "settle", payload, NOW_MS, *times)
    expected = key or effect_key(row.order_hash, 6, "settle")
    assert settlement_in(effect) == msgspec.structs.replace(settlement, key=expected)

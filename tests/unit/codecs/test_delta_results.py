"""Results of settlements: read as eth-abi writes them; all other bytes are refused."""

import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cambist.codecs.contracts.abi import encode, uint_word, words_tail
from cambist.codecs.contracts.delta_results import (
    Crossed,
    OrderState,
    Settled,
    decode_crossed,
    decode_order_state,
    decode_settled,
)
from cambist.config.errors import InvalidInput
from support.oracles import Oracle

uint256 = st.integers(0, 2**256 - 1)
pairs = st.lists(st.tuples(uint256, uint256), min_size=2, max_size=8)


def crossed(spent: list[int], received: list[int], gas: int = 3) -> bytes:
    return encode(
        words_tail(list(map(uint_word, spent))), words_tail(list(map(uint_word, received))), uint_word(gas)
    )


@given(uint256, uint256, uint256)
def test_of_one_order(spent: int, received: int, gas: int) -> None:
    data = uint_word(spent) + uint_word(received) + uint_word(gas)
    assert decode_settled(data) == Settled(spent, received, gas)


@pytest.mark.parametrize("size", [0, 32, 95, 97, 128])
def test_three_words_and_no_other_size(size: int) -> None:
    with pytest.raises(InvalidInput, match=f"96 bytes.*{size} bytes"):
        decode_settled(bytes(size))


@pytest.mark.oracle
@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(pairs, uint256)
def test_of_orders_against_each_other(eth_account: Oracle, both: list[tuple[int, int]], gas: int) -> None:
    spent, received = map(tuple, zip(*both, strict=True))
    values = [[f"int:{one}" for one in spent], [f"int:{one}" for one in received], f"int:{gas}"]
    answer = eth_account.ask(ask="abi", types=["uint256[]", "uint256[]", "uint256"], values=values)
    assert decode_crossed(bytes.fromhex(answer["encoded"])) == Crossed(spent, received, gas)


@pytest.mark.parametrize("order_hash", [b"\x11" * 32, b"\x11" * 31 + b"\x10"], ids=["odd", "even"])
def test_a_nonce_is_used_by_the_order_whose_hash_it_keeps_but_for_the_last_bit(order_hash: bytes) -> None:
    kept = int.from_bytes(order_hash, "big") // 2 * 2

    def state(order: int, used: int, done: int) -> OrderState:
        words = uint_word(order) + uint_word(used) + uint_word(done)
        return decode_order_state(words, order_hash, is_scheduled=False)

    assert state(kept, 0, 5) == OrderState(False, False, False, 5)
    assert state(kept, 1, 0) == OrderState(False, True, True, 0)
    assert state(kept + 2, 1, 0) == OrderState(True, True, False, 0)
    assert state(0, 1, 0) == OrderState(False, True, False, 0)


def test_lists_are_read_to_the_unit() -> None:
    for count in range(2, 9):
        spent, received = [*range(1, count + 1)], [*range(20, 20 + count)]
        assert decode_crossed(crossed(spent, received, 7)) == Crossed((*spent,), (*received,), 7)


WHOLE = crossed([1, 2], [3, 4])


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"", "4 words"),
        (WHOLE[:-1], "288 bytes"),
        (WHOLE + bytes(32), "288 bytes"),
        (crossed([1], [2]), "2 to 8 orders"),
        (crossed([1] * 9, [2] * 9), "2 to 8 orders"),
        (crossed([1, 2], [3, 4, 5]), "288 bytes"),
        (crossed([1, 2, 3], [4, 5]), "352 bytes"),
        (uint_word(128) + WHOLE[32:], "96 as word 0"),
        (WHOLE[:32] + uint_word(96) + WHOLE[64:], "192 as word 1"),
        (WHOLE[:192] + uint_word(3) + WHOLE[224:], "2 as word 6"),
        (WHOLE[:96] + uint_word(2**255) + WHOLE[128:], "2 to 8 orders"),
    ],
)
def test_any_other_layout_is_refused(data: bytes, told: str) -> None:
    with pytest.raises(InvalidInput, match=re.escape(told)):
        decode_crossed(data)

import pytest

from cambist.codecs.transactions import ReceivedTransaction, Transaction, decode_transaction, sign_transaction
from cambist.config import limits
from cambist.config.errors import RefusalKind, TransactionRefused
from cambist.crypto.secp256k1 import SigningKey
from cambist.engine.dev.embedded.waiting import Waiting

ANNA, BERT = SigningKey(b"\1" * 32), SigningKey(b"\2" * 32)
GAS_LEFT = 30_000_000


def received(
    key: SigningKey, nonce: int, tip_wei: int = 10, fee_max_wei: int = 1_000, gas: int = 21_000
) -> ReceivedTransaction:
    tx = Transaction(1, nonce, tip_wei, fee_max_wei, gas, bytes(20), 0, b"")
    return decode_transaction(sign_transaction(tx, key).raw)


def order(
    waiting: Waiting, nonces: dict[bytes, int], base_fee_wei: int = 100, gas_left: int = GAS_LEFT
) -> list[bytes]:
    """Hashes in the order in which they would be mined."""
    hashes = []
    while (one := waiting.next(lambda sender: nonces.get(sender, 0), base_fee_wei, gas_left)) is not None:
        hashes.append(one.tx_hash)
        waiting.remove(one.tx_hash)
        nonces[one.sender] = one.transaction.nonce + 1
        gas_left -= one.transaction.gas
    return hashes


def test_the_better_payer_goes_first_but_nonces_stay_in_order() -> None:
    first, dear = received(ANNA, 0, tip_wei=1), received(ANNA, 1, tip_wei=500)
    middle = received(BERT, 0, tip_wei=100)
    waiting = Waiting()
    for one in (dear, first, middle):
        waiting.add(one)
    assert order(waiting, {}) == [middle.tx_hash, first.tx_hash, dear.tx_hash]
    assert len(waiting) == 0


def test_among_equals_the_earlier_goes_first() -> None:
    late, early = received(ANNA, 0), received(BERT, 0)
    waiting = Waiting()
    waiting.add(early)
    waiting.add(late)
    assert order(waiting, {}) == [early.tx_hash, late.tx_hash]


def test_a_gap_a_low_fee_or_a_full_block_wait_on() -> None:
    waiting = Waiting()
    waiting.add(received(ANNA, 1))
    waiting.add(received(BERT, 0, fee_max_wei=99))
    assert order(waiting, {}) == []
    assert order(waiting, {ANNA.address: 1}, gas_left=20_999) == []
    assert len(waiting) == 2


@pytest.mark.parametrize(
    ("tip_wei", "fee_max_wei", "taken"),
    [(11, 1_100, True), (10, 1_100, False), (11, 1_099, False), (50, 5_000, True)],
)
def test_a_replacement_offers_a_tenth_more_of_both_fees(tip_wei: int, fee_max_wei: int, taken: bool) -> None:
    waiting, held, other = Waiting(), received(ANNA, 0), received(ANNA, 0, tip_wei, fee_max_wei)
    waiting.add(held)
    if not taken:
        with pytest.raises(TransactionRefused) as caught:
            waiting.add(other)
        assert caught.value.kind is RefusalKind.UNDERPRICED
    else:
        waiting.add(other)
    assert (waiting.get(held.tx_hash) is None) is taken
    assert order(waiting, {}) == [(other if taken else held).tx_hash]


def test_used_nonces_are_forgotten() -> None:
    waiting = Waiting()
    ones = [received(ANNA, nonce) for nonce in range(3)]
    for one in ones:
        waiting.add(one)
    waiting.forget_used(ANNA.address, 2)
    assert [waiting.get(one.tx_hash) is None for one in ones] == [True, True, False]


def test_a_copy_is_apart() -> None:
    waiting = Waiting()
    waiting.add(received(ANNA, 0))
    copy = waiting.copy()
    waiting.remove(received(ANNA, 0).tx_hash)
    assert (len(waiting), len(copy)) == (0, 1)


def test_so_many_may_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "EMBEDDED_WAITING_MAX", 2)
    waiting = Waiting()
    for nonce in range(2):
        waiting.add(received(ANNA, nonce))
    with pytest.raises(TransactionRefused, match="too many"):
        waiting.add(received(BERT, 0))
    assert order(waiting, {}) != []

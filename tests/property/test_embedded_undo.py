"""Whatever is done to the embedded chain: undone, it is as it was, in the mirror and in the library."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cambist.codecs.transactions import Transaction, decode_transaction, sign_transaction
from cambist.config.errors import TransactionRefused
from cambist.crypto.secp256k1 import SigningKey
from cambist.engine.dev.embedded import blocks
from cambist.engine.dev.embedded.evm import Evm, EvmMessage
from cambist.engine.dev.embedded.journal import Account
from cambist.engine.dev.embedded.ledger import BlockLedger
from support.chain import evm_programs as programs

pytestmark = pytest.mark.needs("pyrevm")

KEYS = [SigningKey(bytes([number]) * 32) for number in (1, 2)]
CONTRACTS = [bytes([0xC0 + number]) * 20 for number in range(6)]
CODES = (
    programs.STORAGE, programs.CREATOR, programs.DESTROYER, programs.CLEARING, programs.MORTAL,
    programs.HALTING,
)  # fmt: skip
# Reads the slot in the second word of the contract whose code it is given as.
READER = programs.assembled("0 CALLDATALOAD SLOAD 0 MSTORE 32 0 RETURN")

transactions = st.tuples(
    st.sampled_from(KEYS), st.sampled_from(CONTRACTS), st.integers(0, 6), st.booleans(), st.integers(0, 30)
)
steps = st.one_of(
    st.lists(transactions, max_size=3),
    st.integers(1, 4),  # so many blocks are rolled back
    st.tuples(st.sampled_from(CONTRACTS), st.integers(0, 10**18)),  # a balance is given
)
Sent = tuple[SigningKey, bytes, int, bool, int]
Step = list[Sent] | tuple[bytes, int] | int
State = tuple[dict[bytes, Account], dict[bytes, dict[int, int]]]


def state(evm: Evm) -> State:
    return dict(evm._accounts), {address: dict(slots) for address, slots in evm._storage.items()}


def mined(ledger: BlockLedger, chosen: list[Sent]) -> None:
    draft = ledger.begin(ledger.head.header.time_s + 1, blocks.base_fee_after(ledger.head))
    for key, to, word, has_data, value_wei in chosen:
        nonce = ledger.evm.account(key.address).nonce
        data = word.to_bytes(32, "big") * 4 if has_data else b""
        tx = Transaction(1, nonce, 10**9, 10**12, 1_000_000, to, value_wei, data)
        try:
            ledger.execute(draft, decode_transaction(sign_transaction(tx, key).raw))
        except TransactionRefused:
            assert not key.address
    ledger.seal(draft)


def check_library(evm: Evm, ledger: BlockLedger, known: State) -> None:
    """The library's own database says what the mirror says, of all that ever was."""
    rules = ledger.rules(ledger.head)
    balance = programs.assembled("0 CALLDATALOAD BALANCE 0 MSTORE 32 0 RETURN")
    probe = b"\x0f" * 20
    for address in known[0]:
        with evm.applied([(probe, None, Account(1, 0, evm.learn_code(balance)))]):
            out = evm.call(
                rules, EvmMessage(KEYS[0].address, probe, address.rjust(32, b"\0"), 0, 100_000)
            ).output
        assert int.from_bytes(out, "big") == evm.account(address).balance_wei
    for address, slots in known[1].items():
        held = evm.account(address)
        reader = Account(max(held.nonce, 1), held.balance_wei, evm.learn_code(READER))
        with evm.applied([(address, None, reader)]):
            for slot in slots:
                data = slot.to_bytes(32, "big")
                out = evm.call(rules, EvmMessage(KEYS[0].address, address, data, 0, 100_000)).output
                assert int.from_bytes(out, "big") == evm.slot(address, slot)


@given(st.lists(steps, max_size=8))
def test_rolling_back_restores_every_state(plan: list[Step]) -> None:
    ledger = BlockLedger(1, 1_000, {key.address: 10**24 for key in KEYS})
    evm = ledger.evm
    for contract, code in zip(CONTRACTS, CODES, strict=True):
        ledger.change(contract, Account(1, 50, evm.learn_code(code)))
    states = [state(evm)]
    ever: State = ({}, {})
    for step in plan:
        if isinstance(step, list):
            mined(ledger, step)
            states.append(state(evm))
        elif isinstance(step, tuple):
            held = evm.account(step[0])
            ledger.change(step[0], Account(held.nonce, step[1], held.code_hash))
            states[-1] = state(evm)
        else:
            depth = min(step, len(states) - 1)
            if depth == 1:  # and there again
                taken = ledger.roll_back(ledger.head.header.number - depth)
                assert state(evm) == states[-2]
                ledger.bring_back(taken)
                assert state(evm) == states[-1]
            ledger.roll_back(ledger.head.header.number - depth)
            del states[len(states) - depth :]
        now = state(evm)
        assert now == states[-1]
        ever[0].update(now[0])
        for address, slots in now[1].items():
            ever[1].setdefault(address, {}).update(slots)
        for back in range(len(states)):
            with ledger.state_at(ledger.find(ledger.head.header.number - back)):
                assert state(evm) == states[len(states) - 1 - back]
    check_library(evm, ledger, ever)

"""The state and the machine on it; tests/e2e compares executions with anvil."""

import pytest

from cambist.codecs.transactions import contract_address
from cambist.config.errors import ChainError, RefusalKind, TransactionRefused
from cambist.crypto.keccak import KECCAK_EMPTY, keccak256
from cambist.engine.dev.embedded import evm as evm_module
from cambist.engine.dev.embedded.evm import COINBASE, BlockRules, Evm, EvmMessage, JournalWrite
from cambist.engine.dev.embedded.journal import EMPTY, Account
from support.chain import evm_programs as programs

pytestmark = pytest.mark.needs("pyrevm")

SENDER, CONTRACT = b"\xaa" * 20, b"\xbb" * 20
WEI = 10**18
RULES = BlockRules(5, 1_000, 7, bytes(32))
COUNTER = programs.assembled("0 SLOAD 1 ADD DUP1 0 SSTORE 0 MSTORE 32 0 RETURN")


@pytest.fixture
def evm() -> Evm:
    evm = Evm(31337)
    evm.apply([(SENDER, None, Account(3, WEI)), (CONTRACT, None, Account(1, 0, evm.learn_code(COUNTER)))])
    return evm


def message(
    data: bytes = b"", *, to: bytes = CONTRACT, gas: int = 100_000, price_wei: int = 10
) -> EvmMessage:
    return EvmMessage(SENDER, to, data, 0, gas, price_wei)


def test_a_new_state_is_empty() -> None:
    evm = Evm(1)
    assert evm.account(SENDER) == EMPTY
    assert evm.account(COINBASE) == EMPTY
    assert evm.code_of(KECCAK_EMPTY) == b""


def test_writes_give_what_undoes_them(evm: Evm) -> None:
    writes: list[JournalWrite] = [
        (SENDER, None, Account(9, 1)), (CONTRACT, 0, 41), (CONTRACT, 0, 42), (CONTRACT, 2**256 - 1, 1),
        (b"\xcc" * 20, None, Account(0, 5)),
    ]  # fmt: skip
    undo = evm.apply(writes)
    assert evm.call(RULES, message(price_wei=0)).output == (43).to_bytes(32, "big")
    redo = evm.apply(undo)
    assert evm.call(RULES, message(price_wei=0)).output == (1).to_bytes(32, "big")
    assert (evm.account(SENDER), evm.slot(CONTRACT, 2**256 - 1)) == (Account(3, WEI), 0)
    assert evm.account(b"\xcc" * 20) == EMPTY
    evm.apply(redo)
    assert evm.slot(CONTRACT, 0) == 42


def test_a_transaction_pays_and_burns(evm: Evm) -> None:
    outcome, _ = evm.transact(RULES, message())
    assert outcome.succeeded
    assert evm.account(SENDER) == Account(4, WEI - 10 * outcome.gas_used)
    assert evm.account(COINBASE) == Account(0, 3 * outcome.gas_used)
    assert evm.slot(CONTRACT, 0) == 1


def test_the_same_call_costs_the_same_each_time(evm: Evm) -> None:
    assert len({evm.call(RULES, message(price_wei=0)).gas_used for _ in range(3)}) == 1
    used = [evm.transact(RULES, message())[0].gas_used for _ in range(3)]
    assert used[0] == used[1] + 17_100  # a slot that was zero
    assert used[1] == used[2]


def test_a_call_leaves_no_trace(evm: Evm) -> None:
    before = evm.account(SENDER), evm.slot(CONTRACT, 0)
    for to in (CONTRACT, b""):
        assert evm.call(RULES, message(programs.deploys(COUNTER), to=to, price_wei=0)).succeeded
    assert (evm.account(SENDER), evm.slot(CONTRACT, 0)) == before


def test_a_failed_transaction_pays_all_the_same(evm: Evm) -> None:
    evm.apply([(CONTRACT, None, Account(1, 0, evm.learn_code(programs.HALTING)))])
    reverted, _ = evm.transact(RULES, message((1).to_bytes(32, "big")))
    assert (reverted.succeeded, reverted.output, reverted.halt) == (False, (0xBAD).to_bytes(32, "big"), "")
    halted, undo = evm.transact(RULES, message((3).to_bytes(32, "big")))
    assert (halted.succeeded, halted.gas_used, halted.halt) == (False, 100_000, "OutOfGas(Basic)")
    assert evm.account(SENDER) == Account(5, WEI - 10 * (reverted.gas_used + 100_000))
    assert evm.account(COINBASE) == Account(0, 3 * (reverted.gas_used + 100_000))
    evm.apply(undo)
    assert evm.account(SENDER) == Account(4, WEI - 10 * reverted.gas_used)


def test_a_contract_that_dies_where_it_was_made_leaves_nothing(evm: Evm) -> None:
    evm.apply([(CONTRACT, None, Account(1, 10, evm.learn_code(programs.DESTROYER)))])
    assert evm.transact(RULES, message(gas=1_000_000))[0].succeeded
    child = evm.slot(CONTRACT, 0).to_bytes(20, "big")
    assert child == contract_address(CONTRACT, 1)
    assert (evm.account(child), evm.slot(child, 1)) == (EMPTY, 0)
    assert evm.account(CONTRACT).balance_wei == 10  # what the child had came back


def test_a_contract_may_be_the_sender_of_a_call_and_is_called_back(evm: Evm) -> None:
    caller = b"\xdd" * 20
    calls_back = programs.assembled("32 0 0 0 0 CALLER GAS CALL POP 32 0 RETURN")
    evm.apply(
        [(caller, None, Account(1, 0, evm.learn_code(COUNTER))), (caller, 0, 6),
         (CONTRACT, None, Account(1, 0, evm.learn_code(calls_back)))]
    )  # fmt: skip
    assert evm.call(RULES, EvmMessage(caller, CONTRACT, b"", 0, 100_000)).output == (7).to_bytes(32, "big")
    assert evm.account(caller).code_hash == keccak256(COUNTER)
    assert evm.slot(caller, 0) == 6


@pytest.mark.parametrize(
    ("wrong", "kind"),
    [
        (EvmMessage(SENDER, CONTRACT, b"", 0, 20_999, 10), RefusalKind.GAS),
        (EvmMessage(SENDER, CONTRACT, b"", 0, 30_000_001, 10), RefusalKind.GAS),
        (EvmMessage(SENDER, CONTRACT, b"", WEI, 100_000, 10), RefusalKind.FUNDS),
        (EvmMessage(SENDER, CONTRACT, b"", WEI + 1, 100_000), RefusalKind.FUNDS),
        (EvmMessage(SENDER, b"", bytes(49_153), 0, 9_000_000, 10), RefusalKind.INVALID),
    ],
)
def test_what_no_block_may_hold_changes_nothing(evm: Evm, wrong: EvmMessage, kind: RefusalKind) -> None:
    with pytest.raises(TransactionRefused) as caught:
        evm.transact(RULES, wrong)
    assert caught.value.kind is kind
    assert evm.account(SENDER) == Account(3, WEI)
    assert evm.transact(RULES, message())[0].succeeded


def test_an_access_list_is_forgotten_with_its_transaction(evm: Evm) -> None:
    plain = evm.call(RULES, message(price_wei=0)).gas_used
    listed = EvmMessage(SENDER, CONTRACT, b"", 0, 100_000, 0, ((CONTRACT, (bytes(32),)),))
    assert evm.call(RULES, listed).gas_used == plain + 2_400 + 1_900 - 2_000
    assert evm.call(RULES, message(price_wei=0)).gas_used == plain


def test_the_base_fee_is_read_through_the_hash_of_the_true_code(evm: Evm) -> None:
    code = programs.assembled("BASEFEE 0 MSTORE ADDRESS EXTCODEHASH 32 MSTORE 64 0 RETURN")
    evm.apply([(CONTRACT, None, Account(1, 0, evm.learn_code(code)))])
    for fee_wei in (7, 8):
        rules = BlockRules(5, 1_000, fee_wei, bytes(32))
        outcome = evm.call(rules, message(price_wei=0))
        assert outcome.output == fee_wei.to_bytes(32, "big") + keccak256(code)
        assert evm.transact(rules, message())[0].output == outcome.output
    assert evm.code_of(keccak256(code)) == code


@pytest.mark.parametrize(
    ("code", "given"),
    [
        ("48", "44"),
        ("6048", "6048"),  # a push
        ("604848", "604844"),
        ("0048", "0048"),  # never reached
        ("005b48", "005b44"),
        ("48fe5b48", "44fe5b48"),  # data
        ("7f48", "7f48"),
    ],
)
def test_only_a_base_fee_that_can_be_read_is_changed(code: str, given: str) -> None:
    assert evm_module.executed(bytes.fromhex(code)).hex() == given


def test_a_library_that_does_something_else_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        evm_module, "_PROOF_CODE", evm_module._PROOF_CODE.replace(b"\x60\x05", b"\x60\x06", 1)
    )
    with pytest.raises(ChainError, match="this pyrevm is not"):
        Evm(31337)

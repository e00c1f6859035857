"""EVM in this process: executes transactions and calls on its own state. No other file uses pyrevm.

pyrevm (revm 8, with Cancun's rules, its newest) is given Prague's prices and delegations from outside. It
keeps a single journal for its lifetime, in which every slot once read stays warm and no transaction is
finalized. To keep the journal cold, each transaction

    takes a checkpoint, executes, reads the journal's debug text, REVERTS, and writes the differences

into pyrevm's database, where the next transaction finds them as on a chain. `commit()` is never called: it
halts every later call. `Evm` mirrors the state, so that reads need no pyrevm and each write returns the write
that undoes it.

The debug text is not a stable interface: `journal` accepts a single form of it, and `Evm` tests itself on a
known program before use.

pyrevm handles fees, the sender's nonce and the tip only in part; `Evm` does the remainder.

Limits of the library, and the workarounds:
    BASEFEE     reads 0. The executed code has PREVRANDAO in its place, and on a chain with such a contract
                both are the base fee. The code's hash and `code_of` are those of the true code, but
                contracts that copy code see the executed code. BASEFEE still reads 0 in a constructor, and
                in a contract during the transaction that creates it.
    BLOCKHASH   reads the keccak of the height's decimal digits, not the hash of the embedded block
    EIP-7702    a delegated account executes its contract's code, as that was when it delegated. `code_of` is
                the delegation; contracts that read the account's code (EXTCODESIZE, EXTCODECOPY) see the
                contract's, and EXTCODEHASH the delegation's. Another contract's call of the account does not
                pay for the access to its code, and a capped refund stays that of the execution alone
    EIP-2537    the precompiled contracts of BLS12-381 are missing

Source: EIP-1559, EIP-2930 (access lists), EIP-3651 (warm coinbase), EIP-6780 (SELFDESTRUCT), EIP-7702
    (delegation), EIP-7623 (price of calldata).
"""

import importlib
import importlib.util
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from ....codecs.transactions import AccessList, Authorization, contract_address
from ....config import limits
from ....config.errors import ChainError, RefusalKind, TransactionRefused
from ....crypto.addresses import ZERO_ADDRESS
from ....crypto.keccak import KECCAK_EMPTY, keccak256
from ...chain.delegation import DELEGATION_PREFIX, is_delegation
from .blocks import GAS_AUTHORIZATION, floor_gas
from .journal import EMPTY, Account, code_text, read_journal

IS_INSTALLED = importlib.util.find_spec("pyrevm") is not None
"""Whether pyrevm is installed; the library lacks wheels for some interpreters and platforms."""

pyrevm: Any = importlib.import_module("pyrevm") if IS_INSTALLED else None

COINBASE = ZERO_ADDRESS
"""Address that receives the tips of all transactions: zero, as on anvil."""

_AUTHORIZED_REFUND = 12_500  # of GAS_AUTHORIZATION, given back for an account that exists
_REFUND_PART = 5  # of the spent gas, a fifth at most is given back (EIP-3529)
_PRECOMPILED = tuple(number.to_bytes(20, "big") for number in range(1, 11))  # Cancun's
_STOP, _PREV_RANDAO, _BASE_FEE, _JUMPDEST = 0x00, 0x44, 0x48, 0x5B
_PUSH1, _PUSH32, _INVALID = 0x60, 0x7F, 0xFE
_ENDS = frozenset({0x00, 0x56, 0xF3, 0xFD, 0xFF})  # STOP, JUMP, RETURN, REVERT, SELFDESTRUCT

JournalWrite = tuple[bytes, int | None, int | Account]
"""A write to the EVM's state: (address, storage slot, new value), or (address, None, new account)."""


class BlockRules(Struct, frozen=True, gc=False):
    """Values of a block that contracts executed in it can read: number, Unix time, base fee, PREVRANDAO."""

    number: int
    time_s: int
    base_fee_wei: int
    prev_randao: bytes


class EvmMessage(Struct, frozen=True, gc=False):
    """Input of one execution in the EVM: a transaction without its signature, or a call.

    Attributes:
        to: address of the called contract, 20 bytes; empty to create a contract from `data`.
        gas: gas limit.
        gas_price_wei: price of a unit of gas, base fee and tip together; 0 for a call.
        access_list: (address, storage slots) pairs whose first access is as cheap as a later one (EIP-2930).
        authorizations: delegations that take effect before the execution (EIP-7702).
    """

    sender: bytes
    to: bytes
    data: bytes
    value_wei: int
    gas: int
    gas_price_wei: int = 0
    access_list: AccessList = ()
    authorizations: tuple[Authorization, ...] = ()


class ExecutionResult(Struct, frozen=True, gc=False):
    """Result of the execution of a transaction or a call in the EVM.

    Attributes:
        output: data that the contract returned, or reverted with.
        halt: revm's name for an exceptional halt, e.g. for lack of gas; empty for success or a revert.
        gas_used: gas after the refund.
        gas_spent: gas before the refund.
        contract: address of the created contract; None if the execution created no contract.
        logs: (address, topics, data) of each log, in order.
    """

    succeeded: bool
    output: bytes
    halt: str
    gas_used: int
    gas_spent: int
    contract: bytes | None
    logs: tuple[tuple[bytes, tuple[bytes, ...], bytes], ...]


_FAILURE = re.compile(
    r"Revert \{ gas_used: (\d+), output: 0x([0-9a-f]*) \}|Halt \{ reason: (.+), gas_used: (\d+) \}"
)


class Evm:
    """EVM of the library pyrevm, with a state of accounts, code and storage.

    Args:
        chain_id: value that the opcode CHAINID returns.

    Raises:
        ChainError: pyrevm is not installed, or its results for a known program are not the expected ones.
    """

    def __init__(self, chain_id: int) -> None:
        self._chain_id = chain_id
        if not IS_INSTALLED:
            raise ChainError("the embedded chain needs pyrevm: install cambist[devnet], or run an anvil")
        self._vm = _machine(chain_id)
        self._accounts: dict[bytes, Account] = {}
        self._storage: dict[bytes, dict[int, int]] = {}
        self._codes: dict[bytes, bytes] = {KECCAK_EMPTY: b""}
        self._code_texts: dict[bytes, str] = {}  # of the codes in the database
        self._is_list_set = False
        self._reads_base_fee = False  # True once a contract uses BASEFEE
        self._rules: BlockRules | None = None
        _prove(self)
        _prove_creation(self)

    def account(self, address: bytes) -> Account:
        """Return the nonce, balance and code hash at an address; EMPTY if no account exists there."""
        return self._accounts.get(address, EMPTY)

    def code_of(self, code_hash: bytes) -> bytes:
        """Return the contract code with a hash; the code must be that of a present or former account."""
        return self._codes[code_hash]

    def slot(self, address: bytes, slot: int) -> int:
        """Return the value of a contract's storage slot, 0 if the slot is not set."""
        return self._storage.get(address, {}).get(slot, 0)

    def learn_code(self, code: bytes) -> bytes:
        """Store contract code, so that `apply` can write accounts with this code; return the code's hash."""
        code_hash = keccak256(code)
        self._codes.setdefault(code_hash, code)
        return code_hash

    def apply(self, writes: Sequence[JournalWrite]) -> list[JournalWrite]:
        """Write accounts and storage slots to the state; return the writes that restore the former state."""
        before: list[JournalWrite] = []
        for write in writes:
            address, slot, value = write
            if isinstance(value, Account):
                before.append((address, None, self.account(address)))
                self._write_account(address, value)
            elif slot is not None:
                before.append((address, slot, self.slot(address, slot)))
                self._write_slot(address, slot, value)
        before.reverse()
        return before

    @contextmanager
    def applied(self, writes: Sequence[JournalWrite]) -> Iterator[None]:
        """Context manager: apply writes to the state, and undo the writes at the exit."""
        undo = self.apply(writes)
        try:
            yield
        finally:
            self.apply(undo)

    def call(self, rules: BlockRules, message: EvmMessage) -> ExecutionResult:
        """Execute a call without changing the state; the sender may be a contract, as on nodes.

        Raises:
            TransactionRefused: the gas limit does not cover the call data, or the sender's balance is below
                the value to send.
        """
        given_back, undo = self._authorize(message)
        try:
            with self._trial(message):
                return self._run(rules, message, given_back)
        finally:
            self.apply(undo)

    def accessed(self, rules: BlockRules, message: EvmMessage) -> tuple[ExecutionResult, AccessList]:
        """Execute a call as `call` does; return its result, and the access list of what it accessed.

        As in the lists of nodes, sender, called contract, created contracts and precompiled contracts are
        listed only for their storage; so is the coinbase, which is warm anyway (EIP-3651). The list lacks
        what inner calls accessed that reverted, and is empty if the call fails: the journal has forgotten it.

        Raises:
            TransactionRefused: as `call`.
        """
        with self._trial(message):
            outcome = self._run(rules, message)
            text = self._vm.journal_str if outcome.succeeded else ""
        loaded = read_journal(text, self._code_texts) if outcome.succeeded else {}
        free = {message.sender, message.to, COINBASE, *_PRECOMPILED}
        return outcome, tuple(
            (address, tuple(slot.to_bytes(32, "big") for slot in sorted(account.slots)))
            for address, account in sorted(loaded.items())
            if account.slots or not (account.created or address in free)
        )

    @contextmanager
    def _trial(self, message: EvmMessage) -> Iterator[None]:
        """Context manager for the execution of a call, whose changes are undone at the exit."""
        checkpoint = self._vm.snapshot()
        try:
            sender = self.account(message.sender)
            if sender.code_hash != KECCAK_EMPTY:
                self._disguise(message.sender, sender)
            yield
        finally:
            self._vm.revert(checkpoint)

    def transact(self, rules: BlockRules, message: EvmMessage) -> tuple[ExecutionResult, list[JournalWrite]]:
        """Execute a transaction, charge its fee and raise its sender's nonce; return (result, undo writes).

        The fee is `gas_price_wei` per unit of gas used: the base fee is burnt, the coinbase gets the tip.

        Raises:
            TransactionRefused: the sender lacks funds, or the EVM rejects the transaction; the state is
                unchanged.
            ChainError: pyrevm returned an inconsistent or unknown result; the state is unchanged.
        """
        given_back, undo = self._authorize(message)
        try:
            outcome, undo_execution = self._transact(rules, message, given_back)
        except (TransactionRefused, ChainError):
            self.apply(undo)
            raise
        return outcome, undo_execution + undo  # a delegation stays where the execution fails

    def _transact(
        self, rules: BlockRules, message: EvmMessage, given_back: int
    ) -> tuple[ExecutionResult, list[JournalWrite]]:
        sender = self.account(message.sender)
        cost_wei = message.gas * message.gas_price_wei
        if sender.balance_wei < cost_wei + message.value_wei:
            raise TransactionRefused(RefusalKind.FUNDS, f"the sender has {sender.balance_wei} wei")
        # `deploy` takes the fee itself, all of it for the coinbase, and counts the nonce; `message_call`
        # does neither.
        deposit_wei = cost_wei if message.to else 0
        debited = Account(
            sender.nonce + (1 if message.to else 0), sender.balance_wei - deposit_wei, sender.code_hash
        )
        with self.applied([(message.sender, None, debited)]):
            checkpoint = self._vm.snapshot()
            try:
                if is_delegation(self._codes[sender.code_hash]):
                    self._disguise(message.sender, debited)
                outcome = self._run(rules, message, given_back)
                # Read before the revert, which empties the journal. A failed execution changed no state.
                text = self._vm.journal_str if outcome.succeeded else ""
            finally:
                self._vm.revert(checkpoint)
        writes = self._differences(text, message.sender) if outcome.succeeded else []
        after = {address: value for address, _, value in writes if isinstance(value, Account)}
        paid_wei = outcome.gas_used * message.gas_price_wei
        burnt_wei = outcome.gas_used * rules.base_fee_wei
        if not outcome.succeeded:
            after[message.sender] = _richer(sender, -paid_wei)
            after[COINBASE] = _richer(self.account(COINBASE), paid_wei - burnt_wei)
        elif message.to:
            after[message.sender] = _richer(after[message.sender], deposit_wei - paid_wei)
            after[COINBASE] = _richer(after.get(COINBASE, self.account(COINBASE)), paid_wei - burnt_wei)
        else:
            # `deploy` has charged what the EVM used, without the floor of the data.
            floor_wei = paid_wei - self._vm.result.gas_used * message.gas_price_wei
            after[message.sender] = _richer(after[message.sender], -floor_wei)
            after[COINBASE] = _richer(after.get(COINBASE, self.account(COINBASE)), floor_wei - burnt_wei)
        # One nonce for each transaction: the branches above left it raised by `deploy`, by us, or not at all.
        # The code is its own, whatever it was disguised as: no transaction changes the code of its sender.
        payer = after[message.sender]
        after[message.sender] = Account(sender.nonce + 1, payer.balance_wei, sender.code_hash)
        slots = [write for write in writes if write[1] is not None]
        accounts: list[JournalWrite] = [(address, None, account) for address, account in after.items()]
        return outcome, self.apply(accounts + slots)

    def _authorize(self, message: EvmMessage) -> tuple[int, list[JournalWrite]]:
        """Have accounts delegate as a message authorizes; an authorization that does not fit is left out.

        Returns:
            (gas that is given back for accounts that existed; undo writes).
        """
        given_back, undo = 0, list[JournalWrite]()
        for one in message.authorizations:
            authority = one.authority
            if authority is None or one.chain_id not in (0, self._chain_id):
                continue
            account = self.account(authority)
            code = self._codes[account.code_hash]
            # The sender's nonce counts the transaction already, which `transact` adds at its end.
            nonce = account.nonce + (authority == message.sender)
            if one.nonce != nonce or (code and not is_delegation(code)):
                continue
            given_back += _AUTHORIZED_REFUND if account != EMPTY else 0
            delegation = DELEGATION_PREFIX + one.address if any(one.address) else b""
            became = Account(account.nonce + 1, account.balance_wei, self.learn_code(delegation))
            undo = self.apply([(authority, None, became)]) + undo
        return given_back, undo

    def _run(self, rules: BlockRules, message: EvmMessage, given_back: int = 0) -> ExecutionResult:
        """Execute a message as `_execute` does, at the prices of Prague.

        Args:
            given_back: gas that is given back for accounts that delegate and existed.

        Raises:
            TransactionRefused: the gas limit does not cover data and authorizations.
        """
        floor = floor_gas(message.data)
        if message.gas < floor:
            raise TransactionRefused(RefusalKind.GAS, f"its data alone uses {floor}")
        extra = GAS_AUTHORIZATION * len(message.authorizations)
        outcome = self._execute(rules, replace(message, gas=max(message.gas - extra, 0)))
        spent = outcome.gas_spent + extra
        refund = min(outcome.gas_spent - outcome.gas_used + given_back, spent // _REFUND_PART)
        used = max(spent - refund, floor)
        return replace(outcome, gas_used=used, gas_spent=max(spent, used))

    def _execute(self, rules: BlockRules, message: EvmMessage) -> ExecutionResult:
        """Execute a message, and leave its changes in pyrevm's journal.

        The caller has to take a checkpoint of the journal before, and to revert to the checkpoint afterwards.
        """
        vm = self._vm
        if rules != self._rules:
            randao = rules.base_fee_wei.to_bytes(32, "big") if self._reads_base_fee else rules.prev_randao
            vm.set_block_env(_block_env(rules, randao))
            self._rules = rules
        # Accounts loaded after the checkpoint are cold again once it is reverted: revm itself would keep the
        # coinbase and the access list warm for ever.
        vm.basic(_text(COINBASE))
        # `set_tx_env` stays in force for later messages: a message without an access list clears the last.
        if message.access_list or self._is_list_set:
            self._warm(message.access_list)
        vm.reset_transient_storage()  # it ends with its transaction (EIP-1153); the journal would keep it
        output, contract, failure = b"", None, ""
        try:
            if message.to:
                output = vm.message_call(
                    _text(message.sender),
                    _text(message.to),
                    calldata=message.data,
                    value=message.value_wei,
                    gas=message.gas,
                    gas_price=message.gas_price_wei,
                )
            else:
                created = vm.deploy(
                    _text(message.sender),
                    message.data,
                    value=message.value_wei,
                    gas=message.gas,
                    gas_price=message.gas_price_wei,
                )
                contract = bytes.fromhex(created[2:])
        except RuntimeError as error:
            # pyrevm raises this for a revert, a halt and a refusal alike; `_outcome` tells them apart.
            failure = str(error)
        return self._outcome(output, contract, failure)

    def _warm(self, access_list: AccessList) -> None:
        listed = [
            (_text(address), [int.from_bytes(slot, "big") for slot in slots])
            for address, slots in access_list
        ]
        for address, slots in listed:
            self._vm.basic(address)
            for slot in slots:
                self._vm.storage(address, slot)
        self._vm.set_tx_env(pyrevm.TxEnv(access_list=listed))
        self._is_list_set = bool(listed)

    def _outcome(self, output: bytes, contract: bytes | None, failure: str) -> ExecutionResult:
        result = self._vm.result
        if result is None:  # revm refused the message and executed nothing
            raise _refusal(failure)
        if not failure:
            if not result.is_success:
                raise ChainError(f"the EVM returned from what it calls {result.reason}")
            spent = result.gas_used + result.gas_refunded
            logs = tuple(_log(log) for log in result.logs)
            return ExecutionResult(
                succeeded=True,
                output=output,
                halt="",
                gas_used=result.gas_used,
                gas_spent=spent,
                contract=contract,
                logs=logs,
            )
        match = _FAILURE.fullmatch(failure)
        if match is None or result.is_success:
            raise ChainError(f"the EVM failed in a way that is not known: {failure[:80]}")
        reverted_gas, reverted_with, halt, halted_gas = match.groups()
        gas_used = int(reverted_gas or halted_gas)
        if gas_used != result.gas_used:
            raise ChainError(f"the EVM used {gas_used} and {result.gas_used} gas")
        return ExecutionResult(
            succeeded=False,
            output=bytes.fromhex(reverted_with or ""),
            halt=halt or "",
            gas_used=gas_used,
            gas_spent=gas_used,
            contract=None,
            logs=(),
        )

    def _differences(self, text: str, sender: bytes) -> list[JournalWrite]:
        """Compute the state writes of a successful transaction from the debug text of the EVM's journal."""
        writes: list[JournalWrite] = []
        for address, now in read_journal(text, self._code_texts).items():
            if not now.touched:
                if any(before != value for before, value in now.slots.values()):
                    raise ChainError(f"the EVM changed storage of 0x{address.hex()}, which it did not touch")
                continue
            if now.destroyed:
                writes.append((address, None, EMPTY))
                continue
            for slot, (before, value) in now.slots.items():
                if before != self.slot(address, slot):
                    raise ChainError(f"the EVM read slot {slot} of 0x{address.hex()} as {before}")
                if before != value:
                    writes.append((address, slot, value))
            if now.account == self.account(address) and address != sender:
                continue
            if now.account.code_hash not in self._codes and (
                now.code is None or self.learn_code(now.code) != now.account.code_hash
            ):
                raise ChainError(f"the EVM's code of 0x{address.hex()} does not have its hash")
            writes.append((address, None, now.account))
        return writes

    def _write_account(self, address: bytes, account: Account) -> None:
        self._vm.insert_account_info(_text(address), self._info(account))
        if account == EMPTY:
            self._accounts.pop(address, None)
        else:
            self._accounts[address] = account

    def _write_slot(self, address: bytes, slot: int, value: int) -> None:
        # A checkpoint for each slot: only the first slot of an account that the journal does not hold is
        # written to the database.
        checkpoint = self._vm.snapshot()
        self._vm.insert_account_storage(_text(address), slot, value)
        self._vm.revert(checkpoint)
        if value:
            self._storage.setdefault(address, {})[slot] = value
        elif slots := self._storage.get(address):
            slots.pop(slot, None)
            if not slots:
                del self._storage[address]

    def _disguise(self, address: bytes, account: Account) -> None:
        """Load a contract into pyrevm's journal with the code hash of an account without code.

        The contract can then be the sender of a call, which EIP-3607 denies to accounts with code.
        """
        self._vm.basic(_text(address))
        info = pyrevm.AccountInfo(
            balance=account.balance_wei,
            nonce=account.nonce,
            code_hash=KECCAK_EMPTY,
            code=self._runs(account.code_hash),
        )
        self._vm.insert_account_info(_text(address), info)

    def _runs(self, code_hash: bytes) -> bytes:
        """Return the code that pyrevm executes for an account's: a delegated one runs its contract's."""
        code = self._codes[code_hash]
        if is_delegation(code):
            target = self._codes[self.account(code[len(DELEGATION_PREFIX) :]).code_hash]
            # A delegation to an account that itself delegates is not followed: 0xEF is no opcode.
            code = bytes([_INVALID]) if is_delegation(target) else target or bytes([_STOP])
        return executed(code)

    def _info(self, account: Account) -> Any:
        if account.code_hash == KECCAK_EMPTY:
            return pyrevm.AccountInfo(balance=account.balance_wei, nonce=account.nonce)
        code = None
        if account.code_hash not in self._code_texts:
            code = self._runs(account.code_hash)
            if code != self._codes[account.code_hash]:
                self._reads_base_fee, self._rules = True, None
            self._code_texts[account.code_hash] = code_text(code)
        return pyrevm.AccountInfo(
            balance=account.balance_wei,
            nonce=account.nonce,
            code_hash=account.code_hash,
            code=code,
        )


@lru_cache(maxsize=256)  # senders with code are few
def executed(code: bytes) -> bytes:
    """Return contract code in the form that pyrevm executes: PREVRANDAO replaces each reachable BASEFEE.

    pyrevm's BASEFEE is always 0. Bytes that neither a jump nor the preceding opcode reaches, and all bytes
    after the first INVALID, stay unchanged: compilers place data and the code of created contracts there.
    """
    if _BASE_FEE not in code:
        return code
    changed = bytearray(code)
    at, reached = 0, True
    while at < len(code) and code[at] != _INVALID:
        opcode = code[at]
        if opcode == _JUMPDEST:
            reached = True
        elif opcode in _ENDS:
            reached = False
        elif opcode == _BASE_FEE and reached:
            changed[at] = _PREV_RANDAO
        elif _PUSH1 <= opcode <= _PUSH32:
            at += opcode - _PUSH1 + 1
        at += 1
    return bytes(changed)


def _richer(account: Account, wei: int) -> Account:
    return Account(account.nonce, account.balance_wei + wei, account.code_hash)


def _machine(chain_id: int) -> Any:
    environment = pyrevm.Env(cfg=pyrevm.CfgEnv(chain_id=chain_id))
    return pyrevm.EVM(spec_id="CANCUN", gas_limit=limits.EMBEDDED_BLOCK_GAS, env=environment)


def _block_env(rules: BlockRules, prev_randao: bytes) -> Any:
    return pyrevm.BlockEnv(
        number=rules.number,
        timestamp=rules.time_s,
        basefee=rules.base_fee_wei,
        prevrandao=prev_randao,
        coinbase=_text(COINBASE),
    )


def _text(address: bytes) -> str:
    return f"0x{address.hex()}"


def _log(log: Any) -> tuple[bytes, tuple[bytes, ...], bytes]:
    topics, data = log.data
    return bytes.fromhex(log.address[2:]), tuple(map(bytes, topics)), bytes(data)


def _refusal(failure: str) -> TransactionRefused:
    if "LackOfFundForMaxFee" in failure or "OverflowPaymentInTransaction" in failure:
        return TransactionRefused(RefusalKind.FUNDS)
    if "GasLimit" in failure or failure.startswith("Initial gas spend"):
        return TransactionRefused(RefusalKind.GAS, failure.partition(" Error:")[0])
    return TransactionRefused(RefusalKind.INVALID, failure)


_PROOF_SENDER, _PROOF_CONTRACT = b"\x11" * 20, b"\x22" * 20
_PROOF_CODE = bytes.fromhex(
    "6005600055"  # slot 0 from 0 to 5
    "60006001556007600255"  # slot 1 from 9 to 0, slot 2 stays 7
    "6001600c5d"  # transient slot 12
    "60aa60005260bb60206000a1"  # a log of one topic and one word
    "6b600160005560016000f3000060a01b600052600c60006003f050"  # creates a contract: 3 wei, slot 0 is 1
    "00"
)
_PROOF_CHILD = bytes.fromhex("894bcfd2eed71b2082101dc85f86865824efb62d")
_PROOF_GAS, _PROOF_REFUND = 100_994, 4_800
_PROOF_CREATION_GAS = 53_114 + 22_112 + 6_400  # intrinsic gas, execution, code deposit


def _prove(vm: Evm) -> None:
    """Test `vm`: execute a known transaction, compare gas, logs and state with expected values, and undo all.

    Raises:
        ChainError: a value differs.
    """
    wei, price_wei, base_fee_wei = 10**18, 12, 10  # a price above the base fee: burnt part and tip both show
    before: list[JournalWrite] = [
        (_PROOF_SENDER, None, Account(4, wei)),
        (_PROOF_CONTRACT, None, Account(1, 5, vm.learn_code(_PROOF_CODE))),
        (_PROOF_CONTRACT, 1, 9),
        (_PROOF_CONTRACT, 2, 7),
    ]
    rules = BlockRules(7, 1_000, base_fee_wei, bytes(32))
    message = EvmMessage(_PROOF_SENDER, _PROOF_CONTRACT, b"", 1, 200_000, price_wei)
    with vm.applied(before):
        outcome, undo = vm.transact(rules, message)
        child_code = vm.account(_PROOF_CHILD).code_hash
        got = [
            outcome.gas_used,
            outcome.gas_spent - outcome.gas_used,
            outcome.logs,
            [vm.account(address) for address in (_PROOF_SENDER, _PROOF_CONTRACT, COINBASE)],
            [vm.slot(_PROOF_CONTRACT, slot) for slot in range(3)],
            (vm.account(_PROOF_CHILD).balance_wei, vm.code_of(child_code), vm.slot(_PROOF_CHILD, 0)),
            len(undo),
        ]
        vm.apply(undo)
        restored = [
            vm.account(_PROOF_CONTRACT).balance_wei,
            vm.slot(_PROOF_CONTRACT, 1),
            vm.slot(_PROOF_CHILD, 0),
        ]
    left_in_journal = len(read_journal(vm._vm.journal_str, {}))
    known = [
        _PROOF_GAS,
        _PROOF_REFUND,
        ((_PROOF_CONTRACT, (b"\xbb".rjust(32, b"\0"),), b"\xaa".rjust(32, b"\0")),),
        [
            Account(5, wei - 1 - _PROOF_GAS * price_wei),
            Account(2, 3, keccak256(_PROOF_CODE)),
            Account(0, _PROOF_GAS * (price_wei - base_fee_wei)),
        ],
        [5, 0, 7],
        (3, b"\0", 1),
        7,
    ]
    if got != known or restored != [5, 9, 0] or left_in_journal:
        raise ChainError(
            f"this pyrevm is not the one that the embedded chain was made for: {got}, {restored}"
        )


def _prove_creation(vm: Evm) -> None:
    """Test `vm`: execute a known contract creation, compare gas, fee and state, and undo all.

    Raises:
        ChainError: a value differs.
    """
    wei, price_wei, base_fee_wei = 10**18, 12, 10
    init_code = bytes.fromhex("3a5f5560205ff3")  # slot 0 is the gas price; 32 zeros of code
    rules = BlockRules(7, 1_000, base_fee_wei, bytes(32))
    with vm.applied([(_PROOF_SENDER, None, Account(4, wei))]):
        outcome, undo = vm.transact(rules, EvmMessage(_PROOF_SENDER, b"", init_code, 2, 200_000, price_wei))
        contract = outcome.contract or b""
        made = vm.account(contract)
        got = [
            outcome.gas_used,
            vm.account(_PROOF_SENDER),
            vm.account(COINBASE),
            (made.nonce, made.balance_wei, vm.code_of(made.code_hash), vm.slot(contract, 0)),
        ]
        vm.apply(undo)
    known = [
        _PROOF_CREATION_GAS,
        Account(5, wei - 2 - _PROOF_CREATION_GAS * price_wei),
        Account(0, _PROOF_CREATION_GAS * (price_wei - base_fee_wei)),
        (1, 2, bytes(32), price_wei),
    ]
    if got != known or contract != contract_address(_PROOF_SENDER, 4):
        raise ChainError(f"this pyrevm does not create as the one that this was made for: {got}")

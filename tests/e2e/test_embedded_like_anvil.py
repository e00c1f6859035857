"""The embedded chain does what anvil does: the same signed transactions have the same results.

Each case deploys its programs on both chains and sends them the same bytes, at the same times. The cases
compare hash, status, gas, price, created address, logs, base fee of the block, results of calls, balances,
nonces, code and storage.
"""

import json
from collections.abc import AsyncIterator, Iterator, Sequence

import msgspec
import pytest
from bench.peers.process import ROOT

from cambist.codecs.transactions import (
    Authorization,
    Transaction,
    contract_address,
    sign_authorization,
    sign_transaction,
)
from cambist.config.errors import ChainError, RefusalKind, Reverted, TransactionRefused
from cambist.crypto.keccak import keccak256
from cambist.crypto.secp256k1 import SigningKey
from cambist.engine.chain.port import DevChain, EthCall, LogFilter
from cambist.engine.dev.devnet.anvil import AnvilChain
from cambist.engine.dev.embedded.embedded import EmbeddedChain
from support.chain import evm_programs as programs
from support.chain.anvil import CHAIN_ID, KEYS, Anvil, opened

pytestmark = pytest.mark.needs("pyrevm")

GWEI, ETHER = 10**9, 10**18
START_S = 4_000_000_000  # later than any wall clock that anvil may start from
CONTRACTS = ROOT / "engine" / "chain" / "contracts" / "artifacts"
EMPTY_SLOT_ADDRESS = b"\x77" * 20


@pytest.fixture(scope="module")
def anvil() -> Iterator[Anvil]:
    with Anvil() as process:
        yield process


class Both:
    """The two chains, and what was sent to both."""

    def __init__(self, embedded: EmbeddedChain, anvil: AnvilChain) -> None:
        self.embedded = embedded
        self.anvil = anvil
        self.keys = [SigningKey(bytes.fromhex(key)) for key in KEYS]
        self.time_s = START_S
        self.nonces = [0] * len(KEYS)
        self.sent = 0
        self.known: set[bytes] = {key.address for key in self.keys} | {bytes(20)}

    @property
    def chains(self) -> Sequence[DevChain]:
        return self.embedded, self.anvil

    def signed(
        self,
        to: bytes,
        data: bytes = b"",
        *,
        value_wei: int = 0,
        gas: int = 1_000_000,
        tip_wei: int = GWEI,
        key: int = 0,
        access_list: tuple[tuple[bytes, tuple[bytes, ...]], ...] = (),
        nonce: int | None = None,
        authorizations: tuple[Authorization, ...] = (),
    ) -> bytes:
        tx = Transaction(
            CHAIN_ID, self.nonces[key] if nonce is None else nonce, tip_wei, 100 * GWEI, gas, to, value_wei,
            data, access_list, authorizations,
        )  # fmt: skip
        return sign_transaction(tx, self.keys[key]).raw

    async def send(self, to: bytes, data: bytes = b"", *, key: int = 0, **options: object) -> bytes | None:
        """Send to both and compare; returns the address of a contract that was created."""
        raw = self.signed(to, data, key=key, **options)  # type: ignore[arg-type]
        self.nonces[key] += 1
        self.time_s += 12
        receipts: list[dict[str, object]] = []
        contracts: list[bytes | None] = []
        for chain in self.chains:
            await chain.set_time(self.time_s)
            tx_hash = await chain.send_raw(raw)
            while (receipt := await chain.receipt(tx_hash)) is None:
                pass
            header = await chain.block(receipt.block_hash)
            assert header is not None
            contracts.append(receipt.contract if receipt.succeeded else None)
            logs = [(log.address, log.topics, log.data, log.log_index, log.tx_index) for log in receipt.logs]
            receipts.append(
                {
                    "hash": receipt.tx_hash,
                    "succeeded": receipt.succeeded,
                    "number": receipt.block_number,
                    "gas": receipt.gas_used,
                    "price": receipt.gas_price_wei,
                    "contract": contracts[-1],
                    "logs": logs,
                    "time": header.time_s,
                    "base fee": header.base_fee_wei,
                    "in the block's logs": [
                        log.data for log in await chain.logs_of(LogFilter(), receipt.block_hash)
                    ],
                }
            )
        assert receipts[0] == receipts[1]
        self.sent += 1
        self.known.update(one for one in contracts if one)
        return contracts[0]

    def delegates(
        self, key: int, to: bytes, *, nonce: int | None = None, chain_id: int = CHAIN_ID
    ) -> Authorization:
        """An account's authorization to have a contract's code; its nonce counts as used."""
        told = self.nonces[key] if nonce is None else nonce
        self.nonces[key] += nonce is None
        return sign_authorization(chain_id, to, told, self.keys[key])

    async def deploy(self, code: bytes, *, key: int = 0, value_wei: int = 0) -> bytes:
        contract = await self.send(b"", programs.deploys(code), key=key, value_wei=value_wei, gas=5_000_000)
        assert contract is not None
        return contract

    async def call(self, to: bytes, data: bytes = b"", **options: object) -> bytes | str:
        """Call on both and compare; returns what came, or why it was refused."""
        answers = [await _answer(chain, EthCall(to, data, **options)) for chain in self.chains]  # type: ignore[arg-type]
        assert answers[0] == answers[1]
        return answers[0]

    async def compare(self, *more: bytes, slots: Sequence[int] = range(40)) -> None:
        """Compare balance, nonce, code and storage of all accounts on both chains."""
        for address in sorted(self.known | set(more)):
            states = []
            for chain in self.chains:
                state = [
                    await chain.balance(address), await chain.nonce(address), await chain.code(address),
                ]  # fmt: skip
                states.append(state)
            assert states[0] == states[1], address.hex()
            for slot in slots:
                word = int.from_bytes(await _slot(self.anvil, address, slot), "big")
                assert await self.embedded.slot(address, slot) == word, (address.hex(), slot)


async def _answer(chain: DevChain, call: EthCall) -> bytes | str:
    try:
        return await chain.call(call)
    except Reverted as reverted:
        return f"reverted with 0x{reverted.data.hex()}"
    except ChainError:
        return "refused"


async def _slot(chain: AnvilChain, address: bytes, slot: int) -> bytes:
    answer = await chain._do("eth_getStorageAt", f"0x{address.hex()}", hex(slot), "latest")
    return bytes.fromhex(answer.decode().strip('"')[2:])


@pytest.fixture
async def both(anvil: Anvil) -> AsyncIterator[Both]:
    keys = [SigningKey(bytes.fromhex(key)) for key in KEYS]
    embedded = EmbeddedChain(CHAIN_ID, lambda: START_S, {key.address: 10_000 * ETHER for key in keys})
    async with opened(anvil) as chain:
        yield Both(embedded, chain)


def word(number: int | bytes) -> bytes:
    return number.to_bytes(32, "big") if isinstance(number, int) else number.rjust(32, b"\0")


async def test_transfers(both: Both) -> None:
    new, coinbase, empty = b"\x55" * 20, bytes(20), b"\x66" * 20
    for to, value_wei, gas in ((new, 5, 21_000), (new, 0, 50_000), (coinbase, 7, 21_000), (empty, 0, 21_000)):
        await both.send(to, value_wei=value_wei, gas=gas)
    await both.send(both.keys[0].address, value_wei=9, gas=30_000)
    await both.send(new, b"\0\x01\0\x02", value_wei=1, gas=60_000, tip_wei=0)
    await both.send(bytes(19) + b"\x04", b"copied", gas=60_000)
    await both.compare(new, empty, slots=[])


async def test_base_fee_follows_the_gas_used(both: Both) -> None:
    burner = await both.deploy(programs.HALTING)
    for gas in (29_000_000, 100_000, 29_900_000, 15_000_000):
        await both.send(burner, word(3), gas=gas)
    assert (await both.embedded.fees()).base_fee_wei == (await both.anvil.fees()).base_fee_wei


async def test_what_a_program_reads_of_its_surroundings(both: Both) -> None:
    contract = await both.deploy(programs.ENVIRONMENT)
    for value_wei, tip_wei in ((0, 0), (3, 5), (1, 10 * GWEI)):
        await both.send(contract, value_wei=value_wei, tip_wei=tip_wei, gas=200_000)
    await both.call(contract, sender=both.keys[0].address, gas_max=1_000_000)
    await both.compare()


async def test_storage_and_refunds(both: Both) -> None:
    contract = await both.deploy(programs.STORAGE)
    for words in (
        (1, 2, 3, 4),
        (0, 0, 3, 0),
        (5, 5, 0, 4),
        (0, 0, 0, 0),
        (0, 9, 0, 9),
        (2**256 - 1, 1, 2**255, 1),
    ):
        await both.send(contract, b"".join(map(word, words)))
    clearing = await both.deploy(programs.CLEARING)
    for data in (b"", b"1", b"", b"1", b"1"):
        await both.send(clearing, data)
    await both.compare(slots=[*range(25), 2**256 - 1])


async def test_transient_storage_ends_with_its_transaction(both: Both) -> None:
    contract = await both.deploy(programs.TRANSIENT)
    for size in (3, 5):
        await both.send(contract, bytes(size))
    assert await both.call(contract, bytes(9)) == word(0) + word(9)


async def test_contracts_that_create_contracts(both: Both) -> None:
    creator = await both.deploy(programs.CREATOR)
    await both.send(creator, b"", value_wei=20, gas=3_000_000)
    await both.send(creator, b"1", value_wei=20, gas=3_000_000)
    await both.send(creator, b"1", gas=3_000_000)
    children = [both.embedded._ledger.evm.slot(creator, slot).to_bytes(20, "big") for slot in range(3)]
    children += [contract_address(creator, nonce) for nonce in range(1, 9)]
    await both.compare(*children)


async def test_self_destruction(both: Both) -> None:
    heir = b"\x99" * 20
    destroyer = await both.deploy(programs.DESTROYER)
    await both.send(destroyer, value_wei=10)
    await both.send(destroyer)
    mortal = await both.deploy(programs.MORTAL, value_wei=0)
    await both.send(heir, value_wei=1)
    for target in (heir, mortal, b"\x98" * 20, both.keys[0].address):
        await both.send(both.keys[1].address, value_wei=1)
        await both.send(mortal, word(target))
    await both.compare(heir, *(contract_address(destroyer, nonce) for nonce in (1, 2)))


async def test_reverts_and_halts(both: Both) -> None:
    contract = await both.deploy(programs.HALTING)
    for kind in range(6):
        for gas in (22_000, 100_000, 700_000, 3_000_000):
            await both.send(contract, word(kind), gas=gas)
        await both.call(contract, word(kind), gas_max=300_000)
    await both.compare()


async def test_creations_that_fail(both: Both) -> None:
    for init_code in (
        programs.deploys(bytes(24_576)),
        programs.deploys(bytes(24_577)),
        programs.deploys(b"\xef\0"),
        programs.assembled("1 1 SSTORE 32 0 REVERT"),
        programs.assembled("INVALID"),
        b"",
        bytes(49_152),
    ):
        await both.send(b"", init_code, gas=6_000_000)
    await both.send(b"", programs.deploys(bytes(2_000)), gas=300_000)
    await both.compare()


async def test_all_kinds_of_calls(both: Both) -> None:
    other = await both.deploy(programs.STORAGE)
    contract = await both.deploy(programs.CALLS, key=1)
    for target in (other, both.keys[0].address, EMPTY_SLOT_ADDRESS, contract, bytes(19) + b"\x02"):
        await both.send(contract, word(target), value_wei=1)
    await both.compare(EMPTY_SLOT_ADDRESS, b"\x11" * 20)


async def test_precompiles(both: Both) -> None:
    await both.send(await both.deploy(programs.PRECOMPILES), gas=3_000_000)
    await both.compare()


async def test_access_lists(both: Both) -> None:
    contract = await both.deploy(programs.READS_SLOT_OF_ANOTHER)
    other, data = both.keys[2].address, word(both.keys[2].address) + word(5)
    slots = (word(5), word(6))
    for access_list in ((), ((contract, slots),), ((other, ()),), ((contract, slots), (other, slots)), ()):
        await both.send(contract, data, access_list=access_list)
    await both.compare()


async def test_random_programs(both: Both) -> None:
    contracts: list[bytes] = []
    named = (int.from_bytes(both.keys[3].address, "big"), 4, 0xDEAD)
    for seed in range(60):
        others = (*named, *(int.from_bytes(one, "big") for one in contracts[-6:]))
        contracts.append(await both.deploy(programs.random_program(seed, others), key=seed % 4))
    for at, contract in enumerate(contracts):
        for turn in range(3):
            data = word(at) + word(contracts[at - turn]) + bytes(turn)
            await both.send(contract, data, value_wei=turn, gas=(200_000, 500_000, 90_000)[turn], key=turn)
    assert both.sent == 240
    await both.compare(slots=range(5))


async def test_fees_of_a_failed_creation(both: Both) -> None:
    reads_price = programs.assembled("GASPRICE 0 SSTORE GASPRICE 0 MSTORE 32 0 RETURN")
    await both.send(b"", reads_price, value_wei=3, gas=200_000, tip_wei=7 * GWEI)
    await both.send(b"", reads_price, value_wei=3, gas=60_000, tip_wei=7 * GWEI)
    await both.send(b"", programs.assembled("1 0 SSTORE 0 0 SSTORE STOP"), gas=200_000)
    await both.compare()


async def test_the_projects_contracts_deploy(both: Both) -> None:
    for name in ("FeeVault", "Rfq", "RfqExecutor"):
        artifact = json.loads((CONTRACTS / f"{name}.json").read_text(encoding="utf-8"))
        init_code = bytes.fromhex(artifact["bytecode"][2:]) + bytes(32 * 8)
        await both.send(b"", init_code, gas=8_000_000)
    await both.compare(slots=range(4))


async def test_base_fee_is_read(both: Both) -> None:
    contract = await both.deploy(programs.BASE_FEE)
    for tip_wei in (0, GWEI):
        await both.send(contract, tip_wei=tip_wei)
    caller = await both.deploy(programs.CALLS)
    await both.send(caller, word(contract))
    assert await both.embedded.code(contract) == programs.BASE_FEE
    await both.compare(slots=range(5))


async def test_a_block_hash_is_not_that_of_our_block(both: Both) -> None:
    """As the docstring of `evm` says: the library has its own."""
    contract = await both.deploy(programs.BLOCK_HASH)
    for _ in range(2):
        await both.send(both.keys[0].address)
    assert await both.embedded.call(EthCall(contract, b"")) == keccak256(b"1")
    header = await both.anvil.block(1)
    assert header is not None
    assert await both.anvil.call(EthCall(contract, b"")) == header.hash


async def test_estimates_are_enough_and_no_more(both: Both) -> None:
    halting, creator = await both.deploy(programs.HALTING), await both.deploy(programs.CREATOR)
    sender = both.keys[0].address
    for call in (
        EthCall(b"\x55" * 20, b"", sender, 1),
        EthCall(halting, word(5), sender),
        EthCall(creator, b"", sender, 20),
        EthCall(b"", programs.deploys(programs.STORAGE), sender),
    ):
        ours, anvils = [await chain.estimate_gas(call) for chain in both.chains]
        assert ours <= anvils
        short = both.signed(call.to, call.data, value_wei=call.value_wei, gas=ours - 1)
        before = await both.embedded.snapshot()
        if ours == 21_000:
            with pytest.raises(TransactionRefused, match="gas limit"):
                await both.embedded.send_raw(short)
        else:
            receipt = await both.embedded.receipt(await both.embedded.send_raw(short))
            assert receipt is not None
            assert not receipt.succeeded
        await both.embedded.restore(before)
        await both.send(call.to, call.data, value_wei=call.value_wei, gas=ours)
    for chain in both.chains:
        with pytest.raises(Reverted):
            await chain.estimate_gas(EthCall(halting, word(1), sender))


async def test_accounts_delegate_to_contracts(both: Both) -> None:
    """EIP-7702: by another's transaction, with the account's own storage, logs and balance."""
    contract, account = await both.deploy(programs.STORAGE), both.keys[1].address
    await both.send(account, b"\1" * 40, authorizations=(both.delegates(1, contract),))
    await both.compare()
    await both.send(account, b"\2" * 70, value_wei=5)
    await both.call(account, b"\3" * 33)
    await both.send(account, b"\1" * 9, key=1)
    await both.send(b"\x55" * 20, value_wei=7, key=1)
    await both.compare()
    telling = await both.deploy(programs.TRANSIENT, key=1)
    await both.send(account, bytes(3), authorizations=(both.delegates(1, telling),))
    await both.compare()
    await both.send(account, bytes(3), authorizations=(both.delegates(1, bytes(20)),))
    await both.send(account, bytes(3), value_wei=1)
    await both.compare()


async def test_an_account_delegates_by_its_own_transaction(both: Both) -> None:
    contract, account = await both.deploy(programs.STORAGE), both.keys[2].address
    nonce = both.nonces[2] + 1
    authorization = both.delegates(2, contract, nonce=nonce)
    await both.send(account, b"\1" * 40, key=2, authorizations=(authorization,))
    both.nonces[2] += 1
    await both.compare()
    await both.send(account, b"\2" * 40, key=2)
    await both.compare()


async def test_authorizations_that_do_not_fit_change_nothing_but_cost_gas(both: Both) -> None:
    contract, other = await both.deploy(programs.TRANSIENT), both.keys[3]
    wrong = (
        both.delegates(1, contract, nonce=both.nonces[1] + 1),
        both.delegates(1, contract, nonce=both.nonces[1], chain_id=5),
        msgspec.structs.replace(both.delegates(1, contract, nonce=both.nonces[1]), s=2**255),
        msgspec.structs.replace(both.delegates(1, contract, nonce=both.nonces[1]), y_parity=2),
    )
    await both.send(both.keys[1].address, b"\1", authorizations=wrong)
    await both.compare()
    # Twice for one account, of which the first counts; and for any chain. (For a new account anvil gives back
    # what nodes give back for one that exists.)
    first, second = both.delegates(1, contract), both.delegates(1, bytes(20), nonce=both.nonces[1] - 1)
    everywhere = both.delegates(3, contract, chain_id=0)
    await both.send(other.address, b"\1" * 40, authorizations=(first, second, everywhere))
    await both.compare()


async def test_a_delegation_stays_where_the_execution_fails(both: Both) -> None:
    halting, account = await both.deploy(programs.HALTING), both.keys[1].address
    for kind in range(4):
        await both.send(account, word(kind), gas=300_000, authorizations=(both.delegates(1, halting),))
    await both.compare()
    chained = both.delegates(2, account)  # to an account that delegates itself: not followed
    await both.send(both.keys[2].address, word(0), gas=300_000, authorizations=(chained,))
    await both.compare()


async def test_data_has_a_least_price(both: Both) -> None:
    """EIP-7623."""
    to = b"\x55" * 20
    for data in (b"\1" * 1_000, bytes(1_000), b"\1\0" * 500, b"\1"):
        await both.send(to, data)
    await both.send(b"", programs.deploys(b"") + b"\1" * 3_000, gas=3_000_000)
    await both.compare()
    least = 21_000 + 40 * 100
    # Anvil takes it and never mines it.
    with pytest.raises(TransactionRefused) as caught:
        await both.embedded.send_raw(both.signed(to, b"\1" * 100, gas=least - 1))
    assert caught.value.kind is RefusalKind.GAS
    await both.send(to, b"\1" * 100, gas=least)


async def test_refusals(both: Both) -> None:
    to, poor = b"\x55" * 20, SigningKey(b"\x07" * 32)
    await both.send(to)
    await both.send(to)
    large = Transaction(CHAIN_ID, 2, 1, 100 * GWEI, 29_000_000, b"", 0, bytes(49_153))
    good = Transaction(CHAIN_ID, 2, 1, 100 * GWEI, 21_000, to, 0, b"")
    cases = [
        (both.signed(to, nonce=0, tip_wei=3), RefusalKind.NONCE_TOO_LOW),
        (both.signed(to, gas=20_999), RefusalKind.GAS),
        (both.signed(to, gas=30_000_001), RefusalKind.GAS),
        (both.signed(to, value_wei=10**30), RefusalKind.FUNDS),
        (sign_transaction(large, both.keys[0]).raw, RefusalKind.INVALID),
        (sign_transaction(Transaction(1, 2, 1, 100 * GWEI, 21_000, to, 0, b""), both.keys[0]).raw,
         RefusalKind.INVALID),
        (sign_transaction(Transaction(CHAIN_ID, 2, 0, 1, 21_000, to, 0, b""), both.keys[0]).raw,
         RefusalKind.FEE_TOO_LOW),
        (sign_transaction(Transaction(CHAIN_ID, 0, 1, 100 * GWEI, 21_000, to, 0, b""), poor).raw,
         RefusalKind.FUNDS),
        (sign_transaction(good, both.keys[0]).raw[:-1], RefusalKind.INVALID),
    ]  # fmt: skip
    for raw, kind in cases:
        refusals = []
        for chain in both.chains:
            with pytest.raises(TransactionRefused) as caught:
                await chain.send_raw(raw)
            refusals.append(caught.value.kind)
        assert refusals == [kind, kind]
    await both.send(to)

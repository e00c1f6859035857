"""Transactions: known answers, equal to eth-account, read back, and every other form refused."""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from cambist.codecs import rlp
from cambist.codecs.transactions import (
    ACCESS_LIST,
    DYNAMIC_FEE,
    LEGACY,
    SET_CODE,
    Authorization,
    Transaction,
    contract_address,
    create2_address,
    decode_transaction,
    sign_authorization,
    sign_priced_transaction,
    sign_transaction,
)
from cambist.config.errors import InvalidInput, PolicyError
from cambist.crypto.addresses import parse_address, to_checksum
from cambist.crypto.custody.transaction_policy import PolicedRelayKey, TransactionPolicy
from cambist.crypto.keccak import keccak256
from cambist.crypto.secp256k1 import CURVE_ORDER, SigningKey
from support.examples import examples
from support.oracles import Oracle

SECRET = b"\x46" * 32
KEY = SigningKey(SECRET)
TOKEN = b"\x35" * 20
TX = Transaction(31_337, 5, 10**9, 3 * 10**9, 200_000, TOKEN, 7, bytes(range(100)), ((TOKEN, (b"\1" * 32,)),))
EIP155_EXAMPLE = (
    "f86c098504a817c800825208943535353535353535353535353535353535353535880de0b6b3a76400008025a028ef61340bd939bc"
    "2195fe537567866003e1a15d3c71ff63e1590620aa636276a067cbe9d8997f761aecb703304b3800ccf555c9f3dc64214b297fb196"
    "6a3b6d83"
)

contract = st.binary(min_size=20, max_size=20)
uint256 = st.integers(0, 2**256 - 1) | st.sampled_from([0, 1, 127, 128, 255, 256, 2**256 - 1])
uint64 = st.integers(0, 2**64 - 1) | st.sampled_from([0, 1, 127, 128])
access_lists = st.lists(
    st.tuples(contract, st.lists(st.binary(min_size=32, max_size=32), max_size=3).map(tuple)), max_size=3
).map(tuple)
transactions = st.builds(
    Transaction,
    chain_id=st.integers(1, 2**63 - 1),
    nonce=uint64,
    tip_wei=uint256,
    fee_max_wei=uint256,
    gas=uint64,
    to=contract | st.just(b""),
    value_wei=uint256,
    data=st.binary(max_size=300),
    access_list=access_lists,
)
secrets = st.integers(1, CURVE_ORDER - 1).map(lambda number: number.to_bytes(32, "big"))


def oracle_members(tx: Transaction, kind: int) -> dict[str, Any]:
    """The transaction as eth-account takes it; kinds 0 and 1 have one price."""
    members: dict[str, Any] = {
        "chainId": tx.chain_id,
        "nonce": tx.nonce,
        "gas": tx.gas,
        "value": tx.value_wei,
        "data": "0x" + tx.data.hex(),
    }
    if tx.to:
        members["to"] = to_checksum(tx.to)
    if kind == DYNAMIC_FEE:
        members |= {"maxFeePerGas": tx.fee_max_wei, "maxPriorityFeePerGas": tx.tip_wei}
    else:
        members["gasPrice"] = tx.fee_max_wei
    if kind != LEGACY:
        members["type"] = kind
        members["accessList"] = [
            {"address": to_checksum(address), "storageKeys": ["0x" + slot.hex() for slot in slots]}
            for address, slots in tx.access_list
        ]
    return members


def items_of(raw: bytes) -> list[rlp.Item]:
    return rlp.as_list(rlp.decode(raw[1:] if raw[0] < 0xC0 else raw), "transaction")


def with_item(raw: bytes, at: int, item: rlp.Item) -> bytes:
    """A raw transaction with one member replaced."""
    items = items_of(raw)
    items[at] = item
    return (raw[:1] if raw[0] < 0xC0 else b"") + rlp.encode(items)


def test_the_example_of_eip_155() -> None:
    read = decode_transaction(bytes.fromhex(EIP155_EXAMPLE))
    assert read.transaction == Transaction(1, 9, 20 * 10**9, 20 * 10**9, 21_000, TOKEN, 10**18, b"")
    assert to_checksum(read.sender) == "0x9d8A62f656a8d1615C1294fd71e9CFb3E4855A4F"
    assert read.tx_hash.hex() == "33469b22e9f636356c4160a87eb19df52b7412e8eac32a4a55ffe88ea8350788"
    assert (read.kind, read.y_parity, read.v) == (LEGACY, 0, 37)
    assert (
        sign_priced_transaction(read.transaction, SigningKey(b"F" * 32), LEGACY).raw.hex() == EIP155_EXAMPLE
    )


@pytest.mark.oracle
@settings(max_examples=examples(25), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(transactions, secrets)
def test_a_signature_is_eth_accounts(eth_account: Oracle, tx: Transaction, secret: bytes) -> None:
    signed = sign_transaction(tx, SigningKey(secret))
    answer = eth_account.ask(
        ask="transaction", members=oracle_members(tx, DYNAMIC_FEE), key="0x" + secret.hex()
    )
    assert (signed.raw.hex(), signed.tx_hash.hex()) == (answer["raw"], answer["hash"])


@pytest.mark.oracle
@pytest.mark.parametrize("kind", [LEGACY, ACCESS_LIST, DYNAMIC_FEE])
@settings(max_examples=examples(25), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(transactions, secrets)
@example(msgspec.structs.replace(TX, chain_id=2**63 - 1), SECRET)  # its legacy v has 65 bits
def test_each_kind_is_read_and_signed(eth_account: Oracle, kind: int, tx: Transaction, secret: bytes) -> None:
    answer = eth_account.ask(ask="transaction", members=oracle_members(tx, kind), key="0x" + secret.hex())
    raw = bytes.fromhex(answer["raw"])
    if kind != DYNAMIC_FEE:
        tx = msgspec.structs.replace(tx, tip_wei=tx.fee_max_wei)
    if kind == LEGACY:
        tx = msgspec.structs.replace(tx, access_list=())
    read = decode_transaction(raw)
    assert read.transaction == tx
    assert read.sender == SigningKey(secret).address
    assert (read.tx_hash.hex(), read.kind) == (answer["hash"], kind)
    if kind != DYNAMIC_FEE:
        assert sign_priced_transaction(tx, SigningKey(secret), kind).raw == raw
    v, r, s = items_of(raw)[-3:]
    assert rlp.as_uint(v, "v") == read.v
    assert rlp.as_uint(r, "r").to_bytes(32, "big") + rlp.as_uint(s, "s").to_bytes(32, "big") == read.rs64


grants = st.tuples(st.integers(0, 2**63 - 1), contract, st.integers(0, 2**64 - 2), secrets)


@pytest.mark.oracle
@settings(max_examples=examples(25), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(transactions, secrets, st.lists(grants, min_size=1, max_size=3))
def test_delegations_are_signed_and_read_as_by_eth_account(
    eth_account: Oracle, tx: Transaction, secret: bytes, granted: list[tuple[int, bytes, int, bytes]]
) -> None:
    signed = tuple(sign_authorization(*grant[:3], SigningKey(grant[3])) for grant in granted)
    assert [one.authority for one in signed] == [SigningKey(grant[3]).address for grant in granted]
    tx = msgspec.structs.replace(tx, to=tx.to or TOKEN, authorizations=signed)
    answer = eth_account.ask(
        ask="delegating",
        members=oracle_members(tx, DYNAMIC_FEE),
        key="0x" + secret.hex(),
        authorizations=[
            {"of": {"chainId": chain_id, "address": to_checksum(to), "nonce": nonce}, "key": "0x" + key.hex()}
            for chain_id, to, nonce, key in granted
        ],
    )
    ours = sign_transaction(tx, SigningKey(secret))
    assert (ours.raw.hex(), ours.tx_hash.hex()) == (answer["raw"], answer["hash"])
    read = decode_transaction(ours.raw)
    assert (read.transaction, read.sender, read.kind) == (tx, SigningKey(secret).address, SET_CODE)


@pytest.mark.parametrize(
    "changed", [{"y_parity": 2}, {"r": 0}, {"r": CURVE_ORDER}, {"s": 0}, {"s": CURVE_ORDER // 2 + 1}]
)
def test_an_authorization_that_no_key_can_have_signed_is_nobodys(changed: dict[str, int]) -> None:
    """It is in a transaction all the same, where it has no effect."""
    signed = sign_authorization(1, TOKEN, 0, KEY)
    wrong = msgspec.structs.replace(signed, **changed)
    assert (signed.authority, wrong.authority) == (KEY.address, None)
    tx = msgspec.structs.replace(TX, authorizations=(wrong,))
    assert decode_transaction(sign_transaction(tx, KEY).raw).transaction == tx


def test_a_signature_with_the_highest_s_is_valid_and_with_a_higher_one_is_not() -> None:
    signed = sign_authorization(1, TOKEN, 7, KEY)
    assert (signed.nonce, signed.authority) == (7, KEY.address)
    of_highest, of_higher = (
        msgspec.structs.replace(signed, s=CURVE_ORDER // 2 + above).authority for above in (0, 1)
    )
    assert of_highest not in (None, KEY.address)
    assert of_higher is None


def test_a_transaction_without_authorizations_or_that_creates_is_no_delegating_one() -> None:
    tx = msgspec.structs.replace(TX, authorizations=(Authorization(1, TOKEN, 0, 0, 1, 1),))
    with pytest.raises(InvalidInput, match="to: expected"):
        decode_transaction(sign_transaction(msgspec.structs.replace(tx, to=b""), KEY).raw)
    members = [*items_of(sign_transaction(tx, KEY).raw)[:-4], []]
    rs64, y_parity = KEY.sign(keccak256(b"\4" + rlp.encode(members)))
    r, s = int.from_bytes(rs64[:32], "big"), int.from_bytes(rs64[32:], "big")
    with pytest.raises(InvalidInput, match="authorizationList: expected an authorization"):
        decode_transaction(b"\4" + rlp.encode([*members, y_parity, r, s]))


@given(transactions)
def test_what_is_signed_is_read_back(tx: Transaction) -> None:
    signed = sign_transaction(tx, KEY)
    read = decode_transaction(signed.raw)
    assert (read.transaction, read.sender, read.tx_hash) == (tx, KEY.address, signed.tx_hash)
    assert sign_transaction(tx, KEY) == signed


def test_a_transaction_with_an_access_list_and_one_price_is_read() -> None:
    members = items_of(sign_transaction(TX, KEY).raw)[:-3]
    del members[2]  # the tip
    rs64, y_parity = KEY.sign(keccak256(b"\1" + rlp.encode(members)))
    r, s = int.from_bytes(rs64[:32], "big"), int.from_bytes(rs64[32:], "big")
    read = decode_transaction(b"\1" + rlp.encode([*members, y_parity, r, s]))
    assert read.transaction == msgspec.structs.replace(TX, tip_wei=TX.fee_max_wei)
    assert (read.sender, read.kind, read.v) == (KEY.address, ACCESS_LIST, y_parity)


@pytest.mark.parametrize(
    "raw", [sign_transaction(TX, KEY).raw, bytes.fromhex(EIP155_EXAMPLE)], ids=["dynamic fee", "legacy"]
)
def test_a_changed_byte_is_another_transaction_or_refused(raw: bytes) -> None:
    """A transaction that differs in a byte is never taken for the signed one."""
    signed = decode_transaction(raw)
    outcomes = {"another": 0, "refused": 0}
    for at in range(len(raw)):
        for change in (*(1 << bit for bit in range(8)), 0xFF):
            changed = raw[:at] + bytes([raw[at] ^ change]) + raw[at + 1 :]
            try:
                read = decode_transaction(changed)
            except InvalidInput:
                outcomes["refused"] += 1
            else:
                outcomes["another"] += 1
                assert read.tx_hash == keccak256(changed) != signed.tx_hash
                assert (read.sender, read.transaction) != (signed.sender, signed.transaction)
    assert min(outcomes.values()) > len(raw) / 2


@given(st.binary(max_size=200) | st.binary(max_size=200).map(lambda tail: b"\x02" + rlp.wrap(tail)))
def test_random_bytes_are_refused(raw: bytes) -> None:
    with pytest.raises(InvalidInput):
        decode_transaction(raw)


def test_a_cut_or_longer_transaction_is_refused() -> None:
    raw = sign_transaction(TX, KEY).raw
    for length in range(len(raw)):
        with pytest.raises(InvalidInput):
            decode_transaction(raw[:length])
    with pytest.raises(InvalidInput, match="bytes after it"):
        decode_transaction(raw + b"\0")


CHAIN_ID, NONCE, GAS, TO, VALUE, DATA, SLOTS, PARITY, R, S = 0, 1, 4, 5, 6, 7, 8, 9, 10, 11
REFUSED: list[tuple[str, int, Callable[[Sequence[rlp.Item]], rlp.Item], str]] = [
    # (what is wrong, which member, what it becomes, what the refusal says)
    ("no chain", CHAIN_ID, lambda _: b"", "chainId: expected a chain"),
    ("a chain id beyond 63 bits", CHAIN_ID, lambda _: b"\xff" * 8, r"chainId: expected a number below 2\^63"),
    ("a nonce with a leading zero", NONCE, lambda _: b"\0\1", "nonce: expected a number without leading"),
    ("a nonce beyond 64 bits", NONCE, lambda _: b"\1" * 9, r"nonce: expected a number below 2\^64"),
    ("gas beyond 64 bits", GAS, lambda _: b"\1" * 9, r"gas: expected a number below 2\^64"),
    ("an address of 19 bytes", TO, lambda _: bytes(19), "to: expected 0 or 20 bytes"),
    ("an address of 32 bytes", TO, lambda _: bytes(32), "to: expected 0 or 20 bytes"),
    ("a value beyond 256 bits", VALUE, lambda _: b"\1" * 33, r"value: expected a number below 2\^256"),
    ("a value that is a list", VALUE, lambda _: [], "value: expected a number"),
    ("data that is a list", DATA, lambda _: [], "data: expected bytes"),
    ("an access list that is bytes", SLOTS, lambda _: b"", "accessList: expected a list"),
    ("an access list of triples", SLOTS, lambda _: [[b"", [], b""]], "accessList: expected a list of 2"),
    ("an access list without an address", SLOTS, lambda _: [[b"", []]], "accessList: expected 20 bytes"),
    ("a slot of 31 bytes", SLOTS, lambda _: [[TOKEN, [bytes(31)]]], "accessList: expected 32 bytes"),
    ("a parity of 2", PARITY, lambda _: b"\2", r"yParity: expected a number below 2\^1"),
    ("a v of 27", PARITY, lambda _: b"\x1b", "yParity"),
    ("no r", R, lambda _: b"", "r: expected above zero"),
    ("an r at the order", R, lambda _: CURVE_ORDER.to_bytes(32, "big"), "r: expected above zero and below"),
    ("an r that is on no point", R, lambda _: b"\5", "no key makes this signature"),
    ("no s", S, lambda _: b"", "s: expected above zero"),
    ("the other s", S, lambda items: (CURVE_ORDER - rlp.as_uint(items[S], "s")).to_bytes(32, "big"),
     "s: expected above zero, in the lower half"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("at", "change", "says"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED]
)
def test_another_form_of_a_member_is_refused(
    at: int, change: Callable[[Sequence[rlp.Item]], rlp.Item], says: str
) -> None:
    raw = sign_transaction(TX, KEY).raw
    with pytest.raises(InvalidInput, match=says):
        decode_transaction(with_item(raw, at, change(items_of(raw))))


def test_another_kind_or_number_of_members_is_refused() -> None:
    raw = sign_transaction(TX, KEY).raw
    for kind in (b"\0", b"\3", b"\5", b"\x7f", b"\x80", b"\xbf"):
        with pytest.raises(InvalidInput, match=f"expected kind 0, 1, 2 or 4, got '0x{kind.hex()}'"):
            decode_transaction(kind + raw[1:])
    with pytest.raises(InvalidInput, match="expected a list of 12, got 'a list of 11'"):
        decode_transaction(b"\2" + rlp.encode(items_of(raw)[1:]))
    with pytest.raises(InvalidInput, match="expected a list of 11, got 'a list of 12'"):
        decode_transaction(b"\1" + raw[1:])
    with pytest.raises(InvalidInput, match="expected a signed transaction, got 'nothing'"):
        decode_transaction(b"")


@pytest.mark.parametrize("v", [0, 1, 27, 28, 35, 36, 2**64 + 35])
def test_a_v_that_names_no_chain_is_refused(v: int) -> None:
    with pytest.raises(InvalidInput, match="v: expected a chain id in it"):
        decode_transaction(with_item(bytes.fromhex(EIP155_EXAMPLE), 6, rlp.decode(rlp.encode(v))))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"nonce": -1}, "nonce is 0 to"),
        ({"nonce": 2**64}, "nonce is 0 to"),
        ({"chain_id": 0}, "for one chain"),
        ({"chain_id": 2**63}, "chain_id is 0 to"),
        ({"gas": 2**64}, "gas is 0 to"),
        ({"tip_wei": 2**256}, "tip_wei is 0 to"),
        ({"fee_max_wei": 2**256}, "fee_max_wei is 0 to"),
        ({"value_wei": -1}, "value_wei is 0 to"),
        ({"to": bytes(19)}, "goes to 20 bytes or creates, not 19"),
    ],
    ids=str,
)
def test_a_transaction_out_of_range_is_not_signed(change: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        sign_transaction(msgspec.structs.replace(TX, **change), KEY)


@pytest.mark.parametrize(("kind", "listed"), [(LEGACY, True), (DYNAMIC_FEE, False), (3, False)])
def test_a_gas_price_is_signed_in_its_kinds_alone(kind: int, *, listed: bool) -> None:
    tx = msgspec.structs.replace(TX, access_list=((bytes(20), ()),) if listed else ())
    with pytest.raises(ValueError, match=f"kind {kind}"):
        sign_priced_transaction(tx, KEY, kind)


def test_a_policed_key_signs_the_same_and_only_within_its_policy() -> None:
    policy = TransactionPolicy(
        frozenset({(31_337, TOKEN)}), fee_max_wei=3 * 10**9, gas_max=200_000, value_max_wei=7
    )
    key = PolicedRelayKey(KEY, policy)
    assert sign_transaction(TX, key) == sign_transaction(TX, KEY)
    for change, says in (
        ({"to": b""}, "creates no contracts on chain 31337"),
        ({"chain_id": 1}, "on chain 1 is not on this key's list"),
        ({"value_wei": 8}, "value in wei 8: this key signs at most 7"),
        ({"gas": 200_001}, "gas 200001: this key signs at most 200000"),
        ({"fee_max_wei": 3 * 10**9 + 1}, "fee per gas in wei 3000000001: this key signs at most 3000000000"),
    ):
        with pytest.raises(PolicyError, match=says):
            sign_transaction(msgspec.structs.replace(TX, **change), key)


@pytest.mark.parametrize(
    ("nonce", "expected"),
    [
        (0, "0xcd234a471b72ba2f1ccf0a70fcaba648a5eecd8d"),
        (1, "0x343c43a37d37dff08ae8c4a11544c718abb4fcf8"),
        (2, "0xf778b86fa74e846c4f0a1fbd1335fe81c00a0c91"),
    ],
)
def test_the_address_of_a_new_contract(nonce: int, expected: str) -> None:
    sender = parse_address("0x6ac7ea33f8831ea9dcc53393aaa88b25a785dbf0")
    assert contract_address(sender, nonce) == parse_address(expected)


@pytest.mark.parametrize(
    ("factory", "salt", "init_code", "expected"),
    [
        # EIP-1014, "Examples"
        ("00" * 20, "", "00", "4D1A2e2bB4F88F0250f26Ffff098B0b30B26BF38"),
        ("deadbeef" + "00" * 16, "", "00", "B928f69Bb1D91Cd65274e3c79d8986362984fDA3"),
        ("deadbeef" + "00" * 16, "feed" + "00" * 18, "00", "D04116cDd17beBE565EB2422F2497E06cC1C9833"),
        ("00" * 20, "", "deadbeef", "70f2b2914A2a4b783FaEFb75f459A580616Fcb5e"),
        ("00" * 16 + "deadbeef", "cafebabe", "deadbeef", "60f3f640a8508fC6a86d45DF051962668E1e8AC7"),
        ("00" * 16 + "deadbeef", "cafebabe", "deadbeef" * 11, "1d8bfDC5D46DC4f61D6b6115972536eBE6A8854C"),
        ("00" * 20, "", "", "E33C0C7F7df4809055C3ebA6c09CFe4BaF1BD9e0"),
    ],
)
def test_the_address_that_create2_gives(factory: str, salt: str, init_code: str, expected: str) -> None:
    salt32 = bytes.fromhex(salt).rjust(32, b"\0")
    address = create2_address(bytes.fromhex(factory), salt32, bytes.fromhex(init_code))
    assert to_checksum(address) == f"0x{expected}"

"""The bridges' dev contracts speak as the deployed ones: calls, events, bytes of messages, and refusals.

The hashes are those of logs and calls of the deployed contracts. Source: across-protocol/contracts,
V3SpokePoolInterface, SpokePoolInterface and SpokePool; circlefin/evm-cctp-contracts, TokenMessengerV2,
MessageTransmitterV2, TokenMinterV2, MessageV2 and BurnMessageV2.
"""

from typing import Any

import msgspec
import pytest

from cambist.codecs.bridges.across import (
    FILL_STATUS_FILLED,
    ExecutedRelayerRefundRoot,
    FundsDeposited,
    RelayData,
    decode_across_log,
    deposit_v3,
    execute_refund_leaf,
    fill_relay,
    fill_status,
    relay_hash,
)
from cambist.codecs.bridges.cctp import (
    CctpBurn,
    CctpMessage,
    MessageReceived,
    MintAndWithdraw,
    decode_cctp_log,
    deposit_for_burn,
    pack_burn,
    parse_burn,
    receive_message,
    used_nonce,
)
from cambist.codecs.contracts import calldata
from cambist.codecs.contracts.abi import address_word, selector, uint_word
from cambist.codecs.contracts.contract_events import topic
from cambist.engine.chain.artifacts import abi_of, artifact
from cambist.engine.chain.port import Receipt
from support.chain.world import DOMAIN, HOUR_S, NOBODY, ONE, USDC, World
from support.contracts.bridging import (
    FAR,
    FAR_DOMAIN,
    LINK_TOKENS,
    PAUSE_FILLS,
    Bridging,
    a_bridging,
    attested,
    deposit_of,
    message_of,
)
from support.contracts.settling import Market

RELAY = "(bytes32,bytes32,bytes32,bytes32,bytes32,uint256,uint256,uint256,uint256,uint32,uint32,bytes)"
PUBLIC = {
    "DevSpokePool": {
        "7b939232": "depositV3(address,address,address,address,uint256,uint256,uint256,address,uint32,uint32,"
        "uint32,bytes)",
        "deff4b24": f"fillRelay({RELAY},uint256,bytes32)",
        "d7e1583a": f"getV3RelayHash({RELAY})",
        "1b3d5559": "executeRelayerRefundLeaf(uint32,(uint256,uint256,uint256[],uint32,address,address[]),"
        "bytes32[])",
        "c35c83fc": "fillStatuses(bytes32)",
        "a1244c67": "numberOfDeposits()",
        "29cb924d": "getCurrentTime()",
        "6068d6cb": "pausedDeposits()",
        "32ed1a409ef04c7b0227189c3a103dc5ac10e775a15b785dcc510201f7c25ad3": "FundsDeposited(bytes32,bytes32,"
        "uint256,uint256,uint256,uint256,uint32,uint32,uint32,bytes32,bytes32,bytes32,bytes)",
        "44b559f101f8fbcc8a0ea43fa91a05a729a5ea6e14a7c75aa750374690137208": "FilledRelay(bytes32,bytes32,"
        "uint256,uint256,uint256,uint256,uint256,uint32,uint32,bytes32,bytes32,bytes32,bytes32,bytes32,"
        "(bytes32,bytes32,uint256,uint8))",
        "f4ad92585b1bc117fbdd644990adf0827bc4c95baeae8a23322af807b6d0020e": "ExecutedRelayerRefundRoot("
        "uint256,uint256,uint256[],uint32,uint32,address,address[],bool,address)",
    },
    "DevTokenMessenger": {
        "8e0250ee": "depositForBurn(uint256,uint32,bytes32,address,bytes32,uint256,uint32)",
        "0c8c1cbdc5190613ebd485511d4e2812cfa45eecb79d845893331fedad5130a5": "DepositForBurn(address,uint256,"
        "address,bytes32,uint32,bytes32,bytes32,uint256,uint32,bytes)",
        "50c55e915134d457debfa58eb6f4342956f8b0616d51a89a3659360178e1ab63": "MintAndWithdraw(address,uint256,"
        "address,uint256)",
    },
    "DevMessageTransmitter": {
        "57ecfd28": "receiveMessage(bytes,bytes)",
        "feb61724": "usedNonces(bytes32)",
        "8d3638f4": "localDomain()",
        "8c5261668696ce22758910d05bab8f186d6eb247ceac2af2e82c7dc17669b036": "MessageSent(bytes)",
        "ff48c13eda96b1cceacc6b9edeedc9e9db9d6226afbc30146b720c19d3addb1c": "MessageReceived(address,uint32,"
        "bytes32,bytes32,uint32,bytes)",
    },
}
"""Dev contract -> hash in calls or logs of the deployed contract -> published signature."""
INDEXED = {
    "FundsDeposited": ["destinationChainId", "depositId", "depositor"],
    "FilledRelay": ["originChainId", "depositId", "relayer"],
    "ExecutedRelayerRefundRoot": ["chainId", "rootBundleId", "leafId"],
    "DepositForBurn": ["burnToken", "depositor", "minFinalityThreshold"],
    "MintAndWithdraw": ["mintRecipient", "mintToken"],
    "MessageSent": [],
    "MessageReceived": ["caller", "nonce", "finalityThresholdExecuted"],
}
GIVEN, ARRIVES = 1_000 * USDC, 999 * USDC


@pytest.mark.parametrize("contract", PUBLIC)
def test_calls_and_events_have_the_public_signatures(contract: str) -> None:
    theirs = {entry.signature(): entry for entry in artifact(contract).abi if entry.name}
    for known, signature in PUBLIC[contract].items():
        entry = theirs[signature]
        computed = topic(signature) if entry.type == "event" else selector(signature)
        assert computed.hex() == known, signature


def test_events_index_the_public_members() -> None:
    indexed = {
        row["name"]: [member["name"] for member in row["inputs"] if member["indexed"]]
        for contract in PUBLIC
        for row in abi_of(contract)
        if row["type"] == "event"
    }
    assert {name: indexed[name] for name in INDEXED} == INDEXED


@pytest.fixture
async def bridging(world: World, market: Market) -> Bridging:
    """The user may deposit at the pool and burn at the messenger."""
    bridging = await a_bridging(market)
    await world.mint(world.usdc, world.user, 10 * GIVEN)
    for bridge in (world.spoke_pool, world.token_messenger):
        await world.approve(world.user, world.usdc, bridge)
    return bridging


# --- Across -----------------------------------------------------------------------------------------------


async def a_deposit(bridging: Bridging, **changed: Any) -> bytes:
    """Calldata: the user's USDC, for the stranger at FAR."""
    world = bridging.world
    now_s = await world.now_s()
    terms: dict[str, Any] = {
        "depositor": world.user.address,
        "recipient": world.stranger.address,
        "input_token": world.usdc,
        "output_token": bridging.far_usdc,
        "input_amount": GIVEN,
        "output_amount": ARRIVES,
        "destination_chain_id": FAR,
        "quote_timestamp": now_s,
        "fill_deadline": now_s + HOUR_S,
    }
    return deposit_v3(**(terms | changed))


async def deposited(bridging: Bridging, **changed: Any) -> tuple[FundsDeposited, RelayData]:
    world = bridging.world
    receipt = await world.send(world.user, world.spoke_pool, await a_deposit(bridging, **changed))
    deposit = deposit_of(receipt)
    return deposit, deposit.relay(world.chain.chain_id)


def fill(bridging: Bridging, relay: RelayData) -> bytes:
    return fill_relay(relay, 1, address_word(bridging.world.maker.address))


async def test_a_deposit_is_numbered_and_kept(world: World, bridging: Bridging) -> None:
    for number in range(2):
        deposit, _ = await deposited(bridging)
        assert deposit.deposit_id == number
    assert await world.ask(world.spoke_pool, selector("numberOfDeposits()")) == 2
    assert await world.balance(world.usdc, world.spoke_pool) == 2 * GIVEN


@pytest.mark.parametrize(
    ("late_s", "says"),
    [
        ({"quote_timestamp": -HOUR_S - 30}, "InvalidQuoteTimestamp()"),
        ({"quote_timestamp": HOUR_S}, "InvalidQuoteTimestamp()"),
        ({"fill_deadline": -1}, "InvalidFillDeadline()"),
        ({"fill_deadline": 7 * HOUR_S}, "InvalidFillDeadline()"),
    ],
    ids=["quoted long ago", "quoted later", "over", "too far"],
)
async def test_times_of_a_deposit_are_checked(
    world: World, bridging: Bridging, late_s: dict[str, int], says: str
) -> None:
    now_s = await world.now_s()
    data = await a_deposit(bridging, **{name: now_s + seconds for name, seconds in late_s.items()})
    assert await world.refused(world.user, world.spoke_pool, data) == says


async def test_exclusivity_is_seconds_or_a_time(world: World, bridging: Bridging) -> None:
    pool = world.spoke_pool
    alone = await a_deposit(bridging, exclusivity=60)
    assert await world.refused(world.user, pool, alone) == "InvalidExclusiveRelayer()"
    exclusive = bridging.relayer.address
    deposit, relay = await deposited(bridging, exclusivity=600, exclusive_relayer=exclusive)
    assert deposit.exclusivity_deadline == await world.now_s() + 600
    until = await world.now_s() + 900
    timed, _ = await deposited(bridging, exclusivity=until, exclusive_relayer=exclusive)
    assert timed.exclusivity_deadline == until
    await world.give(world.maker, bridging.far_usdc, GIVEN, pool)
    assert await world.refused(world.maker, pool, fill(bridging, relay)) == "NotExclusiveRelayer()"
    await world.pass_time(601)
    await world.send(world.maker, pool, fill(bridging, relay))


async def test_native_tokens_are_deposited_wrapped(world: World, bridging: Bridging) -> None:
    pool, data = world.spoke_pool, await a_deposit(bridging, input_token=world.weth, input_amount=ONE)
    says = "MsgValueDoesNotMatchInputAmount()"
    assert await world.refused(world.user, pool, data, value_wei=ONE - 1) == says
    assert await world.refused(world.user, pool, await a_deposit(bridging), value_wei=GIVEN) == says
    await world.send(world.user, pool, data, value_wei=ONE)
    assert await world.balance(world.weth, pool) == ONE


async def test_a_relayer_fills_a_deposit_once_and_in_time(world: World, bridging: Bridging) -> None:
    pool = world.spoke_pool
    _, relay = await deposited(bridging)
    hashed = relay_hash(relay, world.chain.chain_id)
    assert await world.ask(pool, fill_status(hashed)) == 0
    await world.send(bridging.relayer, pool, fill(bridging, relay))
    assert await world.ask(pool, fill_status(hashed)) == FILL_STATUS_FILLED
    assert await world.balance(bridging.far_usdc, world.stranger) == ARRIVES
    assert await world.refused(bridging.relayer, pool, fill(bridging, relay)) == "RelayFilled()"
    other = msgspec.structs.replace(relay, output_amount=ARRIVES - 1)
    await world.send(bridging.relayer, pool, fill(bridging, other))  # another relay: nobody repays it
    _, late = await deposited(bridging)
    await world.pass_time(HOUR_S + 1)
    assert await world.refused(bridging.relayer, pool, fill(bridging, late)) == "ExpiredFillDeadline()"


async def test_fills_stop_while_they_are_paused(world: World, bridging: Bridging) -> None:
    _, relay = await deposited(bridging)
    pause = PAUSE_FILLS + uint_word(1)
    assert await world.refused(world.stranger, world.spoke_pool, pause) == "NotOwner()"
    await world.send(world.owner, world.spoke_pool, pause)
    assert (
        await world.refused(bridging.relayer, world.spoke_pool, fill(bridging, relay)) == "FillsArePaused()"
    )


@pytest.mark.parametrize("is_contract", [True, False])
async def test_only_accounts_without_code_get_native_tokens(
    world: World, bridging: Bridging, is_contract: bool
) -> None:
    receiver = bridging.market.agent if is_contract else b"\x77" * 20
    terms = {"output_token": world.weth, "output_amount": ONE, "recipient": receiver}
    _, relay = await deposited(bridging, **terms)
    await world.give(bridging.relayer, world.weth, ONE, world.spoke_pool)
    await world.send(bridging.relayer, world.spoke_pool, fill(bridging, relay))
    assert await world.balance(world.weth, receiver) == (ONE if is_contract else 0)
    assert await world.chain.balance(receiver) == (0 if is_contract else ONE)


async def test_accounts_of_other_chains_are_no_recipients_here(world: World, bridging: Bridging) -> None:
    _, relay = await deposited(bridging)
    foreign = msgspec.structs.replace(relay, recipient=b"\x01" * 32)
    refused = await world.refused(bridging.relayer, world.spoke_pool, fill(bridging, foreign))
    assert refused == "InvalidBytes32()"


async def test_a_leaf_is_paid_out_once_and_by_the_owner(world: World, bridging: Bridging) -> None:
    await deposited(bridging)
    pool, here = world.spoke_pool, world.chain.chain_id
    refunds = [(world.user.address, GIVEN - 10), (world.maker.address, 10)]
    leaf = execute_refund_leaf(7, here, world.usdc, refunds)
    assert await world.refused(world.stranger, pool, leaf) == "NotOwner()"
    elsewhere = execute_refund_leaf(7, FAR, world.usdc, refunds)
    assert await world.refused(world.owner, pool, elsewhere) == "InvalidChainId()"
    dear = execute_refund_leaf(7, here, world.usdc, [(world.user.address, GIVEN + 1)])
    assert await world.refused(world.owner, pool, dear) == "InsufficientSpokePoolBalanceToExecuteLeaf()"
    receipt = await world.send(world.owner, pool, leaf)
    event = decode_across_log(receipt.logs[-1].topics, receipt.logs[-1].data)
    assert isinstance(event, ExecutedRelayerRefundRoot)
    assert (event.root_bundle_id, event.leaf_id, event.caller) == (7, 0, world.owner.address)
    assert await world.balance(world.usdc, world.maker) >= 10
    assert await world.refused(world.owner, pool, leaf) == "ClaimedMerkleLeaf()"


# --- CCTP -------------------------------------------------------------------------------------------------


def a_burn(bridging: Bridging, amount: int = GIVEN, max_fee: int = 100, **changed: Any) -> bytes:
    """Calldata: the user's USDC, for the stranger at FAR."""
    world = bridging.world
    terms: dict[str, Any] = {
        "destination_domain": FAR_DOMAIN,
        "mint_recipient": address_word(world.stranger.address),
        "burn_token": world.usdc,
        "min_finality": 1_000,
    }
    return deposit_for_burn(amount, max_fee=max_fee, **(terms | changed))


async def burnt(bridging: Bridging, **changed: Any) -> Receipt:
    world = bridging.world
    return await world.send(world.user, world.token_messenger, a_burn(bridging, **changed))


async def test_a_burn_sends_the_public_bytes(world: World, bridging: Bridging) -> None:
    before = await world.balance(world.usdc, world.user)
    message = message_of(await burnt(bridging))
    burn = CctpBurn(
        address_word(world.usdc),
        address_word(world.stranger.address),
        GIVEN,
        address_word(world.user.address),
        100,
    )
    near, far = address_word(world.token_messenger), address_word(bridging.far_messenger)
    body = pack_burn(burn)
    wanted = CctpMessage(DOMAIN, FAR_DOMAIN, bytes(32), near, far, bytes(32), 1_000, 0, body)
    assert message == wanted
    assert parse_burn(message.body) == burn
    assert await world.balance(world.usdc, world.user) == before - GIVEN
    assert await world.balance(world.usdc, world.token_messenger) == 0


async def test_what_is_burnt_is_minted_less_the_fee(world: World, bridging: Bridging) -> None:
    receipt = await burnt(bridging)
    nonce = b"\x21" * 32
    data = attested(receipt, fee=40, finality=1_000, nonce=nonce)
    minted = await world.send(world.taker, bridging.far_transmitter, data)
    events = [decode_cctp_log(log.topics, log.data) for log in minted.logs]
    assert MintAndWithdraw(world.stranger.address, GIVEN - 40, bridging.far_usdc, 40) in events
    (received,) = [event for event in events if isinstance(event, MessageReceived)]
    sender = address_word(world.token_messenger)
    assert msgspec.structs.astuple(received)[:5] == (world.taker.address, DOMAIN, nonce, sender, 1_000)
    assert await world.balance(bridging.far_usdc, world.stranger) == GIVEN - 40
    assert await world.balance(bridging.far_usdc, world.owner) == 40
    assert await world.ask(bridging.far_transmitter, used_nonce(nonce)) == 1
    again = await world.refused(world.taker, bridging.far_transmitter, data)
    assert again == "Nonce already used"


NOT_ATTESTED = "Signature verification failed: signer is not enabled attester"


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"destination_domain": 77}, "Invalid destination domain"),
        ({"source_domain": 77}, "Remote TokenMessenger unsupported"),
        ({"sender": b"\1" * 32}, "Remote TokenMessenger unsupported"),
        ({"destination_caller": address_word(b"\1" * 20)}, "Invalid caller for message"),
        ({"fee": 101}, "Fee exceeds max fee"),
        ({"expiration_block": 1}, "Message expired and must be re-signed"),
        ({"finality": 499}, "Unsupported finality threshold"),
        ({"body": bytes(227)}, "Invalid message: too short"),
        ({"body": bytes(228)}, "Invalid message body version"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
async def test_a_message_that_is_attested_still_has_to_be_for_here(
    world: World, bridging: Bridging, changed: dict[str, Any], says: str
) -> None:
    data = attested(await burnt(bridging), **changed)
    assert await world.refused(world.taker, bridging.far_transmitter, data) == says


async def test_only_the_attesters_signature_counts(world: World, bridging: Bridging) -> None:
    receipt, at = await burnt(bridging), bridging.far_transmitter
    forged = attested(receipt, key=world.stranger)
    assert await world.refused(world.stranger, at, forged) == NOT_ATTESTED
    short = receive_message(b"\0" * 148, b"\0" * 64)
    assert await world.refused(world.stranger, at, short) == "Invalid attestation length"
    empty = receive_message(b"\0" * 148, b"\0" * 65)
    assert await world.refused(world.stranger, at, empty) == NOT_ATTESTED
    high = receive_message(b"\0" * 148, b"\0" * 32 + b"\xff" * 32 + b"\x1b")
    assert await world.refused(world.stranger, at, high) == "invalid signature"


async def test_an_unlisted_token_is_not_minted(world: World, bridging: Bridging) -> None:
    data = attested(await burnt(bridging))
    unlink = LINK_TOKENS + address_word(NOBODY) + uint_word(DOMAIN) + address_word(world.usdc)
    assert await world.refused(world.stranger, bridging.far_messenger, unlink) == "NotOwner()"
    await world.send(world.owner, bridging.far_messenger, unlink)
    refused = await world.refused(world.taker, bridging.far_transmitter, data)
    assert refused == "Mint token not supported"


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"amount": 0}, "Amount must be nonzero"),
        ({"max_fee": GIVEN}, "Max fee must be less than amount"),
        ({"mint_recipient": bytes(32)}, "Mint recipient must be nonzero"),
        ({"destination_domain": 77}, "No TokenMessenger for domain"),
        ({"burn_token": b"\1" * 20}, "Burn token not supported"),
        ({"amount": 10**12 + 1}, "Burn amount exceeds per tx limit"),
        ({"amount": 10**11}, "Transfer operation failed"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
async def test_a_burn_is_checked(
    world: World, bridging: Bridging, changed: dict[str, Any], says: str
) -> None:
    assert await world.refused(world.user, world.token_messenger, a_burn(bridging, **changed)) == says


async def test_nobody_else_tells_the_messenger_to_mint(world: World, bridging: Bridging) -> None:
    body = parse_burn(message_of(await burnt(bridging)).body)
    words = uint_word(DOMAIN) + address_word(world.token_messenger) + uint_word(2_000) + uint_word(128)
    raw = pack_burn(body)
    call = selector("handleReceiveFinalizedMessage(uint32,bytes32,uint32,bytes)") + words
    call += uint_word(len(raw)) + raw + bytes(-len(raw) % 32)
    refused = await world.refused(world.stranger, bridging.far_messenger, call)
    assert refused == "Invalid message transmitter"
    assert await world.ask(world.usdc, calldata.balance_of(world.stranger.address)) == 0

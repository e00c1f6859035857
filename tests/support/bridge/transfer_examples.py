"""A transfer by each bridge: what the origin's logs show of it, to be compared with others."""

from cambist.codecs.bridges.across import RelayData
from cambist.codecs.bridges.cctp import CctpBurn, CctpMessage, pack_burn
from cambist.codecs.contracts.abi import address_word
from cambist.engine.delta.bridging.origins import TransferParties
from cambist.engine.store.rows import amount32, amount_of
from support.store.stores import ALICE, BOB, USDC, a_delta_order, a_transfer

POOL, TRANSMITTER = b"\x0a" * 20, b"\x0b" * 20
OUTPUT = b"\x0d" * 20
PARTIES = TransferParties(ALICE, BOB, USDC)
SENT = a_transfer(a_delta_order(), log=9, output_token=OUTPUT, bridge_id=amount32(3))
DOMAINS = 7, 9
RELAY = RelayData(
    address_word(ALICE), address_word(BOB), bytes(32), address_word(USDC), address_word(OUTPUT),
    amount_of(SENT.amount), amount_of(SENT.output), SENT.chain_id, 3, 500, 0,
)  # fmt: skip
BURN = CctpBurn(
    address_word(USDC), address_word(BOB), amount_of(SENT.amount), address_word(b"\x0e" * 20), 10 * 10**6
)
MESSAGE = CctpMessage(
    7,
    9,
    bytes(32),
    address_word(b"\x0f" * 20),
    address_word(b"\x1f" * 20),
    bytes(32),
    2_000,
    0,
    pack_burn(BURN),
)

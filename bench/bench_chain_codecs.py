"""Benchmarks of signing transactions and coding calldata and events, beside eth-account and eth-abi."""

from collections.abc import Callable
from typing import Any

from bench.fixtures import CONTRACT, KEY, next_of, rfq_order
from bench.peers.process import Peer
from cambist.codecs.contracts.abi import address_word, uint_word
from cambist.codecs.contracts.calldata import fill_order
from cambist.codecs.contracts.contract_events import ORDER_FILLED, ContractEvent, OrderFilled, decode_event
from cambist.codecs.eip712_orders.rfq import RFQ_ORDER, rfq_domain_separator
from cambist.codecs.transactions import Transaction, decode_transaction, sign_transaction
from cambist.crypto.signatures import to_65

ORDERS = [rfq_order(number) for number in range(1_000)]
DIGEST_OF = RFQ_ORDER.compiled.digest_for(rfq_domain_separator("AUGUSTUS RFQ", 31_337, CONTRACT))
SIGNATURE = to_65(*KEY.sign(DIGEST_OF(ORDERS[0])))
TRANSACTIONS = [
    Transaction(31_337, nonce, 10**9, 30 * 10**9, 250_000, CONTRACT, 0, fill_order(ORDERS[0], SIGNATURE))
    for nonce in range(20_000)
]
LOGS = [
    (
        (ORDER_FILLED, bytes(32), address_word(order.maker), address_word(order.taker)),
        address_word(order.maker_asset)
        + uint_word(order.maker_amount)
        + address_word(order.taker_asset)
        + uint_word(order.taker_amount),
    )
    for order in ORDERS
]


def bench_sign_transaction(benchmark: Any) -> None:
    following = next_of(TRANSACTIONS)
    signed = benchmark(lambda: sign_transaction(following(), KEY))
    assert decode_transaction(signed.raw).sender == KEY.address


def bench_sign_transaction_eth_account(eth_account: Peer, in_peer: Callable[[Peer, str, int], None]) -> None:
    assert eth_account.ask("transaction 20") == sign_transaction(TRANSACTIONS[19], KEY).raw.hex()
    in_peer(eth_account, "transaction", 20)


def bench_fill_order_calldata(benchmark: Any) -> None:
    following = next_of(ORDERS)
    assert len(benchmark(lambda: fill_order(following(), SIGNATURE))) == 4 + 13 * 32


def bench_fill_order_calldata_eth_abi(eth_account: Peer, in_peer: Callable[[Peer, str, int], None]) -> None:
    assert eth_account.ask("fill_order 20") == fill_order(ORDERS[19], SIGNATURE).hex()
    in_peer(eth_account, "fill_order", 20)


def bench_decode_order_filled(benchmark: Any) -> None:
    following = next_of(LOGS)

    def once() -> ContractEvent | None:
        return decode_event(*following())

    assert isinstance(benchmark(once), OrderFilled)


def bench_decode_order_filled_eth_abi(eth_account: Peer, in_peer: Callable[[Peer, str, int], None]) -> None:
    ours = decode_event(*LOGS[19])
    assert isinstance(ours, OrderFilled)
    members = (
        f"0x{ours.maker.hex()} 0x{ours.taker.hex()} 0x{ours.maker_asset.hex()} {ours.maker_amount} "
        f"0x{ours.taker_asset.hex()} {ours.taker_amount}"
    )
    assert eth_account.ask("order_filled 20") == members.encode().hex()
    in_peer(eth_account, "order_filled", 20)

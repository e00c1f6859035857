"""Encodings: wire messages, amounts, signed orders, calldata and HTTP framing. No module here does I/O.

In: bytes from outside, or structs from the engine. Out: structs or bytes, or an error that names the field.
Reading order: `amounts`, `rounding`, `trading_token`, `iso_time`, `messages/`, `canonical_json`,
    `eip712_orders/`, `contracts/`, `rlp`, `transactions`, `bridges/`, `http1/`.
"""

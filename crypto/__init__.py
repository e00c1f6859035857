"""Hashing, signatures and authentication: pure functions over bytes.

In: bytes, keys, typed data. Out: digests, signatures, recovered addresses, results of checks.
Reading order: `hexadecimal`, `addresses`, `keccak`, `libsecp256k1`, `secp256k1`, `signatures`, `eip712`,
    `eip712_compiled`, `typed_data`, `eip1271`, `hmac_auth`, `route_seal`, `webhook_signature`, `custody/`.
"""

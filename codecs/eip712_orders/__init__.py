"""The signed orders: EIP-712 types, Python structs, and several values packed in one member.

In: an order as JSON or calldata. Out: a struct, its hash, its wire form.
Reading order: `typed_struct`, `rfq`, `nonce_and_meta`, `delta`, `partner_and_fee`, `signing_names`,
    `swap_consent`.
"""

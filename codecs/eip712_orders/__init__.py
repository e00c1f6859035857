"""The signed orders: EIP-712 types, Python structs, and the packing inside their members.

In: an order as JSON or calldata. Out: a struct, its hash, its wire form.
Read: `typed_struct`, `rfq`, `nonce_and_meta`, `delta`, `partner_and_fee`, `signing_names`.
"""

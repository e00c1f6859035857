"""Signing keys: where they come from, and the policy check before every signature.

In: the name of a secret, a keystore file, a mnemonic. Out: a key that signs only what its policy allows.
Reading order: `keys`, `keystore`, `mnemonic`, `signing_policy`, `transaction_policy`.
"""

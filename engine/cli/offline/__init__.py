"""Commands that use no network: keys, typed data, request signatures, settings.

In: arguments, files. Out: text on standard output.
Reading order: `keys`, `typed_data`, `hmac_headers`, `config_check`, `role_check`, `role_online`,
    `completion`.
"""

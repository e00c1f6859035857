"""Settings and constants: chains, tokens, partners, limits, time-outs, and the error tree.

In: a TOML file, environment variables, secret files. Out: one frozen `Settings` tree, and the classes of
    all errors.
Reading order: `settings`, `sections/`, `chains`, `tokens`, `secret`, `errors`, `error_root`,
    `request_errors`, `error_text`, `catalogue`, `limits`, `timeouts`, `version`.
"""

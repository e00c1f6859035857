"""Sections of a settings file, one module each: names, units, defaults and bounds.

In: values as TOML gives them. Out: frozen structs that `config/settings.py` joins into one tree.
Reading order: `venue`, `partners`, `maker`, `agent`, `relayer`, `nodes`, `endpoint_url`, `server`, `store`,
    `webhooks`, `bridges`.
"""

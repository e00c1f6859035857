"""What no production process loads: an EVM of this process, development nodes, the demo, generated pages.

In: options. Out: chains with everything on them, and a story told on one.
Read: `embedded/`, `devnet/`, `demo/`, `lifecycle_page`, `choices_page`.
"""

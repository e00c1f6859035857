"""Development tools, loaded by no production process: the embedded chain, devnets, the demo, docs pages.

In: options. Out: chains with contracts and funded accounts, the demo's output, generated pages of docs/.
Read: `embedded/`, `devnet/`, `demo/`, `lifecycle_page`, `choices_page`.
"""

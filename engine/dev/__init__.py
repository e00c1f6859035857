"""Development tools, which no production process loads: embedded chain, devnets, demo.

In: options of `cambist devnet` and `up`. Out: chains with contracts and funded accounts, bridges between the
chains, a whole market place, the demo's output.
Reading order: `embedded/`, `devnet/`, `bridge/`, `place/`, `demo/`.
"""

"""Development tools, which no production process loads: embedded chain, devnets, demo, generated pages.

In: options of `cambist devnet` and `up`. Out: chains with contracts and funded accounts, bridges between the
chains, a whole market place, the demo's output, generated pages of docs/.
Reading order: `embedded/`, `devnet/`, `bridge/`, `place/`, `demo/`, `lifecycle_page`, `choices_page`,
    `public_page`, `alert_rules`, `dashboards`, `flow_pictures`, `docs_site`.
"""

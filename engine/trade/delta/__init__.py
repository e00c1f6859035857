"""Delta orders, gasless for their owners: priced, signed, auctioned among agents, settled by the relayer.

In: signed orders. Out: settlements on chain, records, and the reason why an order waits.
Reading order: `orders/`, `building/`, `intake/`, `resting/`, `bids/`, `auction/`, `settlement/`, `bridging/`,
    `arriving/`, `bridge_desk`, `open_bridge_desk`, `engine`, `open_delta`, `explain`, `endpoints/`.
"""

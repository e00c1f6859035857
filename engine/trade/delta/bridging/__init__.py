"""Transfers of orders across chains: followed from the origin's bridge to their delivery or refund.

    indexed OrderBridged -> deposit or burned message in the origin's receipt
        Across: FilledRelay on the destination               -> DELIVERED
                fill deadline passed by confirmed blocks     -> FAILED -> refund on the origin -> REFUNDED
        CCTP:   attestation -> relayed, MessageReceived, minted -> DELIVERED

In: orders with transfers, logs of both chains, attestations. Out: stored ends and refunds, steps of orders.
Reading order: `bridge_places`, `origins`, `arrivals`, `refund_entries`, `attestations`, `log_windows`,
    `bridged_orders`, `bridge_rounds`, `attester_client`, `courier`, `delivery_watch`, `refund_watch`.
"""

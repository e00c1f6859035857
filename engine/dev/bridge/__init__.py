"""Off-chain halves of the two dev bridges: an Across relayer and a CCTP attester. Not for production.

In: logs of the bridge contracts on development chains; orders to delay, to fall silent, to lack funds, to
sign wrongly. Out: fills and refunds on the chains; the HTTP answers of Across's fee endpoint and of Circle's
attestation service.
Reading order: `lanes`, `relay_plan`, `attest_plan`, `followed_logs`, `relayer`, `attester`, `bridge_answers`,
    `bridge_service`, `devnet_bridge`.
"""

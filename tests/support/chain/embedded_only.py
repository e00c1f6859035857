"""Test files that need the embedded chain itself; other tests take an anvil where pyrevm is missing."""

EMBEDDED_ONLY = (
    "unit/engine/dev/test_evm.py",
    "unit/engine/chain/test_trader_sending.py",
    "unit/engine/client/test_trader_policy.py",
    "conformance/test_cancel_rules.py",
    "conformance/test_order_reads.py",
    "conformance/test_submit_funds.py",
    "conformance/test_submit_order_of_checks.py",
    "conformance/test_submit_permits.py",
    "conformance/test_submit_rules.py",
    "conformance/test_submit_signatures.py",
    "property/test_embedded_undo.py",
    "property/test_waiting_orders_machine.py",
    "integration/test_embedded_chain.py",
    "integration/test_orders_flat.py",
    "integration/test_devnet_node.py",
    "integration/test_devnet_rpc.py",
    "e2e/test_bridges_like_terms.py",
    "e2e/test_contracts_like_model.py",
    "e2e/test_delta_fees_for_all_terms.py",
    "e2e/test_embedded_like_anvil.py",
)

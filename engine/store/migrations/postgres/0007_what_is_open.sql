-- What is not finished is found without what has ended, however much of that there is: by a relayer with each
-- block, and by whoever takes orders up, page by page as they came in.

DROP INDEX chain_tx_open;
CREATE INDEX chain_tx_open ON chain_tx (chain_id, sender, nonce, created_ms) WHERE status IN ('SIGNED', 'MINED');

DROP INDEX chain_intent_open;
CREATE INDEX chain_intent_open ON chain_intent (chain_id, sender, state, created_ms, effect_key)
    WHERE state IN ('WAITING', 'PENDING', 'MINED', 'REVERTED');

DROP INDEX delta_order_open;
CREATE INDEX delta_order_open ON delta_order (seq) WHERE is_final = FALSE;
DROP INDEX otc_order_open;
CREATE INDEX otc_order_open ON otc_order (seq) WHERE is_final = FALSE;

-- What of a webhook's backlog is due, and what has waited for too long: of an order's deliveries the first alone.
DROP INDEX delivery_order;
CREATE INDEX delivery_order ON delivery (order_hash, webhook, state, token);
CREATE INDEX delivery_waiting ON delivery (webhook, created_ms, token) WHERE state = 'WAITING';

-- What is not finished is found without what has ended, however much of that there is: by a relayer
-- with each block.

DROP INDEX chain_tx_open;
CREATE INDEX chain_tx_open ON chain_tx (chain_id, sender, nonce, created_ms) WHERE status IN ('SIGNED', 'MINED');

DROP INDEX chain_intent_open;
CREATE INDEX chain_intent_open ON chain_intent (chain_id, sender, state, created_ms, effect_key)
    WHERE state IN ('WAITING', 'PENDING', 'MINED', 'REVERTED');

-- What of a webhook's backlog is due, and what has waited for too long: of an order's deliveries the first alone.
DROP INDEX delivery_order;
CREATE INDEX delivery_order ON delivery (order_hash, webhook, state, token);
CREATE INDEX delivery_waiting ON delivery (webhook, created_ms, token) WHERE state = 'WAITING';

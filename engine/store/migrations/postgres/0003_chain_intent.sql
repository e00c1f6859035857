-- What relayers are to get mined, each once.

CREATE TABLE chain_intent (
    effect_key   text COLLATE "C" NOT NULL PRIMARY KEY,
    chain_id     bigint NOT NULL,
    sender       bytea NOT NULL,
    target       bytea NOT NULL,
    data         bytea NOT NULL,
    value_wei    bytea NOT NULL CHECK (length(value_wei) = 32),
    gas          bigint NOT NULL,
    deadline_s   bigint NOT NULL,
    created_ms   bigint NOT NULL,
    version      bigint NOT NULL,
    state        text NOT NULL,
    reason       text NOT NULL,
    mined_hash   bytea,
    block_number bigint,
    block_hash   bytea,
    updated_ms   bigint NOT NULL
);
CREATE INDEX chain_intent_open ON chain_intent (chain_id, sender, state, created_ms)
    WHERE state IN ('WAITING', 'PENDING', 'MINED', 'REVERTED');
CREATE INDEX chain_tx_open ON chain_tx (chain_id, sender) WHERE status IN ('SIGNED', 'SENT', 'MINED');

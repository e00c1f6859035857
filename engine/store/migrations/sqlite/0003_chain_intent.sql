-- What relayers are to get mined, each once.

CREATE TABLE chain_intent (
    effect_key   TEXT NOT NULL PRIMARY KEY,
    chain_id     INTEGER NOT NULL,
    sender       BLOB NOT NULL,
    target       BLOB NOT NULL,
    data         BLOB NOT NULL,
    value_wei    BLOB NOT NULL CHECK (length(value_wei) = 32),
    gas          INTEGER NOT NULL,
    deadline_s   INTEGER NOT NULL,
    created_ms   INTEGER NOT NULL,
    version      INTEGER NOT NULL,
    state        TEXT NOT NULL,
    reason       TEXT NOT NULL,
    mined_hash   BLOB,
    block_number INTEGER,
    block_hash   BLOB,
    updated_ms   INTEGER NOT NULL
) STRICT;
CREATE INDEX chain_intent_open ON chain_intent (chain_id, sender, state, created_ms)
    WHERE state IN ('WAITING', 'PENDING', 'MINED', 'REVERTED');
CREATE INDEX chain_tx_open ON chain_tx (chain_id, sender) WHERE status IN ('SIGNED', 'SENT', 'MINED');

-- What the logs of a chain say, by where they stand in it. A re-organisation takes back what is above the
-- last common block: an index on the height for each.

CREATE TABLE otc_fill (
    chain_id     INTEGER NOT NULL,
    block_hash   BLOB NOT NULL,
    tx_hash      BLOB NOT NULL,
    log_index    INTEGER NOT NULL,
    block_number INTEGER NOT NULL,
    order_hash   BLOB NOT NULL,
    maker        BLOB NOT NULL,
    taker        BLOB NOT NULL,
    maker_asset  BLOB NOT NULL,
    taker_asset  BLOB NOT NULL,
    maker_amount BLOB NOT NULL,
    taker_amount BLOB NOT NULL,
    at_ms        INTEGER NOT NULL,
    PRIMARY KEY (chain_id, block_hash, tx_hash, log_index)
) STRICT, WITHOUT ROWID;
CREATE INDEX otc_fill_order ON otc_fill (order_hash);
CREATE INDEX otc_fill_block ON otc_fill (chain_id, block_number);

CREATE TABLE otc_cancel (
    chain_id     INTEGER NOT NULL,
    block_hash   BLOB NOT NULL,
    tx_hash      BLOB NOT NULL,
    log_index    INTEGER NOT NULL,
    block_number INTEGER NOT NULL,
    order_hash   BLOB NOT NULL,
    maker        BLOB NOT NULL,
    at_ms        INTEGER NOT NULL,
    PRIMARY KEY (chain_id, block_hash, tx_hash, log_index)
) STRICT, WITHOUT ROWID;
CREATE INDEX otc_cancel_order ON otc_cancel (order_hash);
CREATE INDEX otc_cancel_block ON otc_cancel (chain_id, block_number);

CREATE TABLE pre_signature (
    chain_id     INTEGER NOT NULL,
    block_hash   BLOB NOT NULL,
    tx_hash      BLOB NOT NULL,
    log_index    INTEGER NOT NULL,
    block_number INTEGER NOT NULL,
    order_hash   BLOB NOT NULL,
    owner        BLOB NOT NULL,
    is_signed    INTEGER NOT NULL,
    at_ms        INTEGER NOT NULL,
    PRIMARY KEY (chain_id, block_hash, tx_hash, log_index)
) STRICT, WITHOUT ROWID;
CREATE INDEX pre_signature_order ON pre_signature (order_hash);
CREATE INDEX pre_signature_block ON pre_signature (chain_id, block_number);

CREATE TABLE deposit_withdrawn (
    chain_id     INTEGER NOT NULL,
    block_hash   BLOB NOT NULL,
    tx_hash      BLOB NOT NULL,
    log_index    INTEGER NOT NULL,
    block_number INTEGER NOT NULL,
    order_hash   BLOB NOT NULL,
    owner        BLOB NOT NULL,
    amount       BLOB NOT NULL CHECK (length(amount) = 32),
    PRIMARY KEY (chain_id, block_hash, tx_hash, log_index)
) STRICT, WITHOUT ROWID;
CREATE INDEX deposit_withdrawn_order ON deposit_withdrawn (order_hash);
CREATE INDEX deposit_withdrawn_block ON deposit_withdrawn (chain_id, block_number);

-- As it was, with the owner: anybody may deposit for any order's hash.
DROP TABLE deposit;
CREATE TABLE deposit (
    chain_id     INTEGER NOT NULL,
    block_hash   BLOB NOT NULL,
    tx_hash      BLOB NOT NULL,
    log_index    INTEGER NOT NULL,
    block_number INTEGER NOT NULL,
    order_hash   BLOB NOT NULL,
    owner        BLOB NOT NULL,
    amount       BLOB NOT NULL CHECK (length(amount) = 32),
    PRIMARY KEY (chain_id, block_hash, tx_hash, log_index)
) STRICT, WITHOUT ROWID;
CREATE INDEX deposit_order ON deposit (order_hash);
CREATE INDEX deposit_block ON deposit (chain_id, block_number);

CREATE INDEX delta_fill_block ON delta_fill (chain_id, block_number);
CREATE INDEX nonce_used_block ON nonce_used (chain_id, block_number);

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
CREATE INDEX chain_intent_ended ON chain_intent (updated_ms) WHERE state IN ('FINAL', 'FAILED', 'CANCELLED');

-- A relayer's transactions: one first transaction of each nonce; what has ended is deleted by age.
CREATE INDEX chain_tx_open ON chain_tx (chain_id, sender) WHERE status IN ('SIGNED', 'MINED');
CREATE INDEX chain_tx_ended ON chain_tx (updated_ms) WHERE status IN ('FINAL', 'FAILED', 'REPLACED');
CREATE UNIQUE INDEX chain_tx_first ON chain_tx (chain_id, sender, nonce)
    WHERE replaces IS NULL AND status <> 'REPLACED';

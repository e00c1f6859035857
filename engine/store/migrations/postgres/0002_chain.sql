-- What the logs of a chain say, by where they stand in it. A re-organisation takes back what is above the
-- last common block: an index on the height for each.

CREATE TABLE otc_fill (
    chain_id     bigint NOT NULL,
    block_hash   bytea NOT NULL,
    tx_hash      bytea NOT NULL,
    log_index    bigint NOT NULL,
    block_number bigint NOT NULL,
    order_hash   bytea NOT NULL,
    maker        bytea NOT NULL,
    taker        bytea NOT NULL,
    maker_asset  bytea NOT NULL,
    taker_asset  bytea NOT NULL,
    maker_amount bytea NOT NULL,
    taker_amount bytea NOT NULL,
    at_ms        bigint NOT NULL,
    PRIMARY KEY (chain_id, block_hash, tx_hash, log_index)
);
CREATE INDEX otc_fill_order ON otc_fill (order_hash);
CREATE INDEX otc_fill_block ON otc_fill (chain_id, block_number);

CREATE TABLE otc_cancel (
    chain_id     bigint NOT NULL,
    block_hash   bytea NOT NULL,
    tx_hash      bytea NOT NULL,
    log_index    bigint NOT NULL,
    block_number bigint NOT NULL,
    order_hash   bytea NOT NULL,
    maker        bytea NOT NULL,
    at_ms        bigint NOT NULL,
    PRIMARY KEY (chain_id, block_hash, tx_hash, log_index)
);
CREATE INDEX otc_cancel_order ON otc_cancel (order_hash);
CREATE INDEX otc_cancel_block ON otc_cancel (chain_id, block_number);

CREATE TABLE pre_signature (
    chain_id     bigint NOT NULL,
    block_hash   bytea NOT NULL,
    tx_hash      bytea NOT NULL,
    log_index    bigint NOT NULL,
    block_number bigint NOT NULL,
    order_hash   bytea NOT NULL,
    owner        bytea NOT NULL,
    is_signed    boolean NOT NULL,
    at_ms        bigint NOT NULL,
    PRIMARY KEY (chain_id, block_hash, tx_hash, log_index)
);
CREATE INDEX pre_signature_order ON pre_signature (order_hash);
CREATE INDEX pre_signature_block ON pre_signature (chain_id, block_number);

CREATE TABLE deposit_withdrawn (
    chain_id     bigint NOT NULL,
    block_hash   bytea NOT NULL,
    tx_hash      bytea NOT NULL,
    log_index    bigint NOT NULL,
    block_number bigint NOT NULL,
    order_hash   bytea NOT NULL,
    owner        bytea NOT NULL,
    amount       bytea NOT NULL CHECK (length(amount) = 32),
    PRIMARY KEY (chain_id, block_hash, tx_hash, log_index)
);
CREATE INDEX deposit_withdrawn_order ON deposit_withdrawn (order_hash);
CREATE INDEX deposit_withdrawn_block ON deposit_withdrawn (chain_id, block_number);

-- As it was, with the owner: anybody may deposit for any order's hash.
DROP TABLE deposit;
CREATE TABLE deposit (
    chain_id     bigint NOT NULL,
    block_hash   bytea NOT NULL,
    tx_hash      bytea NOT NULL,
    log_index    bigint NOT NULL,
    block_number bigint NOT NULL,
    order_hash   bytea NOT NULL,
    owner        bytea NOT NULL,
    amount       bytea NOT NULL CHECK (length(amount) = 32),
    PRIMARY KEY (chain_id, block_hash, tx_hash, log_index)
);
CREATE INDEX deposit_order ON deposit (order_hash);
CREATE INDEX deposit_block ON deposit (chain_id, block_number);

CREATE INDEX delta_fill_block ON delta_fill (chain_id, block_number);
CREATE INDEX nonce_used_block ON nonce_used (chain_id, block_number);

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
CREATE INDEX chain_intent_ended ON chain_intent (updated_ms) WHERE state IN ('FINAL', 'FAILED', 'CANCELLED');

-- A relayer's transactions: one first transaction of each nonce; what has ended is deleted by age.
CREATE INDEX chain_tx_open ON chain_tx (chain_id, sender) WHERE status IN ('SIGNED', 'MINED');
CREATE INDEX chain_tx_ended ON chain_tx (updated_ms) WHERE status IN ('FINAL', 'FAILED', 'REPLACED');
CREATE UNIQUE INDEX chain_tx_first ON chain_tx (chain_id, sender, nonce)
    WHERE replaces IS NULL AND status <> 'REPLACED';

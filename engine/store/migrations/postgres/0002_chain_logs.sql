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
    order_hash   bytea NOT NULL,
    amount       bytea NOT NULL,
    block_number bigint NOT NULL,
    PRIMARY KEY (chain_id, block_hash, tx_hash, log_index)
);
CREATE INDEX deposit_withdrawn_order ON deposit_withdrawn (order_hash);
CREATE INDEX deposit_withdrawn_block ON deposit_withdrawn (chain_id, block_number);

CREATE INDEX delta_fill_block ON delta_fill (chain_id, block_number);
CREATE INDEX deposit_block ON deposit (chain_id, block_number);
CREATE INDEX nonce_used_block ON nonce_used (chain_id, block_number);

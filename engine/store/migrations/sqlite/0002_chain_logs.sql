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
    order_hash   BLOB NOT NULL,
    amount       BLOB NOT NULL,
    block_number INTEGER NOT NULL,
    PRIMARY KEY (chain_id, block_hash, tx_hash, log_index)
) STRICT, WITHOUT ROWID;
CREATE INDEX deposit_withdrawn_order ON deposit_withdrawn (order_hash);
CREATE INDEX deposit_withdrawn_block ON deposit_withdrawn (chain_id, block_number);

CREATE INDEX delta_fill_block ON delta_fill (chain_id, block_number);
CREATE INDEX deposit_block ON deposit (chain_id, block_number);
CREATE INDEX nonce_used_block ON nonce_used (chain_id, block_number);

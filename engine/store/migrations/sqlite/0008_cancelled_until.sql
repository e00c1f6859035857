-- Deposits of native tokens are an owner's, and are read from the chain alone.
DROP TABLE deposit;
DROP TABLE deposit_withdrawn;

CREATE TABLE otc_cancel_until (
    chain_id     INTEGER NOT NULL,
    block_hash   BLOB NOT NULL,
    tx_hash      BLOB NOT NULL,
    log_index    INTEGER NOT NULL,
    block_number INTEGER NOT NULL,
    maker        BLOB NOT NULL,
    until_s      INTEGER NOT NULL,
    at_ms        INTEGER NOT NULL,
    PRIMARY KEY (chain_id, block_hash, tx_hash, log_index)
) STRICT, WITHOUT ROWID;
CREATE INDEX otc_cancel_until_maker ON otc_cancel_until (maker);
CREATE INDEX otc_cancel_until_block ON otc_cancel_until (chain_id, block_number);

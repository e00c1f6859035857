-- Deposits of native tokens are an owner's, and are read from the chain alone.
DROP TABLE deposit;
DROP TABLE deposit_withdrawn;

CREATE TABLE otc_cancel_until (
    chain_id     bigint NOT NULL,
    block_hash   bytea NOT NULL,
    tx_hash      bytea NOT NULL,
    log_index    bigint NOT NULL,
    block_number bigint NOT NULL,
    maker        bytea NOT NULL,
    until_s      bigint NOT NULL,
    at_ms        bigint NOT NULL,
    PRIMARY KEY (chain_id, block_hash, tx_hash, log_index)
);
CREATE INDEX otc_cancel_until_maker ON otc_cancel_until (maker);
CREATE INDEX otc_cancel_until_block ON otc_cancel_until (chain_id, block_number);

-- Amounts that settlements handed to bridges, what the destination shows of each, and which entry of the bridge's
-- log refunded it. No refund was kept before.
CREATE TABLE bridge_transfer (
    chain_id             INTEGER NOT NULL,
    block_hash           BLOB NOT NULL,
    tx_hash              BLOB NOT NULL,
    log_index            INTEGER NOT NULL,
    block_number         INTEGER NOT NULL,
    order_hash           BLOB NOT NULL,
    selector4            BLOB NOT NULL CHECK (length(selector4) = 4),
    destination_chain_id INTEGER NOT NULL,
    output_token         BLOB NOT NULL,
    amount               BLOB NOT NULL CHECK (length(amount) = 32),
    output               BLOB NOT NULL CHECK (length(output) = 32),
    bridge_id            BLOB NOT NULL CHECK (length(bridge_id) = 32),
    at_ms                INTEGER NOT NULL,
    PRIMARY KEY (chain_id, block_hash, tx_hash, log_index)
) STRICT, WITHOUT ROWID;
CREATE INDEX bridge_transfer_order ON bridge_transfer (order_hash);
CREATE INDEX bridge_transfer_block ON bridge_transfer (chain_id, block_number);

CREATE TABLE bridge_end (
    chain_id             INTEGER NOT NULL,
    block_hash           BLOB NOT NULL,
    tx_hash              BLOB NOT NULL,
    log_index            INTEGER NOT NULL,
    order_hash           BLOB NOT NULL,
    destination_chain_id INTEGER NOT NULL,
    version              INTEGER NOT NULL,
    state                TEXT NOT NULL,
    end_block            BLOB NOT NULL,
    end_number           INTEGER NOT NULL,
    end_tx               BLOB,
    end_log              INTEGER,
    amount               BLOB NOT NULL CHECK (length(amount) = 32),
    at_ms                INTEGER NOT NULL,
    is_final             INTEGER NOT NULL,
    PRIMARY KEY (chain_id, block_hash, tx_hash, log_index)
) STRICT, WITHOUT ROWID;
CREATE INDEX bridge_end_order ON bridge_end (order_hash);
CREATE UNIQUE INDEX bridge_end_log ON bridge_end (destination_chain_id, end_tx, end_log)
    WHERE state = 'DELIVERED';

DROP TABLE delta_refund;
CREATE TABLE delta_refund (
    chain_id       INTEGER NOT NULL,
    block_hash     BLOB NOT NULL,
    tx_hash        BLOB NOT NULL,
    log_index      INTEGER NOT NULL,
    entry          INTEGER NOT NULL,
    taken          BLOB NOT NULL CHECK (length(taken) = 32),
    version        INTEGER NOT NULL,
    block_number   INTEGER NOT NULL,
    order_hash     BLOB NOT NULL,
    transfer_block BLOB NOT NULL,
    transfer_tx    BLOB NOT NULL,
    transfer_log   INTEGER NOT NULL,
    token          BLOB NOT NULL,
    amount         BLOB NOT NULL CHECK (length(amount) = 32),
    at_ms          INTEGER NOT NULL,
    is_final       INTEGER NOT NULL,
    PRIMARY KEY (chain_id, block_hash, tx_hash, log_index, entry, taken)
) STRICT, WITHOUT ROWID;
CREATE INDEX delta_refund_log ON delta_refund (tx_hash);
CREATE INDEX delta_refund_order ON delta_refund (order_hash);

-- Settlements say how far they filled an order and whether that closed it; a nonce, which order used it; an
-- order, how often its settlement failed. A round of an auction has a row for each of its orders, and what was
-- offered is in its record.

ALTER TABLE delta_order ADD COLUMN failures INTEGER NOT NULL DEFAULT 0;

DROP TABLE delta_fill;
CREATE TABLE delta_fill (
    chain_id       INTEGER NOT NULL,
    block_hash     BLOB NOT NULL,
    tx_hash        BLOB NOT NULL,
    log_index      INTEGER NOT NULL,
    block_number   INTEGER NOT NULL,
    order_hash     BLOB NOT NULL,
    destination_tx BLOB,
    spent          BLOB NOT NULL CHECK (length(spent) = 32),
    received       BLOB NOT NULL CHECK (length(received) = 32),
    at_ms          INTEGER NOT NULL,
    filled         BLOB NOT NULL CHECK (length(filled) = 32),
    is_closed      INTEGER NOT NULL,
    PRIMARY KEY (chain_id, block_hash, tx_hash, log_index)
) STRICT, WITHOUT ROWID;
CREATE INDEX delta_fill_order ON delta_fill (order_hash);
CREATE INDEX delta_fill_block ON delta_fill (chain_id, block_number);

ALTER TABLE nonce_used ADD COLUMN order_hash BLOB;

DROP TABLE solver_bid;
DROP TABLE auction_round;
CREATE TABLE auction_round (
    auction_id INTEGER NOT NULL,
    order_hash BLOB NOT NULL,
    chain_id   INTEGER NOT NULL,
    opened_ms  INTEGER NOT NULL,
    closed_ms  INTEGER NOT NULL,
    winner     TEXT,
    record     BLOB NOT NULL,
    PRIMARY KEY (auction_id, order_hash)
) STRICT, WITHOUT ROWID;
CREATE INDEX auction_round_order ON auction_round (order_hash, auction_id);

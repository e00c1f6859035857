-- Settlements say how far they filled an order and whether that closed it; a nonce, which order used it; an
-- order, how often its settlement failed. A round of an auction has a row for each of its orders, and what was
-- offered is in its record.

ALTER TABLE delta_order ADD COLUMN failures bigint NOT NULL DEFAULT 0;

DROP TABLE delta_fill;
CREATE TABLE delta_fill (
    chain_id       bigint NOT NULL,
    block_hash     bytea NOT NULL,
    tx_hash        bytea NOT NULL,
    log_index      bigint NOT NULL,
    block_number   bigint NOT NULL,
    order_hash     bytea NOT NULL,
    destination_tx bytea,
    spent          bytea NOT NULL CHECK (length(spent) = 32),
    received       bytea NOT NULL CHECK (length(received) = 32),
    at_ms          bigint NOT NULL,
    filled         bytea NOT NULL CHECK (length(filled) = 32),
    is_closed      boolean NOT NULL,
    PRIMARY KEY (chain_id, block_hash, tx_hash, log_index)
);
CREATE INDEX delta_fill_order ON delta_fill (order_hash);
CREATE INDEX delta_fill_block ON delta_fill (chain_id, block_number);

ALTER TABLE nonce_used ADD COLUMN order_hash bytea;

DROP TABLE solver_bid;
DROP TABLE auction_round;
CREATE TABLE auction_round (
    auction_id bigint NOT NULL,
    order_hash bytea NOT NULL,
    chain_id   bigint NOT NULL,
    opened_ms  bigint NOT NULL,
    closed_ms  bigint NOT NULL,
    winner     text,
    record     bytea NOT NULL,
    PRIMARY KEY (auction_id, order_hash)
);
CREATE INDEX auction_round_order ON auction_round (order_hash, auction_id);

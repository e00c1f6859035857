-- Amounts that settlements handed to bridges, what the destination shows of each, and which entry of the bridge's
-- log refunded it. No refund was kept before.
CREATE TABLE bridge_transfer (
    chain_id             bigint NOT NULL,
    block_hash           bytea NOT NULL,
    tx_hash              bytea NOT NULL,
    log_index            bigint NOT NULL,
    block_number         bigint NOT NULL,
    order_hash           bytea NOT NULL,
    selector4            bytea NOT NULL CHECK (length(selector4) = 4),
    destination_chain_id bigint NOT NULL,
    output_token         bytea NOT NULL,
    amount               bytea NOT NULL CHECK (length(amount) = 32),
    output               bytea NOT NULL CHECK (length(output) = 32),
    bridge_id            bytea NOT NULL CHECK (length(bridge_id) = 32),
    at_ms                bigint NOT NULL,
    PRIMARY KEY (chain_id, block_hash, tx_hash, log_index)
);
CREATE INDEX bridge_transfer_order ON bridge_transfer (order_hash);
CREATE INDEX bridge_transfer_block ON bridge_transfer (chain_id, block_number);

CREATE TABLE bridge_end (
    chain_id             bigint NOT NULL,
    block_hash           bytea NOT NULL,
    tx_hash              bytea NOT NULL,
    log_index            bigint NOT NULL,
    order_hash           bytea NOT NULL,
    destination_chain_id bigint NOT NULL,
    version              bigint NOT NULL,
    state                text NOT NULL,
    end_block            bytea NOT NULL,
    end_number           bigint NOT NULL,
    end_tx               bytea,
    end_log              bigint,
    amount               bytea NOT NULL CHECK (length(amount) = 32),
    at_ms                bigint NOT NULL,
    is_final             boolean NOT NULL,
    PRIMARY KEY (chain_id, block_hash, tx_hash, log_index)
);
CREATE INDEX bridge_end_order ON bridge_end (order_hash);
CREATE UNIQUE INDEX bridge_end_log ON bridge_end (destination_chain_id, end_tx, end_log)
    WHERE state = 'DELIVERED';

DROP TABLE delta_refund;
CREATE TABLE delta_refund (
    chain_id       bigint NOT NULL,
    block_hash     bytea NOT NULL,
    tx_hash        bytea NOT NULL,
    log_index      bigint NOT NULL,
    entry          bigint NOT NULL,
    taken          bytea NOT NULL CHECK (length(taken) = 32),
    version        bigint NOT NULL,
    block_number   bigint NOT NULL,
    order_hash     bytea NOT NULL,
    transfer_block bytea NOT NULL,
    transfer_tx    bytea NOT NULL,
    transfer_log   bigint NOT NULL,
    token          bytea NOT NULL,
    amount         bytea NOT NULL CHECK (length(amount) = 32),
    at_ms          bigint NOT NULL,
    is_final       boolean NOT NULL,
    PRIMARY KEY (chain_id, block_hash, tx_hash, log_index, entry, taken)
);
CREATE INDEX delta_refund_log ON delta_refund (tx_hash);
CREATE INDEX delta_refund_order ON delta_refund (order_hash);

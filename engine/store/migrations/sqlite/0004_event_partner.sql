-- An event says whose interface brought its order, so that whoever follows a partner need not read the order.

ALTER TABLE order_event ADD COLUMN partner TEXT NOT NULL DEFAULT '';

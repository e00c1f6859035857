"""The durable store: orders, events, effects and cursors, on SQLite or PostgreSQL behind one port."""

"""JSON messages, a module for each pair of speakers: msgspec structs with the names of the wire.

In: JSON bodies and query strings. Out: typed structs, and the bytes of answers.
Reading order: `wire`, `vocabulary`, `dialects`, `query`, `market_messages`, `delta_messages`, `otc_messages`,
    `maker_messages`, `agent_messages`, `auction_messages`, `event_messages`, `webhook_messages`,
    `resource_messages`, `tape_messages`.
"""

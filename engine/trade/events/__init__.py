"""Order events and their delivery to clients: event streams of this process, and webhooks.

In: the store's log of order events. Out: messages to subscriptions, signed POSTs to webhooks.
Reading order: `event_streams`, `filters`, `message`, `ring`, `hub`, `subscription`, `webhook_endpoints`,
    `deliveries`, `webhooks`, `open_webhooks`.
"""

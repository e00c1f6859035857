"""Deliver events of orders to listeners: streams of this process, and webhooks.

In: the log of the store. Out: messages to subscriptions, signed POSTs to webhooks.
Read: `filters`, `message`, `ring`, `hub`, `subscription`, `deliveries`, `webhooks`, `webhook_opening`.
"""

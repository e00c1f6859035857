"""A trader's side of the API: typed requests, the checks before a signature, the way to the end.

In: a trader's wish and key. Out: an offer, a signed trade, and its outcome as the chain has it.
Read: `client`, `tokens`, `terms`, `safety`, `trusted_contract`, `permits`, `sending`, `allowing`,
    `trader`, `outcome`, `submitting`, `limit_price`, `schedule`, `events`, `swap/`, `order/`, `otc/`.
"""

"""Development nodes: JSON-RPC over HTTP and WebSocket in front of an embedded chain, or an anvil.

In: JSON-RPC requests. Out: answers as geth words them; chains furnished with contracts and tokens.
Read: `serve`, `furnish`, `node`, `dispatch`, `parameters`, `facade`, `rendering`, `filters`, `moves`,
    `controls`, `signing`, `faults`, `anvil`.
"""

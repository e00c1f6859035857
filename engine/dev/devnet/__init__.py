"""Development nodes: JSON-RPC over HTTP and WebSocket in front of an embedded chain, or an anvil.

In: JSON-RPC requests. Out: answers with geth's error texts; chains with contracts and tokens deployed.
Read: `serve`, `furnish`, `node`, `dispatch`, `parameters`, `facade`, `rendering`, `filters`, `moves`,
    `controls`, `signing`, `faults`, `anvil`.
"""

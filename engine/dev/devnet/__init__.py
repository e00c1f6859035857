"""Development nodes of `cambist devnet`: JSON-RPC in front of an embedded chain, or the program anvil.

In: JSON-RPC requests over HTTP and WebSocket. Out: answers with geth's error texts; chains with contracts and
tokens deployed.
Reading order: `serve`, `furnish`, `bridge_places`, `node`, `dispatch`, `parameters`, `facade`, `rendering`,
    `filters`, `moves`, `controls`, `signing`, `faults`, `anvil`.
"""

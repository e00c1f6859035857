"""The only access to sockets, and the drivers that speak a protocol over a stream.

In: an address, a request. Out: streams, HTTP answers, WebSocket messages.
Read: `streams`, `dial_fault`, `lean_stream`, `http_client`, `signed_client`, `httpx_transport`, `outward`,
    `websocket_handshake`, `websocket_reader`, `websocket`.
"""

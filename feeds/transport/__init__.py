"""Network access: the only modules that open sockets, and the protocol drivers that run over streams.

In: an address, a request. Out: streams, HTTP answers, WebSocket messages.
Reading order: `streams`, `dial_fault`, `lean_stream`, `http_client`, `signed_client`, `httpx_transport`,
    `outward`, `websocket_handshake`, `websocket_reader`, `websocket`.
"""

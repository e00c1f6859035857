"""Every wait has a bound, and all bounds stand here. Seconds, unless the name says otherwise.

What an operator may want to change is a setting whose default is one of these.
"""

# --- HTTP server -----------------------------------------------------------------------------------
SERVER_HEADER_S = 10.0  # from the first byte of a request to the end of its header section
SERVER_BODY_S = 20.0  # from the end of the header section to the end of the body
SERVER_IDLE_S = 75.0  # between two requests of one connection
SERVER_WRITE_S = 20.0  # for the other side to take what was written
SERVER_ROUTE_S = 30.0  # for a coroutine route to answer
SERVER_DRAIN_S = 10.0  # from SIGTERM to the end of the last answer
SERVER_LINGER_S = 2.0  # reading on after a refusal, so that its answer is not lost to a reset
TLS_HANDSHAKE_S = 10.0

# --- WebSocket -------------------------------------------------------------------------------------
WEBSOCKET_OPEN_S = 10.0
WEBSOCKET_PING_EVERY_S = 20.0
WEBSOCKET_PONG_S = 20.0
WEBSOCKET_CLOSE_S = 5.0

# --- Outgoing HTTP ---------------------------------------------------------------------------------
DIAL_S = 5.0
HTTP_REQUEST_S = 10.0

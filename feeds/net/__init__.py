"""The network: the only doors to sockets, and the drivers that speak a protocol over a stream."""

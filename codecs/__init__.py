"""What travels: wire messages, amounts, typed orders, calldata and HTTP framing. No I/O."""

"""The signed orders: their EIP-712 types, their Python structs and the packing inside their members."""

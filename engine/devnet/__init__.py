"""`cambist devnet`: chains of our own behind JSON-RPC, with everything deployed."""

"""Address and code of the CREATE2 factory that almost every chain has.

The address of a contract that the factory creates follows from the contract's code and a salt. Calldata of
the factory is 32 bytes of salt, then the creation code.

Source: Arachnid's deterministic deployment proxy; EIP-1014.
"""

FACTORY = bytes.fromhex("4e59b44847b379578588920ca78fbf26c0b4956c")
FACTORY_CODE = bytes.fromhex(
    "7fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffe03601600081602082378035828234f5"
    "8015156039578182fd5b8082525050506014600cf3"
)

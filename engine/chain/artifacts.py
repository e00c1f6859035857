"""Load the compiled Solidity contracts: bytecode for deployment, ABIs for the decoding of errors.

`make contracts` compiles the sources in `contracts/`; contracts in `contracts/dev/` are for devnets and
tests.
"""

from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from ...codecs.contracts.abi import selector
from ...crypto.hexadecimal import parse_hex
from .reverts import CustomErrors, custom_errors

FOLDER = Path(__file__).parent / "contracts" / "artifacts"


class Parameter(msgspec.Struct, frozen=True):
    """A parameter in a contract's ABI; `components` has the members of a tuple type, else is empty."""

    type: str
    name: str = ""
    components: tuple["Parameter", ...] = ()

    def canonical(self) -> str:
        """Return the type as a function signature has it: a tuple as its members' types in parentheses."""
        if not self.type.startswith("tuple"):
            return self.type
        members = ",".join(member.canonical() for member in self.components)
        return f"({members}){self.type.removeprefix('tuple')}"


class Entry(msgspec.Struct, frozen=True):
    """An entry of a contract's ABI: a function, an event, an error or the constructor."""

    type: str
    name: str = ""
    inputs: tuple[Parameter, ...] = ()

    def signature(self) -> str:
        """Signature of the entry: name and parameter types, such as `transfer(address,uint256)`."""
        return f"{self.name}({','.join(parameter.canonical() for parameter in self.inputs)})"


class Runtime(msgspec.Struct, frozen=True):
    """Offset and size of a contract's runtime code within its creation code, in bytes."""

    at: int
    size: int


class Artifact(msgspec.Struct, frozen=True):
    """A compiled contract.

    Attributes:
        source: path of the contract's source file, below `contracts/`.
        abi: the contract's interface.
        bytecode: the creation code as 0x and hex digits, without the constructor's arguments.
        runtime: place of the runtime code in the creation code.
    """

    name: str
    source: str
    abi: tuple[Entry, ...]
    bytecode: str
    runtime: Runtime

    def init_code(self, arguments: bytes = b"") -> bytes:
        """Return the creation code with the encoded constructor arguments: the data of a deployment."""
        return parse_hex(self.bytecode, self.name) + arguments

    def code(self) -> bytes:
        """Return the runtime code that a chain stores, with zeros in place of the values of immutables."""
        return self.init_code()[self.runtime.at :][: self.runtime.size]

    def selectors(self) -> dict[str, bytes]:
        """Mapping signature -> 4-byte selector of each function."""
        signatures = [entry.signature() for entry in self.abi if entry.type == "function"]
        return {signature: selector(signature) for signature in signatures}


@cache
def artifact(name: str) -> Artifact:
    """Load a compiled contract by its name; raises FileNotFoundError if the package has none of that name."""
    return msgspec.json.decode((FOLDER / f"{name}.json").read_bytes(), type=Artifact)


@cache
def known_errors() -> CustomErrors:
    """Mapping 4-byte selector -> custom error, of all compiled contracts of this package."""
    return custom_errors([abi_of(path.stem) for path in sorted(FOLDER.glob("*.json"))])


def abi_of(name: str) -> Any:
    """Load the ABI of a compiled contract as a list of entries: the compiler's JSON, decoded."""
    return msgspec.json.decode((FOLDER / f"{name}.json").read_bytes())["abi"]

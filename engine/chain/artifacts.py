"""Load the compiled contracts: bytecode to deploy, ABIs to decode errors with. `make contracts` compiles
them.

The sources are in `contracts/`; contracts in `contracts/dev/` are for devnets and tests.
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
    """A parameter in an ABI; `components` are the members of a tuple."""

    type: str
    name: str = ""
    components: tuple["Parameter", ...] = ()

    def canonical(self) -> str:
        """The type as written in a signature: a tuple as the list of its members' types."""
        if not self.type.startswith("tuple"):
            return self.type
        members = ",".join(member.canonical() for member in self.components)
        return f"({members}){self.type.removeprefix('tuple')}"


class Entry(msgspec.Struct, frozen=True):
    """An entry of an ABI: a function, an event, an error or the constructor."""

    type: str
    name: str = ""
    inputs: tuple[Parameter, ...] = ()

    def signature(self) -> str:
        """Name and canonical parameter types, such as `transfer(address,uint256)`."""
        return f"{self.name}({','.join(parameter.canonical() for parameter in self.inputs)})"


class Runtime(msgspec.Struct, frozen=True):
    """Offset and size of a contract's runtime code within its creation code, in bytes."""

    at: int
    size: int


class Artifact(msgspec.Struct, frozen=True):
    """A compiled contract.

    Attributes:
        source: the contract's source file.
        abi: the contract's interface.
        bytecode: the creation code as 0x and hex digits, without the constructor's arguments.
    """

    name: str
    source: str
    abi: tuple[Entry, ...]
    bytecode: str
    runtime: Runtime

    def init_code(self, arguments: bytes = b"") -> bytes:
        """Creation code followed by the constructor's arguments: input of a transaction or of a factory."""
        return parse_hex(self.bytecode, self.name) + arguments

    def code(self) -> bytes:
        """Runtime code that a chain stores, with zeros for the values of immutables."""
        return self.init_code()[self.runtime.at :][: self.runtime.size]

    def selectors(self) -> dict[str, bytes]:
        """Mapping signature -> 4-byte selector of each function."""
        signatures = [entry.signature() for entry in self.abi if entry.type == "function"]
        return {signature: selector(signature) for signature in signatures}


@cache
def artifact(name: str) -> Artifact:
    """Load the artifact of a contract by its name. FileNotFoundError for an unknown name, a caller's bug."""
    return msgspec.json.decode((FOLDER / f"{name}.json").read_bytes(), type=Artifact)


@cache
def known_errors() -> CustomErrors:
    """Mapping selector -> error, for the custom errors of all our contracts."""
    return custom_errors([abi_of(path.stem) for path in sorted(FOLDER.glob("*.json"))])


def abi_of(name: str) -> Any:
    """Load a contract's ABI for clients: the compiler's JSON, decoded."""
    return msgspec.json.decode((FOLDER / f"{name}.json").read_bytes())["abi"]

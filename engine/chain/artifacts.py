"""The compiled contracts: bytecode to deploy, interfaces to decode errors with. `make contracts` makes them.

The sources are beside them, in `contracts/`; those in `contracts/dev/` are for devnets and tests.
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
    """One argument as an interface has it; `components` are a tuple's members."""

    type: str
    name: str = ""
    components: tuple["Parameter", ...] = ()

    def canonical(self) -> str:
        """The type as it stands in a signature: tuples are spelled out."""
        if not self.type.startswith("tuple"):
            return self.type
        members = ",".join(member.canonical() for member in self.components)
        return f"({members}){self.type.removeprefix('tuple')}"


class Entry(msgspec.Struct, frozen=True):
    """One function, event, error or the constructor of an interface."""

    type: str
    name: str = ""
    inputs: tuple[Parameter, ...] = ()

    def signature(self) -> str:
        """Name and canonical types."""
        return f"{self.name}({','.join(parameter.canonical() for parameter in self.inputs)})"


class Runtime(msgspec.Struct, frozen=True):
    """Where the code of a contract stands in what creates it, in bytes."""

    at: int
    size: int


class Artifact(msgspec.Struct, frozen=True):
    """One compiled contract.

    Attributes:
        source: the file it is in.
        abi: its interface.
        bytecode: what creates it, as 0x and digits; the constructor's arguments follow it.
    """

    name: str
    source: str
    abi: tuple[Entry, ...]
    bytecode: str
    runtime: Runtime

    def init_code(self, arguments: bytes = b"") -> bytes:
        """What a transaction, or a factory, creates the contract with."""
        return parse_hex(self.bytecode, self.name) + arguments

    def code(self) -> bytes:
        """The code that a chain keeps of the contract, with zeros for the values of immutables."""
        return self.init_code()[self.runtime.at :][: self.runtime.size]

    def selectors(self) -> dict[str, bytes]:
        """Signature -> selector of each function."""
        signatures = [entry.signature() for entry in self.abi if entry.type == "function"]
        return {signature: selector(signature) for signature in signatures}


@cache
def artifact(name: str) -> Artifact:
    """A contract by its name. FileNotFoundError if there is none: a programmer's error."""
    return msgspec.json.decode((FOLDER / f"{name}.json").read_bytes(), type=Artifact)


@cache
def known_errors() -> CustomErrors:
    """Selector -> error, of all our contracts."""
    return custom_errors([abi_of(path.stem) for path in sorted(FOLDER.glob("*.json"))])


def abi_of(name: str) -> Any:
    """The interface as clients want it: JSON as the compiler wrote it."""
    return msgspec.json.decode((FOLDER / f"{name}.json").read_bytes())["abi"]

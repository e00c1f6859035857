// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

/// The signing domain of a contract. The separator is made at deployment, and anew where the chain's id has changed
/// since: a signature for one side of a fork is none for the other. Code that another contract runs as its own
/// (delegatecall) makes that contract's.
abstract contract Eip712 {
    bytes32 private constant DOMAIN_TYPE =
        keccak256("EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)");

    bytes32 private immutable nameHash;
    bytes32 private immutable versionHash;
    uint256 private immutable deployedChainId;
    address private immutable deployedAt;
    bytes32 private immutable deployedSeparator;

    constructor(string memory name, string memory version) {
        nameHash = keccak256(bytes(name));
        versionHash = keccak256(bytes(version));
        deployedChainId = block.chainid;
        deployedAt = address(this);
        deployedSeparator = makeSeparator();
    }

    /// The domain separator of EIP-712.
    /// @return the hash of the EIP712Domain struct: name, version, present chain id, this address.
    function DOMAIN_SEPARATOR() public view returns (bytes32) {
        bool isDeployed = block.chainid == deployedChainId && address(this) == deployedAt;
        return isDeployed ? deployedSeparator : makeSeparator();
    }

    function digestOf(bytes32 structHash) internal view returns (bytes32) {
        bytes32 separator = DOMAIN_SEPARATOR();
        bytes32 digest;
        assembly ("memory-safe") {
            let data := mload(0x40)
            mstore(data, hex"1901")
            mstore(add(data, 2), separator)
            mstore(add(data, 34), structHash)
            digest := keccak256(data, 66)
        }
        return digest;
    }

    function makeSeparator() private view returns (bytes32) {
        return keccak256(abi.encode(DOMAIN_TYPE, nameHash, versionHash, block.chainid, address(this)));
    }
}

// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

/// An owner who can hand over, in two steps, so that a wrong address cannot end up with it.
abstract contract Owned {
    error NotOwner();

    event OwnerProposed(address indexed owner);
    event OwnerChanged(address indexed owner);

    /// The account that decides what this contract leaves to its owner.
    address public owner;
    /// The account that may accept to become the owner; zero for none.
    address public proposedOwner;

    constructor(address owner_) {
        owner = owner_;
        emit OwnerChanged(owner_);
    }

    modifier onlyOwner() {
        if (msg.sender != owner) revert NotOwner();
        _;
    }

    /// First step of handing over. The owner stays until `proposed` accepts; another proposal replaces this one. By the
    /// owner; reverts with NotOwner.
    /// @param proposed who may accept; zero takes a proposal back.
    function proposeOwner(address proposed) external onlyOwner {
        proposedOwner = proposed;
        emit OwnerProposed(proposed);
    }

    /// Second step: the proposed owner, and nobody else, becomes the owner. Reverts with NotOwner.
    function acceptOwner() external {
        if (msg.sender != proposedOwner) revert NotOwner();
        owner = msg.sender;
        proposedOwner = address(0);
        emit OwnerChanged(msg.sender);
    }
}

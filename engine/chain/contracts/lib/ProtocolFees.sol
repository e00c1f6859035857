// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

/// The account that gets the protocol's share of surplus, and the fees of trades without a partner.
abstract contract ProtocolFees {
    event ProtocolChanged(address indexed protocol);

    /// The account that gets the protocol's share of surplus, and the fees of trades without a partner.
    address public protocol;

    function changeProtocol(address protocol_) internal {
        protocol = protocol_;
        emit ProtocolChanged(protocol_);
    }
}

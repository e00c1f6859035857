// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

/// The functions of an Across V3 pool that Bridges calls (across-protocol/contracts, V3SpokePoolInterface).
interface ISpokePool {
    function numberOfDeposits() external view returns (uint32);

    function depositV3(
        address depositor,
        address recipient,
        address inputToken,
        address outputToken,
        uint256 inputAmount,
        uint256 outputAmount,
        uint256 destinationChainId,
        address exclusiveRelayer,
        uint32 quoteTimestamp,
        uint32 fillDeadline,
        uint32 exclusivityParameter,
        bytes calldata message
    ) external payable;
}

/// The function of a CCTP V2 messenger that Bridges calls (circlefin/evm-cctp-contracts, TokenMessengerV2).
interface ITokenMessenger {
    function depositForBurn(
        uint256 amount,
        uint32 destinationDomain,
        bytes32 mintRecipient,
        address burnToken,
        bytes32 destinationCaller,
        uint256 maxFee,
        uint32 minFinalityThreshold
    ) external;
}

/// Reasons why an order is not bridged, in the words of Delta, its settlers and Bridges alike.
abstract contract BridgeErrors {
    error BridgeNotEnabled();
    error UnknownBridge(bytes4 protocolSelector);
    error InvalidBridge();
    error BelowBridgeFee(uint256 amount);
    error BridgeFailed(address bridge);
}

// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

/// The orders that owners sign for Delta, and their hashes as EIP-712 structs.
library DeltaOrders {
    struct Bridge {
        bytes4 protocolSelector;
        uint256 destinationChainId;
        address outputToken;
        int8 scalingFactor;
        bytes protocolData;
    }

    /// kind 0, SELL: srcAmount for at least destAmount. kind 1, BUY: at most srcAmount for destAmount.
    struct Order {
        address owner;
        address beneficiary;
        address srcToken;
        address destToken;
        uint256 srcAmount;
        uint256 destAmount;
        uint256 expectedAmount;
        uint256 deadline;
        uint8 kind;
        uint256 nonce;
        uint256 partnerAndFee;
        bytes permit;
        bytes metadata;
        Bridge bridge;
    }

    struct TWAPOrder {
        address owner;
        address beneficiary;
        address srcToken;
        address destToken;
        uint256 nonce;
        uint256 partnerAndFee;
        uint64 deadline;
        uint64 interval;
        uint32 numSlices;
        uint256 destAmountPerSlice;
        uint256 totalSrcAmount;
        bytes permit;
        bytes metadata;
        Bridge bridge;
    }

    struct TWAPBuyOrder {
        address owner;
        address beneficiary;
        address srcToken;
        address destToken;
        uint256 nonce;
        uint256 partnerAndFee;
        uint64 deadline;
        uint64 interval;
        uint32 numSlices;
        uint256 totalDestAmount;
        uint256 maxSrcAmount;
        bytes permit;
        bytes metadata;
        Bridge bridge;
    }

    string private constant BRIDGE =
        "Bridge(bytes4 protocolSelector,uint256 destinationChainId,address outputToken,int8 scalingFactor,bytes protocolData)";
    bytes32 private constant BRIDGE_TYPE = keccak256(bytes(BRIDGE));
    bytes32 private constant ORDER_TYPE = keccak256(
        abi.encodePacked(
            "Order(address owner,address beneficiary,address srcToken,address destToken,uint256 srcAmount,uint256 destAmount,uint256 expectedAmount,uint256 deadline,uint8 kind,uint256 nonce,uint256 partnerAndFee,bytes permit,bytes metadata,Bridge bridge)",
            BRIDGE
        )
    );
    bytes32 private constant TWAP_TYPE = keccak256(
        abi.encodePacked(
            "TWAPOrder(address owner,address beneficiary,address srcToken,address destToken,uint256 nonce,uint256 partnerAndFee,uint64 deadline,uint64 interval,uint32 numSlices,uint256 destAmountPerSlice,uint256 totalSrcAmount,bytes permit,bytes metadata,Bridge bridge)",
            BRIDGE
        )
    );
    bytes32 private constant TWAP_BUY_TYPE = keccak256(
        abi.encodePacked(
            "TWAPBuyOrder(address owner,address beneficiary,address srcToken,address destToken,uint256 nonce,uint256 partnerAndFee,uint64 deadline,uint64 interval,uint32 numSlices,uint256 totalDestAmount,uint256 maxSrcAmount,bytes permit,bytes metadata,Bridge bridge)",
            BRIDGE
        )
    );

    function isSameChain(Bridge calldata bridge) internal pure returns (bool) {
        return bridge.protocolSelector == 0 && bridge.destinationChainId == 0 && bridge.outputToken == address(0)
            && bridge.scalingFactor == 0 && bridge.protocolData.length == 0;
    }

    function structHash(Order calldata order) internal pure returns (bytes32) {
        return keccak256(
            bytes.concat(
                abi.encode(
                    ORDER_TYPE,
                    order.owner,
                    order.beneficiary,
                    order.srcToken,
                    order.destToken,
                    order.srcAmount,
                    order.destAmount,
                    order.expectedAmount
                ),
                abi.encode(
                    order.deadline,
                    order.kind,
                    order.nonce,
                    order.partnerAndFee,
                    keccak256(order.permit),
                    keccak256(order.metadata),
                    bridgeHash(order.bridge)
                )
            )
        );
    }

    function structHash(TWAPOrder calldata order) internal pure returns (bytes32) {
        return keccak256(
            bytes.concat(
                abi.encode(
                    TWAP_TYPE,
                    order.owner,
                    order.beneficiary,
                    order.srcToken,
                    order.destToken,
                    order.nonce,
                    order.partnerAndFee,
                    order.deadline
                ),
                abi.encode(
                    order.interval,
                    order.numSlices,
                    order.destAmountPerSlice,
                    order.totalSrcAmount,
                    keccak256(order.permit),
                    keccak256(order.metadata),
                    bridgeHash(order.bridge)
                )
            )
        );
    }

    function structHash(TWAPBuyOrder calldata order) internal pure returns (bytes32) {
        return keccak256(
            bytes.concat(
                abi.encode(
                    TWAP_BUY_TYPE,
                    order.owner,
                    order.beneficiary,
                    order.srcToken,
                    order.destToken,
                    order.nonce,
                    order.partnerAndFee,
                    order.deadline
                ),
                abi.encode(
                    order.interval,
                    order.numSlices,
                    order.totalDestAmount,
                    order.maxSrcAmount,
                    keccak256(order.permit),
                    keccak256(order.metadata),
                    bridgeHash(order.bridge)
                )
            )
        );
    }

    function bridgeHash(Bridge calldata bridge) private pure returns (bytes32) {
        return keccak256(
            abi.encode(
                BRIDGE_TYPE,
                bridge.protocolSelector,
                bridge.destinationChainId,
                bridge.outputToken,
                bridge.scalingFactor,
                keccak256(bridge.protocolData)
            )
        );
    }
}

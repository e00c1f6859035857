// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

/// The order of the RFQ contract, and the calls of it that other contracts make.
interface IRfq {
    struct Order {
        uint256 nonceAndMeta;
        uint128 expiry;
        address makerAsset;
        address takerAsset;
        address maker;
        address taker;
        uint256 makerAmount;
        uint256 takerAmount;
    }

    struct OrderInfo {
        Order order;
        bytes signature;
        uint256 takerTokenFillAmount;
        bytes permitTakerAsset;
        bytes permitMakerAsset;
    }

    function tryBatchFillOrderTakerAmount(OrderInfo[] calldata orders, uint256 takerFillAmount, address target)
        external;
    function tryBatchFillOrderMakerAmount(OrderInfo[] calldata orders, uint256 makerFillAmount, address target)
        external;
}

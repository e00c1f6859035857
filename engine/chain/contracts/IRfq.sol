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

    /// Fill orders in turn until `takerFillAmount` is spent, at most `takerTokenFillAmount` of each. An order that
    /// cannot be filled is passed over. Reverts with "Couldn't swap the requested fill amount" where they do not
    /// suffice, or with Reentered.
    /// @param orders each with its signature, amount and permits.
    /// @param takerFillAmount raw units of the taker's asset.
    /// @param target receives the makers' assets.
    function tryBatchFillOrderTakerAmount(OrderInfo[] calldata orders, uint256 takerFillAmount, address target)
        external;

    /// Fill orders in turn until `makerFillAmount` is received, at most `takerTokenFillAmount` of each. An order that
    /// cannot be filled is passed over. Reverts as tryBatchFillOrderTakerAmount.
    /// @param orders each with its signature, amount and permits.
    /// @param makerFillAmount raw units of the maker's asset.
    /// @param target receives the makers' assets.
    function tryBatchFillOrderMakerAmount(OrderInfo[] calldata orders, uint256 makerFillAmount, address target)
        external;
}

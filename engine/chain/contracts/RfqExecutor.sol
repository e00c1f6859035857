// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

import {IRfq} from "./IRfq.sol";
import {NonReentrant} from "./lib/NonReentrant.sol";
import {Owned} from "./lib/Owned.sol";
import {Tokens} from "./lib/Tokens.sol";

/// The taker of firm quotes, for the contracts that may call it (Delta and the Router) and nobody else.
///
/// A caller sends it tokens, has it fill quotes with them, and collects what is left, all in one transaction: what
/// stays here between transactions is nobody's.
///
/// Who is trusted with what: a caller, with the tokens that it sends here. The owner decides which contracts are callers,
/// and nothing else. No user gives this contract an allowance, and it calls nothing but the RFQ contract and tokens. A
/// firm quote that names this contract as its taker is only filled for the user that it was made for.
contract RfqExecutor is Owned, NonReentrant {
    error NotCaller();
    error NotTheUsers(uint256 nonceAndMeta);
    error MixedPair();
    error NoOrders();
    error StepFailed(uint256 step, bytes reason);
    error TransferFailed(address token);

    event CallerChanged(address indexed caller, bool isCaller);

    /// The RFQ contract, whose orders this contract fills.
    IRfq public immutable rfq;
    /// Whether a contract may have quotes filled.
    mapping(address caller => bool) public isCaller;

    constructor(IRfq rfq_, address owner_) Owned(owner_) {
        rfq = rfq_;
    }

    modifier onlyCaller() {
        if (!isCaller[msg.sender]) revert NotCaller();
        _;
    }

    /// Let a contract have quotes filled, or no longer. By the owner; reverts with NotOwner.
    /// @param caller the contract.
    /// @param allowed whether it may.
    function setCaller(address caller, bool allowed) external onlyOwner {
        isCaller[caller] = allowed;
        emit CallerChanged(caller, allowed);
    }

    /// Fill orders of one pair in turn, on behalf of `user`. By a caller; reverts with NotCaller, Reentered, NoOrders,
    /// MixedPair, NotTheUsers, TransferFailed, or StepFailed with the RFQ contract's words.
    /// @param user the user that quotes for this contract have to be made for.
    /// @param step the number of the fill, for the error.
    /// @param data abi.encode(OrderInfo[], takerFillAmount, makerFillAmount, receiver): one amount is zero, or both, to
    /// give all that is here; a receiver of zero is the caller.
    function fill(address user, uint256 step, bytes calldata data) external onlyCaller nonReentrant {
        (IRfq.OrderInfo[] memory orders, uint256 takerAmount, uint256 makerAmount, address receiver) =
            abi.decode(data, (IRfq.OrderInfo[], uint256, uint256, address));
        if (receiver == address(0)) receiver = msg.sender;
        address given = checked(user, orders);
        uint256 here = Tokens.balance(given, address(this));
        if (!Tokens.allow(given, address(rfq), here)) revert TransferFailed(given);
        if (makerAmount > 0) {
            try rfq.tryBatchFillOrderMakerAmount(orders, makerAmount, receiver) {}
            catch (bytes memory reason) {
                revert StepFailed(step, reason);
            }
        } else {
            try rfq.tryBatchFillOrderTakerAmount(orders, takerAmount > 0 ? takerAmount : here, receiver) {}
            catch (bytes memory reason) {
                revert StepFailed(step, reason);
            }
        }
    }

    /// Send all there is of a token. By a caller; reverts with NotCaller, Reentered or TransferFailed.
    /// @param token the address of the token.
    /// @param to the account that gets the tokens.
    /// @return amount raw units that were sent.
    function collect(address token, address to) external onlyCaller nonReentrant returns (uint256 amount) {
        amount = Tokens.balance(token, address(this));
        if (amount > 0 && !Tokens.send(token, to, amount)) revert TransferFailed(token);
    }

    /// The token that orders of one pair take, all of them the user's or anybody's.
    function checked(address user, IRfq.OrderInfo[] memory orders) private view returns (address given) {
        if (orders.length == 0) revert NoOrders();
        given = orders[0].order.takerAsset;
        address got = orders[0].order.makerAsset;
        for (uint256 i = 0; i < orders.length; i++) {
            IRfq.Order memory order = orders[i].order;
            if (order.makerAsset != got || order.takerAsset != given) revert MixedPair();
            if (order.taker == address(this) && address(uint160(order.nonceAndMeta)) != user) {
                revert NotTheUsers(order.nonceAndMeta);
            }
        }
    }
}

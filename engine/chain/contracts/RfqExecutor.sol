// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

import {IRfq} from "./IRfq.sol";
import {NonReentrant} from "./lib/NonReentrant.sol";
import {Owned} from "./lib/Owned.sol";
import {Tokens} from "./lib/Tokens.sol";

/// The taker of firm quotes, for the contracts that may call it (Delta and the Router) and nobody else.
///
/// A caller sends it tokens, has it take steps, and collects what they brought, all in one transaction: what stays
/// here between transactions is nobody's. No user gives it an allowance.
///
/// A step is a batch of RFQ fills, which is checked, or an agent's own call, whose target and function must not be
/// denied. A firm quote that names this contract as its taker is only filled for the user that it was made for.
contract RfqExecutor is Owned, NonReentrant {
    error NotCaller();
    error TargetDenied(address target);
    error FunctionDenied(bytes4 selector);
    error TooMuchGas(uint256 gas);
    error NotTheUsers(uint256 nonceAndMeta);
    error MixedPair();
    error NoOrders();
    error StepFailed(uint256 step, bytes reason);
    error TransferFailed(address token);

    event CallerChanged(address indexed caller, bool isCaller);
    event DenialChanged(address indexed target, bool isDenied);

    /// `target` is the RFQ contract: `data` is abi.encode(OrderInfo[], takerFillAmount, makerFillAmount), of which
    /// one amount is zero, or both, to give all that is here; `gas` is not looked at. Otherwise a call as it stands.
    struct Step {
        address target;
        uint256 gas;
        bytes data;
    }

    /// Most gas of one call of an agent's.
    uint256 public constant STEP_GAS_MAX = 5_000_000;
    uint256 private constant REASON_BYTES_MAX = 256;
    /// The registry of ERC-1820, at the same address on every chain: there an account names who is called when tokens
    /// come to it or leave it. An agent could name itself for this contract, for good.
    address private constant HOOK_REGISTRY = 0x1820a4B7618BdE71Dce8cdc73aAB6C95905faD24;

    IRfq public immutable rfq;
    mapping(address caller => bool) public isCaller;
    mapping(address target => bool) public isDenied;

    constructor(IRfq rfq_, address permit2, address owner_) Owned(owner_) {
        rfq = rfq_;
        address[3] memory denied = [permit2, address(this), HOOK_REGISTRY];
        for (uint256 i = 0; i < denied.length; i++) deny(denied[i], true);
    }

    /// Whoever may call is no target either.
    function setCaller(address caller, bool allowed) external onlyOwner {
        isCaller[caller] = allowed;
        emit CallerChanged(caller, allowed);
        if (allowed) deny(caller, true);
    }

    function setDenied(address target, bool denied) external onlyOwner {
        deny(target, denied);
    }

    /// Take the steps in turn; one that fails undoes all of them.
    function execute(address user, Step[] calldata steps) external nonReentrant {
        if (!isCaller[msg.sender]) revert NotCaller();
        for (uint256 i = 0; i < steps.length; i++) {
            if (steps[i].target == address(rfq)) {
                fill(user, i, steps[i].data);
            } else {
                call(i, steps[i]);
            }
        }
    }

    /// Send all there is of a token. Returns how much that was.
    function collect(address token, address to) external nonReentrant returns (uint256 amount) {
        if (!isCaller[msg.sender]) revert NotCaller();
        amount = Tokens.balance(token, address(this));
        if (amount > 0 && !Tokens.send(token, to, amount)) revert TransferFailed(token);
    }

    function fill(address user, uint256 step, bytes calldata data) private {
        (IRfq.OrderInfo[] memory orders, uint256 takerAmount, uint256 makerAmount) =
            abi.decode(data, (IRfq.OrderInfo[], uint256, uint256));
        if (orders.length == 0) revert NoOrders();
        IRfq.Order memory first = orders[0].order;
        for (uint256 i = 0; i < orders.length; i++) {
            IRfq.Order memory order = orders[i].order;
            if (order.makerAsset != first.makerAsset || order.takerAsset != first.takerAsset) revert MixedPair();
            if (order.taker == address(this) && address(uint160(order.nonceAndMeta)) != user) {
                revert NotTheUsers(order.nonceAndMeta);
            }
        }
        uint256 here = Tokens.balance(first.takerAsset, address(this));
        if (!Tokens.allow(first.takerAsset, address(rfq), here)) revert TransferFailed(first.takerAsset);
        if (makerAmount > 0) {
            try rfq.tryBatchFillOrderMakerAmount(orders, makerAmount, address(this)) {}
            catch (bytes memory reason) {
                revert StepFailed(step, reason);
            }
        } else {
            try rfq.tryBatchFillOrderTakerAmount(orders, takerAmount > 0 ? takerAmount : here, address(this)) {}
            catch (bytes memory reason) {
                revert StepFailed(step, reason);
            }
        }
    }

    function call(uint256 number, Step calldata step) private {
        if (isDenied[step.target]) revert TargetDenied(step.target);
        if (step.gas > STEP_GAS_MAX) revert TooMuchGas(step.gas);
        if (step.data.length >= 4 && isDeniedFunction(bytes4(step.data[:4]))) {
            revert FunctionDenied(bytes4(step.data[:4]));
        }
        bytes memory data = step.data;
        address target = step.target;
        uint256 gasMax = step.gas;
        bytes memory reason = new bytes(REASON_BYTES_MAX);
        bool done;
        assembly ("memory-safe") {
            done := call(gasMax, target, 0, add(data, 32), mload(data), 0, 0)
            let size := returndatasize()
            if gt(size, REASON_BYTES_MAX) { size := REASON_BYTES_MAX }
            returndatacopy(add(reason, 32), 0, size)
            mstore(reason, size)
        }
        if (!done) revert StepFailed(number, reason);
    }

    /// What would leave something behind for others to take, or take what others have allowed by mistake.
    function isDeniedFunction(bytes4 selector) private pure returns (bool) {
        return selector == bytes4(keccak256("approve(address,uint256)"))
            || selector == bytes4(keccak256("increaseAllowance(address,uint256)"))
            || selector == bytes4(keccak256("increaseApproval(address,uint256)"))
            || selector == bytes4(keccak256("transferFrom(address,address,uint256)"))
            || selector == bytes4(keccak256("permit(address,address,uint256,uint256,uint8,bytes32,bytes32)"))
            || selector == bytes4(keccak256("permit(address,address,uint256,uint256,bool,uint8,bytes32,bytes32)"))
            || selector == bytes4(keccak256("permit(address,address,uint256,uint256,bytes)"))
            || selector == bytes4(keccak256("setApprovalForAll(address,bool)"))
            || selector == bytes4(keccak256("authorizeOperator(address)"))
            || selector == bytes4(keccak256("approveAndCall(address,uint256)"))
            || selector == bytes4(keccak256("approveAndCall(address,uint256,bytes)"))
            || selector == bytes4(keccak256("cancelOrder(bytes32)"))
            || selector == bytes4(keccak256("cancelOrders(bytes32[])"));
    }

    function deny(address target, bool denied) private {
        isDenied[target] = denied;
        emit DenialChanged(target, denied);
    }
}

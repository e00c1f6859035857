// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

import {Bridges} from "./Bridges.sol";
import {ExternalSettler} from "./ExternalSettler.sol";
import {FeeVault} from "./FeeVault.sol";
import {ProductiveSettler} from "./ProductiveSettler.sol";
import {RfqExecutor} from "./RfqExecutor.sol";
import {SwapSettler} from "./SwapSettler.sol";
import {TwapSettler} from "./TwapSettler.sol";
import {DeltaOrders} from "./lib/DeltaOrders.sol";
import {DeltaState} from "./lib/DeltaState.sol";
import {Eip712} from "./lib/Eip712.sol";
import {Guardrails} from "./lib/Guardrails.sol";
import {Math} from "./lib/Math.sol";
import {Owned} from "./lib/Owned.sol";
import {Settling} from "./lib/Settling.sol";
import {Signatures} from "./lib/Signatures.sol";
import {IWETH, Tokens} from "./lib/Tokens.sol";

/// Settles intents: takes what an owner gives, has it traded as an authorised relayer says, and pays the owner at least
/// what was signed, or nothing happens at all. This is the contract that owners allow to take their tokens.
///
/// Who is trusted with what:
/// - A relayer decides when, how and how much of an order is settled, never on what terms: price, pro rata for parts,
///   slices and their times, deadline, nonce, fee and beneficiary are the owner's signature's.
/// - This contract's owner names relayers, pauser, caps and the receiver of the protocol's fees, and pauses. It
///   cannot move anybody's tokens, change an order's terms, or change code.
/// - The settlers, one for each kind of order, are fixed at construction. Their code runs as this contract's own
///   (delegatecall), with its storage and its allowances.
/// - Agents and makers are trusted with nothing: what they are to deliver is measured here.
///
/// Native tokens: an owner who gives them deposits them here beforehand; trades are in the wrapped form, and who is to
/// receive native tokens gets them unwrapped. Fees stay wrapped.
contract Delta is DeltaState, Guardrails {
    using DeltaOrders for *;

    error NotTheOwners(address owner);
    error NotCancelled(bytes32 orderHash);
    error InvalidSettler(address settler);

    /// The code that settles each kind of order.
    struct Settlers {
        SwapSettler swap;
        TwapSettler twap;
        ProductiveSettler productive;
        ExternalSettler handled;
    }

    /// Orders to cancel: the ones among them that an owner's cancellation names.
    struct Cancelled {
        DeltaOrders.Order[] orders;
        DeltaOrders.TWAPOrder[] sales;
        DeltaOrders.TWAPBuyOrder[] purchases;
        DeltaOrders.ProductiveOrder[] productive;
        DeltaOrders.ExternalOrder[] handled;
    }

    event RelayerChanged(address indexed relayer, bool isRelayer);
    event OrderPreSigned(bytes32 indexed orderHash, address indexed owner, bool isSigned);

    /// The taker of firm quotes.
    RfqExecutor public immutable executor;
    /// The contract that keeps fees and shares of surplus.
    FeeVault public immutable feeVault;
    /// The wrapped native token.
    IWETH public immutable weth;
    /// The Permit2 contract.
    address public immutable permit2;
    /// The contract that hands to bridges what goes to other chains.
    Bridges public immutable bridges;
    /// The code that settles swap and limit orders.
    SwapSettler public immutable swapSettler;
    /// The code that settles slices of scheduled orders.
    TwapSettler public immutable twapSettler;
    /// The code that settles sales of what rests in vaults.
    ProductiveSettler public immutable productiveSettler;
    /// The code that settles orders that handlers trade.
    ExternalSettler public immutable externalSettler;

    /// Reverts with InvalidSettler where a settler was made with another name, version or places.
    /// @param name the name of the signing domain.
    /// @param version the version of the signing domain.
    /// @param places the contracts that this one has in common with its settlers.
    /// @param protocol_ the first receiver of the protocol's fees.
    /// @param owner_ the first owner.
    /// @param settlers the code that settles each kind of order.
    constructor(
        string memory name,
        string memory version,
        Settling.Places memory places,
        address protocol_,
        address owner_,
        Settlers memory settlers
    ) Owned(owner_) Eip712(name, version) {
        executor = places.executor;
        feeVault = places.feeVault;
        weth = places.weth;
        permit2 = places.permit2;
        bridges = places.bridges;
        bytes32 terms = keccak256(abi.encode(name, version, places));
        check(settlers.swap, terms);
        check(settlers.twap, terms);
        check(settlers.productive, terms);
        check(settlers.handled, terms);
        swapSettler = settlers.swap;
        twapSettler = settlers.twap;
        productiveSettler = settlers.productive;
        externalSettler = settlers.handled;
        changeProtocol(protocol_);
    }

    /// Only what the wrapped token gives back when it is unwrapped; reverts with NativeTransferFailed for other senders.
    receive() external payable {
        if (msg.sender != address(weth)) revert NativeTransferFailed(address(this));
    }

    // --- For this contract's owner ---

    /// Let an account settle orders, or no longer. By the owner; reverts with NotOwner.
    /// @param relayer the account.
    /// @param allowed whether it may.
    function setRelayer(address relayer, bool allowed) external onlyOwner {
        isRelayer[relayer] = allowed;
        emit RelayerChanged(relayer, allowed);
    }

    /// Name the receiver of the protocol's share of surplus, and of fees without a partner, from now on. By the owner;
    /// reverts with NotOwner.
    /// @param protocol_ the account that gets them.
    function setProtocol(address protocol_) external onlyOwner {
        changeProtocol(protocol_);
    }

    // --- For relayers ---

    /// Settle `amount` of an order: of its source where it sells, of its destination where it buys.
    ///
    /// Every settlement returns `spent` and `received` as OrderSettled tells them, and the gas: an eth_call of the real
    /// one says what it is worth. What goes to another chain is received when its bridge has it. It reverts with
    /// NotRelayer, Reentered, Paused, CapExceeded, InvalidKind, InvalidBridge, UnknownBridge, BridgeNotEnabled,
    /// BelowBridgeFee, BridgeFailed, InvalidAmount, Overfilled, OrderExpired, InvalidSignature, NonceUsed, SameToken, InvalidFee,
    /// AboveMaximum, BelowMinimum, PromiseBroken, PullFailed, InsufficientDeposit, TransferFailed,
    /// NativeTransferFailed, or an error of a step's.
    /// @param order as its owner signed it.
    /// @param signature of the owner; empty where the owner has pre-signed the order.
    /// @param amount raw units: of the source of a sale, of the destination of a purchase.
    /// @param execution how it is traded, as the winning bid says.
    /// @return spent raw units of the source that the owner gave, fees and shares included.
    /// @return received raw units of the destination that the beneficiary got.
    /// @return gasUsed units of gas between the settlement's first line and its last.
    function settle(
        DeltaOrders.Order calldata order,
        bytes calldata signature,
        uint256 amount,
        Settling.Execution calldata execution
    ) external returns (uint256 spent, uint256 received, uint256 gasUsed) {
        run(address(swapSettler));
    }

    /// Settle orders against each other, 2 to 8, all of them or none: each gives its source, what is `traded` of that
    /// goes as the executions say, in turn, and each is `paid` out of what is there then. A purchase costs what it
    /// gives. The rest of a token is received by the first order that wants it, else goes back to the first that gives
    /// it. Reverts as `settle`, and with InvalidCrossings or
    /// Overdrawn.
    /// @param crossings what `settle` takes of each order, and what each is paid.
    /// @return spent raw units of its source that each order's owner gave, in the order of the crossings.
    /// @return received raw units of its destination that each order's beneficiary got, in the same order.
    /// @return gasUsed units of gas between the settlement's first line and its last.
    function settleCrossed(SwapSettler.Crossing[] calldata crossings)
        external
        returns (uint256[] memory spent, uint256[] memory received, uint256 gasUsed)
    {
        run(address(swapSettler));
    }

    /// Settle the next slice of a scheduled sale. The last one gives the remainder. Reverts as `settle`, and with
    /// InvalidSlices or TooEarly.
    /// @param order as its owner signed it.
    /// @param signature of the owner; empty where the owner has pre-signed the order.
    /// @param execution how the slice is traded, as the winning bid says.
    /// @return spent raw units of the source that the owner gave, fees and shares included.
    /// @return received raw units of the destination that the beneficiary got.
    /// @return gasUsed units of gas between the settlement's first line and its last.
    function settleTwap(
        DeltaOrders.TWAPOrder calldata order,
        bytes calldata signature,
        Settling.Execution calldata execution
    ) external returns (uint256 spent, uint256 received, uint256 gasUsed) {
        run(address(twapSettler));
    }

    /// Settle the next slice of a scheduled purchase. The last one buys the remainder; each may spend its part of
    /// maxSrcAmount, and what one leaves is not for the next. Reverts as `settleTwap`.
    /// @param order as its owner signed it.
    /// @param signature of the owner; empty where the owner has pre-signed the order.
    /// @param execution how the slice is traded, as the winning bid says.
    /// @return spent raw units of the source that the owner gave, fees and shares included.
    /// @return received raw units of the destination that the beneficiary got.
    /// @return gasUsed units of gas between the settlement's first line and its last.
    function settleTwapBuy(
        DeltaOrders.TWAPBuyOrder calldata order,
        bytes calldata signature,
        Settling.Execution calldata execution
    ) external returns (uint256 spent, uint256 received, uint256 gasUsed) {
        run(address(twapSettler));
    }

    /// Settle `amount` of a sale of what rests in a vault: of its shares where the order sells shares, else of its
    /// source. The vault gives the source for the owner's shares, which this contract takes. Reverts as `settle`, and
    /// with RedemptionFailed where the vault gives less than is sold, or of shares less than the execution's srcGiven, or
    /// with TooManyShares.
    /// @param order as its owner signed it.
    /// @param signature of the owner; empty where the owner has pre-signed the order.
    /// @param amount raw units: of the shares where the order sells shares, else of the source.
    /// @param execution how it is traded, as the winning bid says.
    /// @return spent raw units of the source that was sold, fees and shares included.
    /// @return received raw units of the destination that the beneficiary got.
    /// @return gasUsed units of gas between the settlement's first line and its last.
    function settleProductive(
        DeltaOrders.ProductiveOrder calldata order,
        bytes calldata signature,
        uint256 amount,
        Settling.Execution calldata execution
    ) external returns (uint256 spent, uint256 received, uint256 gasUsed) {
        run(address(productiveSettler));
    }

    /// Settle `amount` of an order that its handler trades: of its source where it sells, of its destination where it
    /// buys. The source goes to the handler, which is called and delivers here. Reverts as `settle`, with InvalidSteps,
    /// or with StepFailed of step 0 where the handler fails.
    /// @param order as its owner signed it.
    /// @param signature of the owner; empty where the owner has pre-signed the order.
    /// @param amount raw units: of the source of a sale, of the destination of a purchase.
    /// @param execution the promise, and of a purchase what is given; without steps.
    /// @return spent raw units of the source that the owner gave, fees and shares included.
    /// @return received raw units of the destination that the owner got.
    /// @return gasUsed units of gas between the settlement's first line and its last.
    function settleExternal(
        DeltaOrders.ExternalOrder calldata order,
        bytes calldata signature,
        uint256 amount,
        Settling.Execution calldata execution
    ) external returns (uint256 spent, uint256 received, uint256 gasUsed) {
        run(address(externalSettler));
    }

    // --- For owners of orders ---

    /// Sign an order of the caller's by this call, or take that back: an empty signature will do then.
    /// @param orderHash the digest that a signature would be of.
    /// @param isSigned true to sign, false to take that back.
    function setPreSignature(bytes32 orderHash, bool isSigned) external {
        preSign(orderHash, isSigned);
    }

    /// Deposit native tokens for orders of the caller's that give them, and sign one. Not within a settlement, which on
    /// chains where the native token is an ERC-20 as well could count them as received: reverts with Reentered there.
    /// @param orderHash the digest that a signature would be of.
    function depositNativeAndPreSign(bytes32 orderHash) external payable nonReentrant {
        credit(msg.sender, msg.value);
        preSign(orderHash, true);
    }

    /// Take back native tokens of the caller's deposit. Reverts with InsufficientDeposit, NativeTransferFailed or
    /// Reentered.
    /// @param amount in wei.
    function withdrawNative(uint256 amount) external nonReentrant {
        payOut(msg.sender, amount, msg.sender);
    }

    /// As withdrawNative, to another account: for callers that cannot receive native tokens. Reverts as withdrawNative.
    /// @param amount in wei.
    /// @param to the account that gets the native tokens.
    function withdrawTo(uint256 amount, address to) external nonReentrant {
        payOut(msg.sender, amount, to);
    }

    /// Invalidate nonces of the caller's. Those that are used up or invalidated stay as they are.
    /// @param nonces the numbers that the caller signs, or has signed, in orders.
    function invalidateNonces(uint256[] calldata nonces) external {
        for (uint256 i = 0; i < nonces.length; i++) invalidate(msg.sender, nonces[i]);
    }

    /// Invalidate the nonce of an order of the caller's, and take back the native tokens that it would still have given,
    /// as far as the caller's deposit has them. Reverts with NotTheOwners, NonceUsed, NativeTransferFailed or
    /// Reentered.
    /// @param order as its owner signed it.
    /// @param isFillable is other implementations', and without a meaning here.
    function cancelAndWithdraw(DeltaOrders.Order calldata order, bool isFillable) external nonReentrant {
        uint256 whole = order.kind == 0 ? order.srcAmount : order.destAmount;
        uint256 done = progressOf(order.owner, order.nonce, digestOf(order.structHash()));
        abandon(order.owner, order.nonce, order.srcToken, order.srcAmount, done, whole);
    }

    /// As cancelAndWithdraw, of a scheduled sale. Reverts as cancelAndWithdraw.
    /// @param order as its owner signed it.
    function cancelTWAPAndWithdraw(DeltaOrders.TWAPOrder calldata order) external nonReentrant {
        abandonSchedule(order, false);
    }

    /// As cancelAndWithdraw, of a scheduled purchase. Reverts as cancelAndWithdraw.
    /// @param order as its owner signed it.
    function cancelTWAPBuyAndWithdraw(DeltaOrders.TWAPBuyOrder calldata order) external nonReentrant {
        abandonSchedule(order.asSale(), true);
    }

    /// Show the cancellation that an owner has signed: from then on no relayer can settle those orders. By anybody;
    /// reverts with InvalidSignature, NotTheOwners or NotCancelled.
    /// @param account the owner.
    /// @param orderIds the ids that are signed, as they are signed.
    /// @param signature of the owner, of all `orderIds`.
    /// @param cancelled the orders that have some of these ids, by kind.
    function showCancellation(
        address account,
        string[] calldata orderIds,
        bytes calldata signature,
        Cancelled calldata cancelled
    ) external {
        bytes32 digest = digestOf(DeltaOrders.cancellationsHash(orderIds));
        if (!Signatures.isBy(account, digest, signature)) revert InvalidSignature();
        for (uint256 i = 0; i < cancelled.orders.length; i++) {
            DeltaOrders.Order calldata order = cancelled.orders[i];
            cancel(account, orderIds, order.owner, order.nonce, order.structHash());
        }
        for (uint256 i = 0; i < cancelled.sales.length; i++) {
            DeltaOrders.TWAPOrder calldata order = cancelled.sales[i];
            cancel(account, orderIds, order.owner, order.nonce, order.structHash(false));
        }
        for (uint256 i = 0; i < cancelled.purchases.length; i++) {
            DeltaOrders.TWAPOrder calldata order = cancelled.purchases[i].asSale();
            cancel(account, orderIds, order.owner, order.nonce, order.structHash(true));
        }
        for (uint256 i = 0; i < cancelled.productive.length; i++) {
            DeltaOrders.ProductiveOrder calldata order = cancelled.productive[i];
            cancel(account, orderIds, order.owner, order.nonce, order.structHash());
        }
        for (uint256 i = 0; i < cancelled.handled.length; i++) {
            DeltaOrders.ExternalOrder calldata order = cancelled.handled[i];
            cancel(account, orderIds, order.owner, order.nonce, order.structHash());
        }
    }

    // --- For agents ---

    /// Create the caller of an agent's, which the agent's first settlement does otherwise. By anybody.
    /// @param agent the keccak-256 of the name that the venue gives it.
    /// @return caller the address of the agent's AgentCaller.
    function createAgentCaller(bytes32 agent) external returns (address caller) {
        run(address(swapSettler));
    }

    function check(Settling settler, bytes32 terms) private view {
        if (settler.terms() != terms) revert InvalidSettler(address(settler));
    }

    /// Run a settler's code for this call, as this contract's own.
    function run(address settler) private {
        assembly ("memory-safe") {
            let data := mload(0x40)
            calldatacopy(data, 0, calldatasize())
            let done := delegatecall(gas(), settler, data, calldatasize(), 0, 0)
            returndatacopy(data, 0, returndatasize())
            if iszero(done) { revert(data, returndatasize()) }
            return(data, returndatasize())
        }
    }

    function preSign(bytes32 orderHash, bool isSigned) private {
        isPreSigned[msg.sender][orderHash] = isSigned;
        emit OrderPreSigned(orderHash, msg.sender, isSigned);
    }

    function cancel(
        address account,
        string[] calldata orderIds,
        address orderOwner,
        uint256 nonce,
        bytes32 structHash
    ) private {
        if (orderOwner != account) revert NotTheOwners(orderOwner);
        bytes32 orderHash = digestOf(structHash);
        if (!DeltaOrders.isAmong(orderHash, orderIds)) revert NotCancelled(orderHash);
        invalidate(account, nonce);
    }

    function abandonSchedule(DeltaOrders.TWAPOrder calldata order, bool isPurchase) private {
        uint256 done = uint64(progressOf(order.owner, order.nonce, digestOf(order.structHash(isPurchase))));
        abandon(order.owner, order.nonce, order.srcToken, order.totalSrcAmount, done, order.numSlices);
    }

    /// Give up an order that gives `srcAmount`, of which `done` of `whole` is settled.
    function abandon(
        address account,
        uint256 nonce,
        address srcToken,
        uint256 srcAmount,
        uint256 done,
        uint256 whole
    ) private {
        if (msg.sender != account) revert NotTheOwners(account);
        invalidate(account, nonce);
        if (srcToken != Tokens.NATIVE || whole == 0) return;
        uint256 amount = Math.least(srcAmount - srcAmount * done / whole, deposits[account]);
        if (amount > 0) payOut(account, amount, account);
    }
}

// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

import {AgentCaller} from "./AgentCaller.sol";
import {FeeVault} from "./FeeVault.sol";
import {RfqExecutor} from "./RfqExecutor.sol";
import {DeltaOrders} from "./lib/DeltaOrders.sol";
import {Deposits} from "./lib/Deposits.sol";
import {Eip712} from "./lib/Eip712.sol";
import {Guardrails} from "./lib/Guardrails.sol";
import {Nonces} from "./lib/Nonces.sol";
import {Owned} from "./lib/Owned.sol";
import {Permits} from "./lib/Permits.sol";
import {Pools} from "./lib/Pools.sol";
import {Proceeds} from "./lib/Proceeds.sol";
import {Signatures} from "./lib/Signatures.sol";
import {IWETH, Tokens} from "./lib/Tokens.sol";

/// Settles intents: takes what an owner gives, has it traded as an authorised relayer says, and pays the owner at least
/// what was signed, or nothing happens at all.
///
/// Every kind of order becomes a Part, one settlement of it, and takes the same way from there. A relayer decides
/// when, how and how much of an order is settled, never on what terms: price, pro rata for parts, slices and their
/// times, deadline, nonce, fee and beneficiary are the owner's signature's.
///
/// Native tokens: an owner who gives them deposits them for the order's hash beforehand; trades are in the wrapped
/// form, and whoever is to receive native tokens gets them unwrapped. Fees stay wrapped.
contract Delta is Guardrails, Eip712, Nonces, Deposits {
    using DeltaOrders for *;
    using Pools for Pools.Pool[];

    error NotRelayer();
    error OrderExpired();
    error InvalidKind(uint8 kind);
    error InvalidSlices();
    error InvalidAmount();
    error SameToken();
    error BridgeNotEnabled();
    error InvalidSignature();
    error TooEarly(uint256 notBefore);
    error Overfilled(uint256 left);
    error BelowMinimum(uint256 received, uint256 minimum);
    error PromiseBroken(bytes32 orderHash, uint256 amount, uint256 promised);
    error PullFailed(address token);
    error TransferFailed(address token);
    error InvalidCrossings(uint256 count);

    event RelayerChanged(address indexed relayer, bool isRelayer);
    event OrderSettled(
        bytes32 indexed orderHash,
        address indexed owner,
        uint256 nonce,
        address srcToken,
        address destToken,
        uint256 spent,
        uint256 received,
        uint256 filled,
        bool isClosed
    );
    event FeeAccrued(
        bytes32 indexed orderHash, address indexed receiver, address token, uint256 amount, bool isSurplus
    );
    event AgentCallerCreated(bytes32 indexed agent, address caller);
    event OrderPreSigned(bytes32 indexed orderHash, address indexed owner, bool isSigned);

    /// A batch of RFQ fills, where `target` is the RFQ contract: `data` is what the executor decodes, `gas` is not
    /// looked at. Else a call of the agent's as it stands, by its caller, with at most `gas`.
    struct Step {
        address target;
        uint256 gas;
        bytes data;
    }

    /// How a part is traded. `promised` is what the agent's bid promised: the least that arrives (sale) or the most that
    /// is spent (purchase). `receiver`, zero for the executor, gets what is given: of a sale all, of a purchase
    /// `srcGiven`, at most the part's maximum. Steps deliver here, to Delta; `agent` is the id of the agent whose caller
    /// makes the calls. What the executor has of `leftovers` goes to the owner, afterwards and also before: a unit that
    /// somebody left there would make a step fail that gives all there is to orders that take no more.
    struct Execution {
        uint256 promised;
        uint256 srcGiven;
        Step[] steps;
        address[] leftovers;
        bytes32 agent;
        address receiver;
    }

    /// One of several orders that are settled against each other: what `settle` takes of each, how much of its
    /// destination it is `paid`, its fee and shares of surplus included, and how much of its source, of what all have
    /// given, goes to the execution's receiver before its steps.
    struct Crossing {
        DeltaOrders.Order order;
        bytes signature;
        uint256 amount;
        Execution execution;
        uint256 paid;
        uint256 traded;
    }

    /// One settlement of an order.
    struct Part {
        bytes32 orderHash;
        address owner;
        address beneficiary;
        address srcToken;
        address destToken;
        uint256 srcAmount; // sale: what is given; purchase: the most
        uint256 destAmount; // sale: the least; purchase: what is wanted
        uint256 expected; // of what is not fixed; 0 for none
        uint256 promised; // of what is not fixed
        uint256 taken; // of the source, by now
        uint256 srcPermitted; // what a Permit2 transfer is signed for: the order's whole source amount
        uint256 deadline;
        uint256 nonce;
        uint256 partnerAndFee;
        uint256 filled; // of the order, this part included
        bool isPurchase;
        bool isClosed;
    }

    struct Slices {
        uint64 done;
        uint64 lastAt;
    }

    uint8 private constant SELL = 0;
    uint8 private constant BUY = 1;
    uint256 private constant CROSSINGS_MAX = 8;

    RfqExecutor public immutable executor;
    FeeVault public immutable feeVault;
    IWETH public immutable weth;
    address public immutable permit2;
    /// Who gets the protocol's share of surplus, and the fees of orders without a partner.
    address public immutable protocol;
    address private immutable rfq;
    bytes32 private immutable agentCallerCode;

    mapping(address relayer => bool) public isRelayer;
    /// What was settled of an order, in units of the side that is fixed.
    mapping(bytes32 orderHash => uint256) public filled;
    mapping(bytes32 orderHash => Slices) public slices;
    mapping(address owner => mapping(bytes32 orderHash => bool)) public isPreSigned;

    constructor(
        string memory name,
        string memory version,
        RfqExecutor executor_,
        FeeVault feeVault_,
        IWETH weth_,
        address permit2_,
        address protocol_,
        address owner_
    ) Owned(owner_) Eip712(name, version) {
        executor = executor_;
        feeVault = feeVault_;
        weth = weth_;
        permit2 = permit2_;
        protocol = protocol_;
        rfq = address(executor_.rfq());
        agentCallerCode = keccak256(type(AgentCaller).creationCode);
    }

    modifier onlyRelayer() {
        if (!isRelayer[msg.sender]) revert NotRelayer();
        _;
    }

    /// Only what the wrapped token gives back when it is unwrapped.
    receive() external payable {
        if (msg.sender != address(weth)) revert NativeTransferFailed(address(this));
    }

    function setRelayer(address relayer, bool allowed) external onlyOwner {
        isRelayer[relayer] = allowed;
        emit RelayerChanged(relayer, allowed);
    }

    /// Settle `amount` of an order: of its source where it sells, of its destination where it buys.
    ///
    /// Every settlement returns `spent` and `received` as OrderSettled tells them, and the gas between its first line
    /// and its last: an eth_call of the real one says what it is worth.
    function settle(
        DeltaOrders.Order calldata order,
        bytes calldata signature,
        uint256 amount,
        Execution calldata execution
    ) external onlyRelayer nonReentrant returns (uint256 spent, uint256 received, uint256 gasUsed) {
        gasUsed = gasleft();
        (spent, received) = settlePart(partOf(order, amount), order.permit, signature, execution);
        gasUsed -= gasleft();
    }

    /// Settle orders against each other, 2 to 8, all of them or none: each gives its source, what is `traded` of that
    /// goes as the executions say, in turn, and each is `paid` out of what is there then. A purchase costs what it
    /// gives. What nobody is paid is received by the first order that wants that token, else goes back to the first
    /// that gives it.
    ///
    /// Returns what each spent and received, in their order.
    function settleCrossed(Crossing[] calldata crossings)
        external
        onlyRelayer
        nonReentrant
        returns (uint256[] memory spent, uint256[] memory received, uint256 gasUsed)
    {
        gasUsed = gasleft();
        if (crossings.length < 2 || crossings.length > CROSSINGS_MAX) revert InvalidCrossings(crossings.length);
        Part[] memory parts = beginAll(crossings);
        Pools.Pool[] memory pools = poolsOf(parts);
        uint256[] memory unspent = takeAll(crossings, parts, pools);
        tradeAll(crossings, parts, pools);
        (spent, received) = finishAll(crossings, parts, pools, unspent);
        gasUsed -= gasleft();
    }

    /// Settle the next slice of a scheduled sale. The last one gives the remainder.
    function settleTwap(
        DeltaOrders.TWAPOrder calldata order,
        bytes calldata signature,
        Execution calldata execution
    ) external onlyRelayer nonReentrant returns (uint256 spent, uint256 received, uint256 gasUsed) {
        gasUsed = gasleft();
        if (!order.bridge.isSameChain()) revert BridgeNotEnabled();
        bytes32 orderHash = digestOf(order.structHash());
        uint256 done = nextSlice(orderHash, order.interval, order.numSlices);
        uint256 slice = order.totalSrcAmount / order.numSlices;
        if (slice == 0) revert InvalidSlices();
        bool isLast = done == order.numSlices;
        uint256 amount = isLast ? order.totalSrcAmount - slice * (done - 1) : slice;
        Part memory part = Part({
            orderHash: orderHash,
            owner: order.owner,
            beneficiary: order.beneficiary,
            srcToken: order.srcToken,
            destToken: order.destToken,
            srcAmount: amount,
            destAmount: isLast ? ceilDiv(order.destAmountPerSlice * amount, slice) : order.destAmountPerSlice,
            expected: 0,
            promised: 0,
            taken: 0,
            srcPermitted: order.totalSrcAmount,
            deadline: order.deadline,
            nonce: order.nonce,
            partnerAndFee: order.partnerAndFee,
            filled: done,
            isPurchase: false,
            isClosed: isLast
        });
        (spent, received) = settlePart(part, order.permit, signature, execution);
        gasUsed -= gasleft();
    }

    /// Settle the next slice of a scheduled purchase. The last one buys the remainder; each may spend its part of
    /// maxSrcAmount, and what one leaves is not for the next.
    function settleTwapBuy(
        DeltaOrders.TWAPBuyOrder calldata order,
        bytes calldata signature,
        Execution calldata execution
    ) external onlyRelayer nonReentrant returns (uint256 spent, uint256 received, uint256 gasUsed) {
        gasUsed = gasleft();
        if (!order.bridge.isSameChain()) revert BridgeNotEnabled();
        bytes32 orderHash = digestOf(order.structHash());
        uint256 done = nextSlice(orderHash, order.interval, order.numSlices);
        uint256 slice = order.totalDestAmount / order.numSlices;
        if (slice == 0) revert InvalidSlices();
        bool isLast = done == order.numSlices;
        uint256 amount = isLast ? order.totalDestAmount - slice * (done - 1) : slice;
        Part memory part = Part({
            orderHash: orderHash,
            owner: order.owner,
            beneficiary: order.beneficiary,
            srcToken: order.srcToken,
            destToken: order.destToken,
            srcAmount: order.maxSrcAmount * amount / order.totalDestAmount,
            destAmount: amount,
            expected: 0,
            promised: 0,
            taken: 0,
            srcPermitted: order.maxSrcAmount,
            deadline: order.deadline,
            nonce: order.nonce,
            partnerAndFee: order.partnerAndFee,
            filled: done,
            isPurchase: true,
            isClosed: isLast
        });
        (spent, received) = settlePart(part, order.permit, signature, execution);
        gasUsed -= gasleft();
    }

    /// Sign an order of the caller's by this call: an empty signature will do then.
    function preSign(bytes32 orderHash, bool isSigned) external {
        isPreSigned[msg.sender][orderHash] = isSigned;
        emit OrderPreSigned(orderHash, msg.sender, isSigned);
    }

    /// Who makes an agent's calls, from its first settlement on, or from now: anybody may create it.
    function createAgentCaller(bytes32 agent) external returns (address) {
        return address(callerOf(agent));
    }

    /// The same, whether it is there yet or not.
    function agentCaller(bytes32 agent) public view returns (address) {
        return address(
            uint160(uint256(keccak256(abi.encodePacked(hex"ff", address(this), agent, agentCallerCode))))
        );
    }

    function callerOf(bytes32 agent) private returns (AgentCaller caller) {
        caller = AgentCaller(agentCaller(agent));
        if (address(caller).code.length > 0) return caller;
        new AgentCaller{salt: agent}();
        emit AgentCallerCreated(agent, address(caller));
    }

    /// Counts `amount` of a swap or limit order as settled.
    function partOf(DeltaOrders.Order calldata order, uint256 amount) private returns (Part memory) {
        bool isPurchase = order.kind == BUY;
        if (!isPurchase && order.kind != SELL) revert InvalidKind(order.kind);
        if (!order.bridge.isSameChain()) revert BridgeNotEnabled();
        uint256 whole = isPurchase ? order.destAmount : order.srcAmount;
        bytes32 orderHash = digestOf(order.structHash());
        uint256 before = filled[orderHash];
        if (amount == 0) revert InvalidAmount();
        if (amount > whole - before) revert Overfilled(whole - before);
        filled[orderHash] = before + amount;
        return Part({
            orderHash: orderHash,
            owner: order.owner,
            beneficiary: order.beneficiary,
            srcToken: order.srcToken,
            destToken: order.destToken,
            srcAmount: isPurchase ? order.srcAmount * amount / whole : amount,
            destAmount: isPurchase ? amount : ceilDiv(order.destAmount * amount, whole),
            expected: isPurchase
                ? order.expectedAmount * amount / whole
                : ceilDiv(order.expectedAmount * amount, whole),
            promised: 0,
            taken: 0,
            srcPermitted: order.srcAmount,
            deadline: order.deadline,
            nonce: order.nonce,
            partnerAndFee: order.partnerAndFee,
            filled: before + amount,
            isPurchase: isPurchase,
            isClosed: before + amount == whole
        });
    }

    function settlePart(
        Part memory part,
        bytes calldata permit,
        bytes calldata signature,
        Execution calldata execution
    ) private returns (uint256 spent, uint256 received) {
        begin(part, signature, execution);
        address src = wrapped(part.srcToken);
        address dest = wrapped(part.destToken);
        address receiver = receiverOf(execution);
        sweep(part, execution);
        uint256 srcBefore = Tokens.balance(src, address(this));
        uint256 destBefore = Tokens.balance(dest, address(this));
        take(part, src, part.isPurchase ? address(this) : receiver, permit);
        if (part.isPurchase) {
            send(src, receiver, execution.srcGiven);
            trade(part, execution);
            if (receiver == address(executor)) collectAny(src, address(this));
        } else {
            trade(part, execution);
        }
        // Before anybody is paid, who could have the Router trade what is still with the executor.
        for (uint256 i = 0; i < execution.leftovers.length; i++) {
            address token = execution.leftovers[i];
            collectAny(token, token == src ? address(this) : part.owner);
        }
        received = Tokens.balance(dest, address(this)) - destBefore;
        uint256 unspent = Tokens.balance(src, address(this)) - srcBefore;
        return finish(part, received, unspent);
    }

    function receiverOf(Execution calldata execution) private view returns (address) {
        return execution.receiver == address(0) ? address(executor) : execution.receiver;
    }

    /// Take the steps in turn; one that fails undoes all.
    function trade(Part memory part, Execution calldata execution) private {
        AgentCaller caller;
        for (uint256 i = 0; i < execution.steps.length; i++) {
            Step calldata step = execution.steps[i];
            if (step.target == rfq) {
                executor.fill(part.owner, i, step.data);
                continue;
            }
            if (address(caller) == address(0)) caller = callerOf(execution.agent);
            caller.call(part.orderHash, i, step.target, step.gas, step.data);
        }
    }

    // --- Orders against each other ---

    function beginAll(Crossing[] calldata crossings) private returns (Part[] memory parts) {
        parts = new Part[](crossings.length);
        for (uint256 i = 0; i < parts.length; i++) {
            Crossing calldata crossing = crossings[i];
            parts[i] = partOf(crossing.order, crossing.amount);
            begin(parts[i], crossing.signature, crossing.execution);
            sweep(parts[i], crossing.execution);
        }
    }

    /// One of each token.
    function poolsOf(Part[] memory parts) private view returns (Pools.Pool[] memory pools) {
        pools = Pools.forOrders(parts.length);
        for (uint256 i = 0; i < parts.length; i++) {
            pools.open(wrapped(parts[i].destToken));
            pools.open(wrapped(parts[i].srcToken));
        }
    }

    /// All give to this contract, where nobody who is called meanwhile can reach it. Returns what each keeps here.
    function takeAll(Crossing[] calldata crossings, Part[] memory parts, Pools.Pool[] memory pools)
        private
        returns (uint256[] memory unspent)
    {
        unspent = new uint256[](parts.length);
        for (uint256 i = 0; i < parts.length; i++) {
            Part memory part = parts[i];
            Pools.Pool memory pool = pools.find(wrapped(part.srcToken));
            uint256 before = Tokens.balance(pool.token, address(this));
            take(part, pool.token, address(this), crossings[i].order.permit);
            uint256 arrived = Tokens.balance(pool.token, address(this)) - before;
            uint256 given = part.isPurchase ? crossings[i].execution.srcGiven : arrived;
            unspent[i] = arrived - given;
            pool.amount += given;
        }
    }

    /// The executor gives back leftovers: to the pools, and of tokens without a pool to the owner whose steps left
    /// them. Without any step, nothing moves.
    function tradeAll(Crossing[] calldata crossings, Part[] memory parts, Pools.Pool[] memory pools) private {
        uint256 steps = 0;
        for (uint256 i = 0; i < parts.length; i++) steps += crossings[i].execution.steps.length;
        if (steps == 0) return;
        for (uint256 i = 0; pools[i].token != address(0); i++) {
            pools[i].kept = Tokens.balance(pools[i].token, address(this)) - pools[i].amount;
        }
        for (uint256 i = 0; i < parts.length; i++) {
            Execution calldata execution = crossings[i].execution;
            address src = wrapped(parts[i].srcToken);
            uint256 traded = crossings[i].traded;
            pools.draw(src, traded);
            if (traded > 0) send(src, receiverOf(execution), traded);
            trade(parts[i], execution);
            for (uint256 j = 0; j < execution.leftovers.length; j++) {
                address token = execution.leftovers[j];
                collectAny(token, pools.has(token) ? address(this) : parts[i].owner);
            }
        }
        for (uint256 i = 0; pools[i].token != address(0); i++) {
            pools[i].amount = Tokens.balance(pools[i].token, address(this)) - pools[i].kept;
        }
    }

    function finishAll(
        Crossing[] calldata crossings,
        Part[] memory parts,
        Pools.Pool[] memory pools,
        uint256[] memory unspent
    ) private returns (uint256[] memory spent, uint256[] memory received) {
        spent = new uint256[](parts.length);
        received = new uint256[](parts.length);
        for (uint256 i = 0; i < parts.length; i++) {
            received[i] = crossings[i].paid;
            pools.draw(wrapped(parts[i].destToken), received[i]);
        }
        for (uint256 i = 0; pools[i].token != address(0); i++) {
            if (pools[i].amount > 0) spread(pools[i], parts, received, unspent);
        }
        for (uint256 i = 0; i < parts.length; i++) {
            (spent[i], received[i]) = finish(parts[i], received[i], unspent[i]);
        }
    }

    /// Give the rest of a pool to the first order that wants its token, else back to the first that gave it.
    function spread(
        Pools.Pool memory pool,
        Part[] memory parts,
        uint256[] memory received,
        uint256[] memory unspent
    ) private view {
        for (uint256 i = 0; i < parts.length; i++) {
            if (wrapped(parts[i].destToken) == pool.token) {
                received[i] += pool.amount;
                return;
            }
        }
        uint256 giver = 0;
        while (wrapped(parts[giver].srcToken) != pool.token) giver++;
        unspent[giver] += pool.amount;
    }

    // --- One part: what is checked, taken, paid ---

    /// Checks what does not depend on the trade, and takes the nonce.
    function begin(Part memory part, bytes calldata signature, Execution calldata execution) private {
        if (block.timestamp > part.deadline) revert OrderExpired();
        bool isSigned = signature.length == 0
            ? isPreSigned[part.owner][part.orderHash]
            : Signatures.isBy(part.owner, part.orderHash, signature);
        if (!isSigned) revert InvalidSignature();
        takeNonce(part.owner, part.nonce, part.orderHash, part.isClosed);
        if (part.beneficiary == address(0)) part.beneficiary = part.owner;
        address src = wrapped(part.srcToken);
        if (src == wrapped(part.destToken)) revert SameToken();
        part.taken = part.isPurchase
            ? Proceeds.mostOfPurchase(execution.srcGiven, part.expected, part.srcAmount, part.partnerAndFee)
            : part.srcAmount;
        countGiven(src, part.taken);
        part.promised = execution.promised;
    }

    /// Take the part's source from its owner, or from its deposit.
    function take(Part memory part, address src, address to, bytes calldata permit) private {
        uint256 amount = part.taken;
        if (part.srcToken == Tokens.NATIVE) {
            drawDeposit(part.orderHash, part.owner, amount);
            weth.deposit{value: amount}();
            if (to != address(this)) send(src, to, amount);
        } else if (
            !Permits.take(permit2, src, part.owner, to, amount, part.srcPermitted, part.deadline, permit)
        ) {
            revert PullFailed(src);
        }
    }

    /// Fees, the beneficiary, what was not spent, the event. `received` is before fees, `unspent` is here.
    function finish(Part memory part, uint256 received, uint256 unspent)
        private
        returns (uint256 spent, uint256 arrived)
    {
        if (part.isPurchase) {
            if (received < part.destAmount) revert BelowMinimum(received, part.destAmount);
            unspent = finishPurchase(part, wrapped(part.srcToken), unspent);
        } else {
            received = finishSale(part, wrapped(part.destToken), received);
        }
        spent = lessOrNone(part.taken, unspent);
        giveBack(part, unspent);
        arrived = pay(part, received);
        checkPromise(part, spent, arrived);
        if (part.isClosed && part.srcToken == Tokens.NATIVE) returnDeposit(part.orderHash, part.owner);
        emit OrderSettled(
            part.orderHash,
            part.owner,
            part.nonce,
            part.srcToken,
            part.destToken,
            spent,
            arrived,
            part.filled,
            part.isClosed
        );
    }

    /// The promise that ranked the bid binds, whatever the steps did meanwhile.
    function checkPromise(Part memory part, uint256 spent, uint256 arrived) private pure {
        if (part.isPurchase ? spent > part.promised : arrived < part.promised) {
            revert PromiseBroken(part.orderHash, part.isPurchase ? spent : arrived, part.promised);
        }
    }

    /// Tokens that somebody left with the executor go to the owner, before the steps.
    function sweep(Part memory part, Execution calldata execution) private {
        for (uint256 i = 0; i < execution.leftovers.length; i++) collectAny(execution.leftovers[i], part.owner);
    }

    function collectAny(address token, address to) private {
        if (Tokens.balance(token, address(executor)) > 0) executor.collect(token, to);
    }

    /// Returns what is the user's of what a sale brought.
    function finishSale(Part memory part, address dest, uint256 received) private returns (uint256 net) {
        Proceeds.Cut memory cut =
            Proceeds.ofSale(received, part.expected, part.destAmount, part.partnerAndFee);
        net = received - cut.fee - 2 * cut.share;
        if (net < part.destAmount) revert BelowMinimum(net, part.destAmount);
        accrue(part, dest, cut);
    }

    /// Returns what is the owner's of what a purchase left. It costs nothing where more came back than was given, as
    /// anyone may leave tokens with the executor.
    function finishPurchase(Part memory part, address src, uint256 unspent) private returns (uint256 rest) {
        Proceeds.Cut memory cut = Proceeds.ofPurchase(
            lessOrNone(part.taken, unspent), part.expected, part.srcAmount, part.partnerAndFee
        );
        rest = unspent - cut.fee - 2 * cut.share;
        accrue(part, src, cut);
    }

    /// What was taken and not spent, as it came: native tokens to the order's deposit.
    function giveBack(Part memory part, uint256 amount) private {
        if (amount == 0) return;
        if (part.srcToken == Tokens.NATIVE) {
            weth.withdraw(amount);
            deposits[part.orderHash][part.owner] += amount;
        } else {
            send(part.srcToken, part.owner, amount);
        }
    }

    function accrue(Part memory part, address token, Proceeds.Cut memory cut) private {
        address partner = Proceeds.partnerOf(part.partnerAndFee);
        if (partner == address(0)) partner = protocol;
        accrueTo(part.orderHash, partner, token, cut.fee, false);
        accrueTo(part.orderHash, partner, token, cut.share, true);
        accrueTo(part.orderHash, protocol, token, cut.share, true);
    }

    function accrueTo(bytes32 orderHash, address receiver, address token, uint256 amount, bool isSurplus)
        private
    {
        if (amount == 0) return;
        send(token, address(feeVault), amount);
        emit FeeAccrued(orderHash, receiver, token, feeVault.credit(receiver, token, amount), isSurplus);
    }

    /// Returns what arrived, which is less than was sent where a token takes a fee on transfers.
    function pay(Part memory part, uint256 amount) private returns (uint256 arrived) {
        address to = part.beneficiary;
        if (part.destToken == Tokens.NATIVE) {
            weth.withdraw(amount);
            if (!sendNative(to, amount, NATIVE_GAS)) revert NativeTransferFailed(to);
            return amount;
        }
        uint256 before = Tokens.balance(part.destToken, to);
        send(part.destToken, to, amount);
        arrived = Tokens.balance(part.destToken, to) - before;
        if (arrived < part.destAmount) revert BelowMinimum(arrived, part.destAmount);
    }

    function send(address token, address to, uint256 amount) private {
        if (!Tokens.send(token, to, amount)) revert TransferFailed(token);
    }

    /// Counts a slice, if it is due. Returns how many are done with it.
    function nextSlice(bytes32 orderHash, uint64 interval, uint32 numSlices) private returns (uint256 done) {
        Slices storage kept = slices[orderHash];
        done = uint256(kept.done) + 1;
        if (numSlices == 0) revert InvalidSlices();
        if (done > numSlices) revert Overfilled(0);
        uint256 notBefore = done == 1 ? 0 : uint256(kept.lastAt) + interval;
        if (block.timestamp < notBefore) revert TooEarly(notBefore);
        kept.done = uint64(done);
        kept.lastAt = uint64(block.timestamp);
    }

    function wrapped(address token) private view returns (address) {
        return token == Tokens.NATIVE ? address(weth) : token;
    }

    function lessOrNone(uint256 a, uint256 b) private pure returns (uint256) {
        return a > b ? a - b : 0;
    }

    function ceilDiv(uint256 a, uint256 b) private pure returns (uint256) {
        return a == 0 ? 0 : (a - 1) / b + 1;
    }
}

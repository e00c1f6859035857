// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

import {Delta} from "contracts/Delta.sol";
import {IOrderHandler} from "contracts/IOrderHandler.sol";
import {SwapSettler} from "contracts/SwapSettler.sol";
import {DeltaOrders} from "contracts/lib/DeltaOrders.sol";
import {DeltaState} from "contracts/lib/DeltaState.sol";
import {Nonces} from "contracts/lib/Nonces.sol";
import {Settling} from "contracts/lib/Settling.sol";
import {Coin, Wallet} from "./Proof.sol";
import {Venue} from "./Venue.sol";

/// Owners of orders: nobody acts for them. A call is one of any function, with any arguments.
/// @custom:halmos --default-bytes-lengths 65 --default-array-lengths 1
contract OrderOwnerProofs is Venue {
    function setUp() public {
        deployDelta(false);
    }

    /// No call takes of an owner's deposit, the owner's own neither.
    /// @custom:bound 120 s
    function check_NobodyTakesADeposit(address account, uint96 amount, address caller) public {
        deposit(account, amount);
        callAs(caller, svm.createCalldata("Delta"));
        assert(delta.deposits(account) >= amount);
    }

    /// No call of another account, relayers aside, takes of an owner's deposit.
    /// @custom:widths full; lists of one, texts of 65 bytes
    /// @custom:bound 120 s
    function check_OnlyItsOwnerTakesADeposit(address account, uint96 amount, address caller) public {
        vm.assume(caller != account && caller != relayer && caller != address(delta));
        deposit(account, amount);
        callAs(caller, svm.createCalldata("Delta"));
        assert(delta.deposits(account) >= amount);
    }

    /// No call of another account, relayers aside, signs an order for an owner, takes a signature back, or uses up a nonce but by
    /// showing a cancellation.
    /// @custom:widths full; lists of one, texts of 65 bytes
    /// @custom:bound 300 s
    function check_NobodyActsForAnOwner(
        address account,
        bytes32 signed,
        bytes32 orderHash,
        uint256 nonce,
        address caller
    ) public {
        vm.assume(caller != account && caller != relayer);
        vm.prank(account);
        delta.setPreSignature(signed, true);
        bool before = delta.isPreSigned(account, orderHash);
        bytes memory data = svm.createCalldata("Delta");
        callAs(caller, data);
        assert(delta.isPreSigned(account, orderHash) == before);
        assert(!delta.isNonceUsed(account, nonce) || bytes4(data) == Delta.showCancellation.selector);
    }

    /// No call of any account, relayers aside, makes a used nonce free.
    /// @custom:widths full; lists of one, texts of 65 bytes
    /// @custom:bound 120 s
    function check_AnInvalidNonceStaysInvalid(address account, uint256 nonce, address caller) public {
        vm.assume(caller != relayer);
        invalidate(account, nonce);
        bytes memory data = svm.createCalldata("Delta");
        vm.assume(bytes4(data) != Delta.showCancellation.selector);
        callAs(caller, data);
        assert(delta.isNonceUsed(account, nonce));
    }

    function deposit(address account, uint96 amount) private {
        vm.deal(account, amount);
        vm.prank(account);
        delta.depositNativeAndPreSign{value: amount}(0);
    }

    function invalidate(address account, uint256 nonce) private {
        uint256[] memory nonces = new uint256[](1);
        nonces[0] = nonce;
        vm.prank(account);
        delta.invalidateNonces(nonces);
    }

    function callAs(address caller, bytes memory data) private {
        vm.prank(caller);
        (bool done,) = address(delta).call(data);
        vm.assume(done);
    }
}

/// An agent's market, and the handler of external orders: a trade delivers half of what the market has of the
/// destination.
contract Market is IOrderHandler {
    Coin private immutable dest;

    constructor(Coin dest_) {
        dest = dest_;
    }

    function trade(address to) public {
        dest.transfer(to, dest.balanceOf(address(this)) / 2);
    }

    function handle(Handled calldata handled, bytes calldata) external {
        trade(handled.deliverTo);
    }
}

/// A vault (ERC-4626) whose shares are worth one unit of its asset each.
contract Vault is Coin {
    Coin private immutable asset;

    constructor(Coin asset_) {
        asset = asset_;
    }

    function previewWithdraw(uint256 assets) external pure returns (uint256 shares) {
        return assets;
    }

    function withdraw(uint256 assets, address receiver, address from) public returns (uint256 shares) {
        balanceOf[from] -= assets;
        asset.mint(receiver, assets);
        return assets;
    }

    function redeem(uint256 shares, address receiver, address from) external returns (uint256 assets) {
        return withdraw(shares, receiver, from);
    }
}

/// Settlements by a relayer that everything is allowed to: without a pause, a cap, or an allowance that is missing, of
/// owners who have the most, with an agent who delivers it. `kind` is the function that settles, one of six.
contract SettlementProofs is Venue {
    using DeltaOrders for *;

    uint8 private constant KINDS = 6;
    bytes32 private constant AGENT = bytes32(uint256(1));

    Coin private src;
    Coin private dest;
    Vault private vault;
    Market private market;
    address private refusing;

    /// The members of an order that its kinds have in common, and two that differ.
    struct Terms {
        address owner;
        address beneficiary;
        uint256 srcAmount;
        uint256 destAmount;
        uint256 expected;
        uint64 deadline;
        uint256 nonce;
        uint256 partnerAndFee;
        uint8 side;
        uint32 slices;
    }

    function setUp() public {
        deployDelta(false);
        src = new Coin();
        dest = new Coin();
        vault = new Vault(src);
        market = new Market(dest);
        dest.mint(address(market), type(uint256).max);
        refusing = address(new Wallet(false));
        vm.prank(owner);
        delta.setCap(address(src), type(uint256).max);
        vm.prank(owner);
        places.executor.setCaller(address(delta), true);
        vm.prank(owner);
        places.feeVault.setCollector(address(delta), true);
        delta.createAgentCaller(AGENT);
        delta.createAgentCaller(0);
    }

    /// One kind of settlement at least, of a sale or of a purchase, fails of orders that a wallet agrees to.
    /// @custom:bound 120 s
    function check_SomeKindIsNeverSettled() public {
        Terms memory terms;
        terms.owner = address(new Wallet(true));
        (terms.beneficiary, terms.deadline) = (address(market), type(uint64).max);
        stock(terms.owner);
        for (uint8 kind = 0; kind < KINDS; kind++) {
            for (terms.side = 0; terms.side < 2; terms.side++) {
                (terms.srcAmount, terms.destAmount, terms.slices) = (8, 8, terms.side + 1);
                terms.nonce++;
                if (!isSettledBy(terms, kind, "signature", 4, execution(kind, terms.side * 4, 4))) return;
            }
        }
        assert(false);
    }

    /// No order of an invalidated nonce is settled: every function refuses it for that reason.
    /// @custom:widths full; without permit or bridge; one step
    /// @custom:bound 120 s
    /// @custom:quick
    function check_OrderOfAnInvalidNonceIsNotSettled(
        Terms memory terms,
        uint8 kind,
        uint256 amount,
        uint256 promised,
        uint256 given
    ) public {
        vm.assume(kind < KINDS && terms.side < 2);
        uint256[] memory nonces = new uint256[](1);
        nonces[0] = terms.nonce;
        vm.prank(terms.owner);
        delta.invalidateNonces(nonces);
        bytes memory data =
            settlement(terms, kind, svm.createBytes(65, "signature"), amount, execution(kind, promised, given));
        vm.prank(relayer);
        (bool done, bytes memory reason) = address(delta).call(data);
        assert(!done && bytes4(reason) == Nonces.NonceUsed.selector);
    }

    /// An order that its owner cancelled by `cancelAndWithdraw` or its like is refused for its nonce.
    /// @custom:widths full; without permit or bridge; one step
    /// @custom:bound 120 s
    /// @custom:quick
    function check_CancelledOrderIsNotSettled(
        Terms memory terms,
        uint8 kind,
        uint256 amount,
        uint256 promised,
        uint256 given
    ) public {
        vm.assume(kind < 3 && terms.side < 2);
        vm.prank(terms.owner);
        if (kind == 0) delta.cancelAndWithdraw(orderOf(terms), false);
        if (kind == 1) delta.cancelTWAPAndWithdraw(saleOf(terms));
        if (kind == 2) delta.cancelTWAPBuyAndWithdraw(purchaseOf(terms));
        bytes memory data =
            settlement(terms, kind, svm.createBytes(65, "signature"), amount, execution(kind, promised, given));
        vm.prank(relayer);
        (bool done, bytes memory reason) = address(delta).call(data);
        assert(!done && bytes4(reason) == Nonces.NonceUsed.selector);
    }

    /// No swap or limit order is settled without a signature: neither with none, nor with one of another key.
    /// @custom:widths full, of the fixed side; signatures of 65 bytes; without fee, permit or bridge; one step
    /// @custom:bound 300 s
    function check_SettlementNeedsTheOwnersKey(
        Terms memory terms,
        bool hasSignature,
        uint256 amount,
        uint256 promised,
        uint256 given
    ) public {
        assert(!isSettledUnsigned(terms, 0, hasSignature, amount, execution(0, promised, given)));
    }

    /// No order of another kind, and no crossing, is settled without a signature: neither with none, nor with one of another
    /// key.
    /// @custom:widths full, of the fixed side; one or two slices; signatures of 65 bytes; without fee, permit or bridge; one step
    /// @custom:bound 900 s
    function check_EverySettlementNeedsTheOwnersKey(
        Terms memory terms,
        uint8 kind,
        bool hasSignature,
        uint256 amount,
        uint256 promised,
        uint256 given
    ) public {
        vm.assume(kind > 0 && kind < KINDS);
        assert(!isSettledUnsigned(terms, kind, hasSignature, amount, execution(kind, promised, given)));
    }

    /// No order of a smart wallet is settled with a signature that the wallet refuses, whatever it is.
    /// @custom:widths full, of the fixed side; one or two slices; signatures of 66 bytes; without fee, permit or bridge; one step
    /// @custom:bound 120 s
    function check_SettlementNeedsTheWalletsConsent(
        Terms memory terms,
        uint8 kind,
        uint256 amount,
        uint256 promised,
        uint256 given
    ) public {
        vm.assume(kind < KINDS);
        terms.owner = refusing;
        free(terms);
        stock(terms.owner);
        bytes memory signature = svm.createBytes(66, "signature");
        assert(!isSettledBy(terms, kind, signature, amount, execution(kind, promised, given)));
    }

    /// No order is settled after its deadline.
    /// @custom:widths full; without permit or bridge; one step
    /// @custom:bound 300 s
    function check_ExpiredOrderIsNotSettled(
        Terms memory terms,
        uint8 kind,
        uint256 amount,
        uint256 promised,
        uint256 given,
        uint64 time
    ) public {
        vm.assume(kind < KINDS && time > terms.deadline);
        vm.warp(time);
        stock(terms.owner);
        bytes memory signature = svm.createBytes(65, "signature");
        assert(!isSettledBy(terms, kind, signature, amount, execution(kind, promised, given)));
    }

    /// No cancellation counts that another key has signed.
    /// @custom:widths full; one id of 36 bytes, one order; signatures of 65 bytes
    /// @custom:bound 120 s
    /// @custom:quick
    function check_CancellationNeedsTheOwnersKey(Terms memory terms, address caller) public {
        vm.assume(terms.owner != address(0));
        string[] memory ids = new string[](1);
        ids[0] = string(svm.createBytes(36, "id"));
        Delta.Cancelled memory cancelled;
        cancelled.orders = new DeltaOrders.Order[](1);
        cancelled.orders[0] = orderOf(terms);
        bytes memory signature = foreignSignature(terms.owner, digestOf(this.cancellationsHash(ids)));
        vm.prank(caller);
        (bool done, bytes memory reason) = address(delta).call(
            abi.encodeCall(Delta.showCancellation, (terms.owner, ids, signature, cancelled))
        );
        assert(!done && bytes4(reason) == DeltaState.InvalidSignature.selector);
    }

    function isSettledUnsigned(
        Terms memory terms,
        uint8 kind,
        bool hasSignature,
        uint256 amount,
        Settling.Execution memory how
    ) private returns (bool) {
        vm.assume(terms.owner != address(0));
        free(terms);
        bytes memory signature = "";
        if (hasSignature) signature = foreignSignature(terms.owner, hashOf(terms, kind));
        stock(terms.owner);
        return isSettledBy(terms, kind, signature, amount, how);
    }

    /// Gives an owner the most of the source, and of shares of it.
    function stock(address account) private {
        src.mint(account, type(uint256).max);
        vault.mint(account, type(uint256).max);
    }

    function isSettledBy(
        Terms memory terms,
        uint8 kind,
        bytes memory signature,
        uint256 amount,
        Settling.Execution memory how
    ) private returns (bool done) {
        bytes memory data = settlement(terms, kind, signature, amount, how);
        vm.prank(relayer);
        (done,) = address(delta).call(data);
    }

    /// Makes the side that is not fixed cost or bring nothing, so that no product of two symbols is in the way, and
    /// leaves out what makes an order be refused: an early deadline, another kind, a fee above the highest.
    function free(Terms memory terms) private pure {
        (terms.expected, terms.deadline, terms.side, terms.partnerAndFee) =
            (0, type(uint64).max, terms.side == 0 ? 0 : 1, 0);
        if (terms.side == 0) terms.destAmount = 0;
        else terms.srcAmount = 0;
        terms.slices = terms.slices == 1 ? 1 : 2;
    }

    function hashOf(Terms memory terms, uint8 kind) private view returns (bytes32) {
        if (kind == 1) return digestOf(this.saleHash(saleOf(terms)));
        if (kind == 2) return digestOf(this.purchaseHash(purchaseOf(terms)));
        if (kind == 3) return digestOf(this.productiveHash(productiveOf(terms)));
        if (kind == 4) return digestOf(this.externalHash(externalOf(terms)));
        return digestOf(this.orderHash(orderOf(terms)));
    }

    function digestOf(bytes32 structHash) private view returns (bytes32) {
        return keccak256(bytes.concat(hex"1901", delta.DOMAIN_SEPARATOR(), structHash));
    }

    function orderHash(DeltaOrders.Order calldata order) external pure returns (bytes32) {
        return order.structHash();
    }

    function saleHash(DeltaOrders.TWAPOrder calldata order) external pure returns (bytes32) {
        return order.structHash(false);
    }

    function purchaseHash(DeltaOrders.TWAPBuyOrder calldata order) external pure returns (bytes32) {
        return order.asSale().structHash(true);
    }

    function productiveHash(DeltaOrders.ProductiveOrder calldata order) external pure returns (bytes32) {
        return order.structHash();
    }

    function externalHash(DeltaOrders.ExternalOrder calldata order) external pure returns (bytes32) {
        return order.structHash();
    }

    function cancellationsHash(string[] calldata ids) external pure returns (bytes32) {
        return DeltaOrders.cancellationsHash(ids);
    }

    function settlement(
        Terms memory terms,
        uint8 kind,
        bytes memory signature,
        uint256 amount,
        Settling.Execution memory how
    ) private view returns (bytes memory) {
        if (kind == 0) return abi.encodeCall(Delta.settle, (orderOf(terms), signature, amount, how));
        if (kind == 1) return abi.encodeCall(Delta.settleTwap, (saleOf(terms), signature, how));
        if (kind == 2) return abi.encodeCall(Delta.settleTwapBuy, (purchaseOf(terms), signature, how));
        if (kind == 3) {
            return abi.encodeCall(Delta.settleProductive, (productiveOf(terms), signature, amount, how));
        }
        if (kind == 4) return abi.encodeCall(Delta.settleExternal, (externalOf(terms), signature, amount, how));
        SwapSettler.Crossing[] memory crossings = new SwapSettler.Crossing[](2);
        crossings[0] = SwapSettler.Crossing(orderOf(terms), signature, amount, how, amount, 0);
        crossings[1] = crossings[0];
        return abi.encodeCall(Delta.settleCrossed, (crossings));
    }

    /// Handlers take no steps: they trade themselves.
    function execution(uint8 kind, uint256 promised, uint256 given)
        private
        view
        returns (Settling.Execution memory how)
    {
        how.promised = promised;
        how.srcGiven = given;
        how.agent = AGENT;
        if (kind == 4) return how;
        how.steps = new Settling.Step[](1);
        how.steps[0] = Settling.Step(address(market), 0, abi.encodeCall(Market.trade, (address(delta))));
    }

    function orderOf(Terms memory terms) private view returns (DeltaOrders.Order memory order) {
        order.owner = terms.owner;
        order.beneficiary = terms.beneficiary;
        order.srcToken = address(src);
        order.destToken = address(dest);
        order.srcAmount = terms.srcAmount;
        order.destAmount = terms.destAmount;
        order.expectedAmount = terms.expected;
        order.deadline = terms.deadline;
        order.kind = terms.side;
        order.nonce = terms.nonce;
        order.partnerAndFee = terms.partnerAndFee;
    }

    function saleOf(Terms memory terms) private view returns (DeltaOrders.TWAPOrder memory order) {
        order.owner = terms.owner;
        order.beneficiary = terms.beneficiary;
        order.srcToken = address(src);
        order.destToken = address(dest);
        order.nonce = terms.nonce;
        order.partnerAndFee = terms.partnerAndFee;
        order.deadline = terms.deadline;
        order.numSlices = terms.slices;
        order.destAmountPerSlice = terms.destAmount;
        order.totalSrcAmount = terms.srcAmount;
    }

    function purchaseOf(Terms memory terms) private view returns (DeltaOrders.TWAPBuyOrder memory order) {
        order.owner = terms.owner;
        order.beneficiary = terms.beneficiary;
        order.srcToken = address(src);
        order.destToken = address(dest);
        order.nonce = terms.nonce;
        order.partnerAndFee = terms.partnerAndFee;
        order.deadline = terms.deadline;
        order.numSlices = terms.slices;
        order.totalDestAmount = terms.destAmount;
        order.maxSrcAmount = terms.srcAmount;
    }

    function productiveOf(Terms memory terms) private view returns (DeltaOrders.ProductiveOrder memory order) {
        order.owner = terms.owner;
        order.beneficiary = terms.beneficiary;
        order.srcToken = address(src);
        order.destToken = address(dest);
        order.srcAmount = terms.srcAmount;
        order.destAmount = terms.destAmount;
        order.expectedAmount = terms.expected;
        order.deadline = terms.deadline;
        order.nonce = terms.nonce;
        order.partnerAndFee = terms.partnerAndFee;
        order.strategy = address(vault);
        order.shares = terms.srcAmount;
        order.useShares = terms.slices == 1;
    }

    function externalOf(Terms memory terms) private view returns (DeltaOrders.ExternalOrder memory order) {
        order.owner = terms.owner;
        order.srcToken = address(src);
        order.destToken = address(dest);
        order.srcAmount = terms.srcAmount;
        order.destAmount = terms.destAmount;
        order.expectedAmount = terms.expected;
        order.deadline = terms.deadline;
        order.kind = terms.side;
        order.nonce = terms.nonce;
        order.partnerAndFee = terms.partnerAndFee;
        order.handler = address(market);
    }
}

// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

/// Who gets what of a trade. The same arithmetic is in proceeds.py, and tests hold the two equal.
///
/// The fee is a part of what a seller receives, or comes on top of what a buyer spends. Surplus is what is executed
/// better than expected, after the fee; it is the user's, unless the terms share it: half the partner's, half the
/// protocol's, of at most 1 % of what was expected where it is capped. Everything rounds in the user's favour.
///
/// partnerAndFee = partner << 96 | paysDirectly << 10 | capSurplus << 9 | partnerTakesSurplus << 8 | feeBps
library Proceeds {
    error InvalidFee(uint256 feeBps);
    error AboveMaximum(uint256 spent, uint256 maximum);

    uint256 internal constant TAKES_SURPLUS = 1 << 8;
    uint256 internal constant CAP_SURPLUS = 1 << 9;
    uint256 internal constant PAYS_DIRECTLY = 1 << 10;
    uint256 private constant FEE_BPS_MAX = 200;
    uint256 private constant SURPLUS_CAP_BPS = 100;
    uint256 private constant BPS = 10_000;

    /// What is not the user's. `share` is what partner and protocol get each, `surplus` what the trade was better than
    /// expected, of no meaning where nothing was.
    struct Cut {
        uint256 fee;
        uint256 share;
        int256 surplus;
    }

    function partnerOf(uint256 partnerAndFee) internal pure returns (address) {
        return address(uint160(partnerAndFee >> 96));
    }

    /// Of what a sale brought. `expected` 0: nothing was, so there is no surplus.
    function ofSale(uint256 received, uint256 expected, uint256 minimum, uint256 partnerAndFee)
        internal
        pure
        returns (Cut memory cut)
    {
        cut.fee = received * feeBps(partnerAndFee) / BPS;
        uint256 net = received - cut.fee;
        uint256 base = expected > minimum ? expected : minimum;
        if (expected > 0 && net > base) cut.share = shareOf(net - base, base, partnerAndFee);
        cut.surplus = int256(net) - int256(base);
    }

    /// Of what a purchase cost. `expected` 0: nothing was, so there is no surplus.
    function ofPurchase(uint256 spent, uint256 expected, uint256 maximum, uint256 partnerAndFee)
        internal
        pure
        returns (Cut memory cut)
    {
        cut.fee = spent * feeBps(partnerAndFee) / BPS;
        uint256 total = spent + cut.fee;
        if (total > maximum) revert AboveMaximum(total, maximum);
        uint256 base = expected < maximum ? expected : maximum;
        if (base > total) cut.share = shareOf(base - total, base, partnerAndFee);
        cut.surplus = int256(base) - int256(total);
    }

    /// Whether partner and protocol have a share of the surplus.
    function isShared(uint256 expected, uint256 partnerAndFee) internal pure returns (bool) {
        return expected > 0 && partnerAndFee & TAKES_SURPLUS != 0;
    }

    /// The most that a purchase takes of its owner where `given` is for trading and some of it may come back. The less
    /// is spent, the more surplus is shared; the total rises by a unit at most, where half of the surplus is no whole
    /// number of units.
    function mostOfPurchase(uint256 given, uint256 expected, uint256 maximum, uint256 partnerAndFee)
        internal
        pure
        returns (uint256 most)
    {
        Cut memory cut = ofPurchase(given, expected, maximum, partnerAndFee);
        most = given + cut.fee + 2 * cut.share;
        uint256 base = expected < maximum ? expected : maximum;
        if (partnerAndFee & TAKES_SURPLUS != 0 && most + 1 == base) most = base;
    }

    function feeBps(uint256 partnerAndFee) private pure returns (uint256 bps) {
        bps = partnerAndFee & 0xFF;
        if (bps > FEE_BPS_MAX) revert InvalidFee(bps);
    }

    function shareOf(uint256 surplus, uint256 base, uint256 partnerAndFee) private pure returns (uint256) {
        if (partnerAndFee & TAKES_SURPLUS == 0) return 0;
        uint256 cap = base * SURPLUS_CAP_BPS / BPS;
        return (partnerAndFee & CAP_SURPLUS != 0 && surplus > cap ? cap : surplus) / 2;
    }
}

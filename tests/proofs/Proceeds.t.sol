// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

import {Cuts} from "contracts/Opened.sol";
import {Proceeds} from "contracts/lib/Proceeds.sol";
import {Proof} from "./Proof.sol";

/// Fees and shares of surplus: the user's bounds hold whatever the terms are.
contract ProceedsProofs is Proof {
    Cuts private cuts;

    function setUp() public {
        cuts = Cuts(deployed("Cuts", ""));
    }

    /// A capped share is half a percent of the minimum at most, whatever was expected.
    /// @custom:bound 120 s
    function check_CappedSharesAreOfTheMinimum(
        uint8 received,
        uint8 expected,
        uint8 minimum,
        uint256 partnerAndFee
    ) public view {
        vm.assume(partnerAndFee & Proceeds.CAP_SURPLUS != 0);
        (, uint256 share) = cuts.ofSale(received, expected, minimum, partnerAndFee);
        assert(2 * share * 100 <= minimum);
    }

    /// Of a sale, fee and shares are no more than what it brought, and no fee is above 2 %.
    /// @custom:widths amounts of 8 bits, all terms
    /// @custom:bound 120 s
    function check_SaleIsCutWithinItsProceeds(
        uint8 received,
        uint8 expected,
        uint8 minimum,
        uint256 partnerAndFee
    ) public view {
        (uint256 fee, uint256 share) = cuts.ofSale(received, expected, minimum, partnerAndFee);
        assert(fee + 2 * share <= received);
        assert(fee * 50 <= received);
    }

    /// Shares of a sale's surplus leave its user what was expected and the minimum at least.
    /// @custom:widths amounts of 8 bits, all terms
    /// @custom:bound 120 s
    function check_SharesLeaveASaleWhatWasExpected(
        uint8 received,
        uint8 expected,
        uint8 minimum,
        uint256 partnerAndFee
    ) public view {
        (uint256 fee, uint256 share) = cuts.ofSale(received, expected, minimum, partnerAndFee);
        uint256 net = received - fee - 2 * share;
        assert(share == 0 || net >= expected && net >= minimum);
        assert(expected > 0 && partnerAndFee & Proceeds.TAKES_SURPLUS != 0 || share == 0);
    }

    /// A purchase costs its maximum at most, fee and shares included, and what was expected at most once surplus is shared.
    /// @custom:widths amounts of 8 bits, all terms
    /// @custom:bound 120 s
    function check_PurchaseCostsItsMaximumAtMost(
        uint8 spent,
        uint8 expected,
        uint8 maximum,
        uint256 partnerAndFee
    ) public view {
        (uint256 fee, uint256 share) = cuts.ofPurchase(spent, expected, maximum, partnerAndFee);
        uint256 cost = spent + fee + 2 * share;
        assert(cost <= maximum);
        assert(share == 0 || cost <= expected);
        assert(fee * 50 <= spent);
    }

    /// A purchase takes of its owner its maximum at most, and what is given for trading at least.
    /// @custom:widths amounts of 8 bits, all terms
    /// @custom:bound 120 s
    function check_PurchaseTakesItsMaximumAtMost(
        uint8 given,
        uint8 expected,
        uint8 maximum,
        uint256 partnerAndFee
    ) public view {
        uint256 most = cuts.mostOfPurchase(given, expected, maximum, partnerAndFee);
        assert(most >= given && most <= maximum);
    }

    /// A capped share is half a percent of what was expected at most, or of the minimum where that is more.
    /// @custom:widths amounts of 8 bits, all terms
    /// @custom:bound 120 s
    function check_CappedSharesAreHalfAPercentAtMost(
        uint8 received,
        uint8 expected,
        uint8 minimum,
        uint256 partnerAndFee
    ) public view {
        vm.assume(partnerAndFee & Proceeds.CAP_SURPLUS != 0);
        (, uint256 share) = cuts.ofSale(received, expected, minimum, partnerAndFee);
        uint256 base = expected > minimum ? expected : minimum;
        assert(2 * share * 100 <= base);
    }
}

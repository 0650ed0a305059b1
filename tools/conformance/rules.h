// The rules: the only reasons for which an answer may differ from the recorded one and still be
// correct.
//
// Where meshard deliberately does better than a reference, a rule states what is better and checks
// from the answers alone that this is the reason for the difference. The list is closed: a
// difference without a rule is a failure. The functions that decide are next to the suites of each
// reference (devicemesh/rules.h, txla/rules.h, jax/rules.h).
#pragma once
#include <span>
#include <string_view>

namespace meshard::conformance {

enum class Rule {
  // devicemesh/
  kSliceAnyOrder,
  kOutsideIsEmpty,
  kGroupInMeshOrder,
  kOneGroupPerAxis,
  kExactComposition,
  kQuirk,
  // txla/
  kReshardOnRemark,
  kShortSpec,
  kTwoCoreAndSingleSliceMeshes,
  kFewerTransfers,
  kMeshOrderReplicas,
  kNoAbort,
  // txla/ and jax/
  kUnevenKept,
  // jax/
  kDevicesInAnyOrder,
  kRangeOnTheWay,
  kDtypeRefused,
  kLimit,
  kIntegerWidth,
  kIntegersBecomeF32,
  kNarrowStaysNarrow,
  kComplexInfinity,
  kRounding,
};

/// All rules, in the order in which they are reported.
std::span<const Rule> all_rules();

/// The name of a rule, such as `slice-any-order`.
std::string_view rule_name(Rule rule);

}  // namespace meshard::conformance

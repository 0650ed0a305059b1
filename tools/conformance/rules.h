// The rules: the only reasons for which an answer may differ from the recorded one and still be
// right.
//
// Where meshard deliberately does better than a reference, a rule states what is better and checks,
// from the answers alone, that this is what happened. The list is closed: a difference that no rule
// here covers is a failure. The functions that decide stand with the suites of the reference
// (devicemesh/rules.h, txla/rules.h, jax/rules.h).
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
};

/// All of them, in the order in which they are reported.
std::span<const Rule> all_rules();

/// `slice-any-order`.
std::string_view rule_name(Rule rule);

}  // namespace meshard::conformance

#include "tools/conformance/rules.h"

#include <algorithm>
#include <array>
#include <iterator>

namespace meshard::conformance {
namespace {

struct NamedRule {
  Rule rule;
  std::string_view name;
};

constexpr NamedRule kNamedRules[] = {
    {Rule::kSliceAnyOrder, "slice-any-order"},
    {Rule::kOutsideIsEmpty, "outside-is-empty"},
    {Rule::kGroupInMeshOrder, "group-in-mesh-order"},
    {Rule::kOneGroupPerAxis, "one-group-per-axis"},
    {Rule::kExactComposition, "exact-composition"},
    {Rule::kQuirk, "quirk"},
    {Rule::kReshardOnRemark, "reshard-on-remark"},
    {Rule::kShortSpec, "short-spec"},
    {Rule::kTwoCoreAndSingleSliceMeshes, "two-core-and-single-slice-meshes"},
    {Rule::kFewerTransfers, "fewer-transfers"},
    {Rule::kMeshOrderReplicas, "mesh-order-replicas"},
    {Rule::kNoAbort, "no-abort"},
    {Rule::kUnevenKept, "uneven-kept"},
    {Rule::kDevicesInAnyOrder, "devices-in-any-order"},
    {Rule::kRangeOnTheWay, "range-on-the-way"},
    {Rule::kDtypeRefused, "dtype-refused"},
    {Rule::kLimit, "no-derivative"},
    {Rule::kIntegerWidth, "integer-width"},
    {Rule::kIntegersBecomeF32, "integers-become-f32"},
    {Rule::kNarrowStaysNarrow, "narrow-stays-narrow"},
    {Rule::kComplexInfinity, "complex-infinity"},
    {Rule::kRounding, "rounding"},
};

}  // namespace

std::span<const Rule> all_rules() {
  static const auto rules = [] {
    std::array<Rule, std::size(kNamedRules)> all;
    std::transform(std::begin(kNamedRules), std::end(kNamedRules), all.begin(),
                   [](const NamedRule& named) { return named.rule; });
    return all;
  }();
  return rules;
}

std::string_view rule_name(Rule rule) {
  for (const NamedRule& named : kNamedRules)
    if (named.rule == rule) return named.name;
  return {};
}

}  // namespace meshard::conformance

// Which values of a body to keep for its backward pass, if no policy of the user says so.
#pragma once
#include <functional>
#include <set>

#include "meshard/graph/node.h"

namespace meshard {

/// Orders values of one program as they were recorded.
struct ValueOrder {
  bool operator()(const Value& a, const Value& b) const {
    return a->id() != b->id() ? a->id() < b->id() : a.index() < b.index();
  }
};
using ValueSet = std::set<Value, ValueOrder>;

/// Returns the values to keep so that all of `needed` can be computed again from them, at the least
/// cost. Each value in between is either kept, or computed again from its operands:
///
/// - Keeping a value costs its bytes: it is written, held until the backward pass, and read.
/// - Computing it again costs, per element, 0, 1/8, 1 or 16 bytes for the recomputation kFree,
///   kArithmetic, kFunction or kSeries (OpTraits). That is about the traffic that takes as long on
///   processors that do 10 to 20 operations per byte. Ops with kNever are not computed again.
/// - Values for which `is_available` is true cost nothing; they are not in the result.
///
/// Of sets with equal costs, the one nearest to the operands is returned. The costs are those of
/// whole values, however they are sharded.
ValueSet cheapest_residuals(const ValueSet& needed,
                            const std::function<bool(const Value&)>& is_available);

}  // namespace meshard

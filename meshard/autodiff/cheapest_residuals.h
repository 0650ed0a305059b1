// Which values of a body to keep for its backward pass, if no policy of the user says so.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <vector>

#include "meshard/graph/node.h"

namespace meshard {

// The minimum cut of a directed graph with capacities.

/// A directed graph in which to find a minimum cut.
class MinimumCut {
 public:
  using Capacity = std::int64_t;
  /// The capacity of an arc that no cut contains.
  static constexpr Capacity kUnbounded = std::int64_t{1} << 61;

  /// Adds a vertex and returns its number; the first one is 0.
  std::size_t add_vertex();
  /// Adds an arc. @pre both vertices exist, and `capacity` is not negative.
  void add_arc(std::size_t from, std::size_t to, Capacity capacity);

  /// Returns for each vertex whether it is on the source's side of a minimum cut; of several
  /// minimum cuts, of the one with the most vertices on that side. Can be called once.
  /// @pre every path from source to sink has an arc with less than unbounded capacity, and these
  /// capacities sum to less than kUnbounded.
  std::vector<bool> source_side(std::size_t source, std::size_t sink);

 private:
  // Arc a and its reverse, a ^ 1, are neighbors.
  struct Arc {
    std::size_t to;
    Capacity left;
  };
  bool find_levels(std::size_t source, std::size_t sink);
  bool augment(std::size_t source, std::size_t sink);

  std::vector<Arc> arcs_;
  std::vector<std::vector<std::size_t>> from_;  // the arcs that leave each vertex
  std::vector<std::size_t> level_, next_;
};

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
/// Of sets with equal costs, the one nearest to the operands is returned. The costs come from
/// whole values, however they are sharded.
ValueSet cheapest_residuals(const ValueSet& needed,
                            const std::function<bool(const Value&)>& is_available);

}  // namespace meshard

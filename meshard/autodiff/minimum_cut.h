// The minimum cut of a directed graph with capacities.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace meshard {

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

}  // namespace meshard

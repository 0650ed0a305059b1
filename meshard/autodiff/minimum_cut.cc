#include "meshard/autodiff/minimum_cut.h"

#include <algorithm>

namespace meshard {
namespace {

constexpr std::size_t kNotReached = static_cast<std::size_t>(-1);

}  // namespace

std::size_t MinimumCut::add_vertex() {
  from_.emplace_back();
  return from_.size() - 1;
}

void MinimumCut::add_arc(std::size_t from, std::size_t to, Capacity capacity) {
  from_[from].push_back(arcs_.size());
  arcs_.push_back({to, capacity});
  from_[to].push_back(arcs_.size());
  arcs_.push_back({from, 0});
}

// The number of arcs with capacity left from each vertex to the sink. Returns false if the source
// does not reach it.
bool MinimumCut::find_levels(std::size_t source, std::size_t sink) {
  level_.assign(from_.size(), kNotReached);
  level_[sink] = 0;
  std::vector<std::size_t> queue{sink};
  for (std::size_t at = 0; at < queue.size(); ++at)
    for (std::size_t arc : from_[queue[at]]) {
      std::size_t before = arcs_[arc].to;
      if (level_[before] != kNotReached || arcs_[arc ^ 1].left == 0) continue;
      level_[before] = level_[queue[at]] + 1;
      queue.push_back(before);
    }
  return level_[source] != kNotReached;
}

// Sends flow along one shortest path. Returns false if there is none.
bool MinimumCut::augment(std::size_t source, std::size_t sink) {
  std::vector<std::size_t> path;
  std::size_t at = source;
  while (at != sink) {
    std::size_t& next = next_[at];
    while (next < from_[at].size()) {
      const Arc& arc = arcs_[from_[at][next]];
      if (arc.left > 0 && level_[arc.to] != kNotReached && level_[arc.to] + 1 == level_[at]) break;
      ++next;
    }
    if (next < from_[at].size()) {
      path.push_back(from_[at][next]);
      at = arcs_[path.back()].to;
    } else if (path.empty()) {
      return false;
    } else {
      // A dead end.
      at = arcs_[path.back() ^ 1].to;
      path.pop_back();
      ++next_[at];
    }
  }
  Capacity flow = kUnbounded;
  for (std::size_t arc : path) flow = std::min(flow, arcs_[arc].left);
  for (std::size_t arc : path) {
    arcs_[arc].left -= flow;
    arcs_[arc ^ 1].left += flow;
  }
  return true;
}

// Dinic's algorithm.
std::vector<bool> MinimumCut::source_side(std::size_t source, std::size_t sink) {
  while (find_levels(source, sink)) {
    next_.assign(from_.size(), 0);
    while (augment(source, sink)) {
    }
  }
  // What reaches the sink with the capacities left is on its side in every minimum cut.
  std::vector<bool> side;
  for (std::size_t level : level_) side.push_back(level == kNotReached);
  return side;
}

}  // namespace meshard

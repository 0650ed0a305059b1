#include "meshard/partitioned/internal/combine.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>

namespace meshard::internal {
namespace {

struct Key {
  Reduction reduction;
  pjrt::ElementType element;
  std::vector<std::int32_t> ranks, sizes;
  friend bool operator<(const Key& a, const Key& b) {
    return std::tie(a.reduction, a.element, a.ranks, a.sizes) <
           std::tie(b.reduction, b.element, b.ranks, b.sizes);
  }
};

// The element type of all parts; kInvalid if they differ.
pjrt::ElementType only_element(const HloShape& shape) {
  if (!shape.is_tuple) return shape.element;
  pjrt::ElementType element = pjrt::ElementType::kInvalid;
  for (std::size_t i = 0; i < shape.tuple.size(); ++i) {
    if (i > 0 && shape.tuple[i].element != element) return pjrt::ElementType::kInvalid;
    element = shape.tuple[i].element;
  }
  return element;
}

bool can_combine(const EditedInstruction& instruction, const FoundCollective* found) {
  return found != nullptr && found->kind == CollectiveCallKind::kAllReduce &&
         found->part == CollectivePart::kWhole && instruction.original != nullptr &&
         only_element(instruction.original->shape) != pjrt::ElementType::kInvalid &&
         instruction.original->shape.byte_size() <= kMostCombinedBytes;
}

// How many combinable all-reduces each instruction needs one after the other.
struct Level {
  std::size_t level = 0;
  bool combinable = false;
};

std::vector<Level> levels_of(const EditedComputation& computation,
                             const CollectiveOf& collective_of) {
  std::vector<Level> levels(computation.instructions.size());
  std::unordered_map<std::int64_t, std::size_t> after;  // by id
  for (std::size_t i = 0; i < levels.size(); ++i) {
    const EditedInstruction& each = computation.instructions[i];
    for (std::int64_t id : each.operands) levels[i].level = std::max(levels[i].level, after[id]);
    for (std::int64_t id : each.control_predecessors)
      levels[i].level = std::max(levels[i].level, after[id]);
    levels[i].combinable = can_combine(each, collective_of(each));
    after[each.id] = levels[i].level + (levels[i].combinable ? 1 : 0);
  }
  return levels;
}

std::int64_t bytes_of(const EditedComputation& computation, std::size_t index) {
  return computation.instructions[index].original->shape.byte_size();
}

// All-reduces of one level, each with those that it can be combined with, in the order of the
// first of them.
std::vector<std::vector<std::size_t>> buckets_of(const EditedComputation& computation,
                                                 const std::vector<std::size_t>& all_reduces,
                                                 const CollectiveOf& collective_of) {
  std::vector<std::vector<std::size_t>> buckets;
  std::map<Key, std::pair<std::size_t, std::int64_t>> open;  // index of the bucket, its bytes
  for (std::size_t index : all_reduces) {
    const EditedInstruction& each = computation.instructions[index];
    const FoundCollective& found = *collective_of(each);
    Key key{found.reduction, only_element(each.original->shape), found.ranks, found.sizes};
    std::int64_t bytes = bytes_of(computation, index);
    auto [at, is_new] = open.try_emplace(std::move(key), buckets.size(), 0);
    if (!is_new && at->second.second + bytes > kMostBytesOfCall) {
      at->second = {buckets.size(), 0};
      is_new = true;
    }
    if (is_new) buckets.emplace_back();
    buckets[at->second.first].push_back(index);
    at->second.second += bytes;
  }
  return buckets;
}

}  // namespace

std::vector<std::vector<std::size_t>> combined_order(const EditedComputation& computation,
                                                     const CollectiveOf& collective_of) {
  std::vector<Level> levels = levels_of(computation, collective_of);
  std::size_t count = 0;
  for (const Level& level : levels) count = std::max(count, level.level + 1);
  std::vector<std::vector<std::size_t>> others(count), all_reduces(count);
  for (std::size_t i = 0; i < levels.size(); ++i)
    (levels[i].combinable ? all_reduces : others)[levels[i].level].push_back(i);

  std::vector<std::vector<std::size_t>> order, unchanged;
  bool combines = false;
  for (std::size_t level = 0; level < count; ++level) {
    for (std::size_t index : others[level]) order.push_back({index});
    for (auto& bucket : buckets_of(computation, all_reduces[level], collective_of)) {
      combines |= bucket.size() > 1;
      order.push_back(std::move(bucket));
    }
  }
  if (combines) return order;
  for (std::size_t i = 0; i < levels.size(); ++i) unchanged.push_back({i});
  return unchanged;
}

}  // namespace meshard::internal

// Tested in meshard/ops/composite/einsum_test.cc.
#include "meshard/ops/composite/internal/contraction.h"

#include <algorithm>
#include <limits>

#include "meshard/base/error.h"
#include "meshard/ops/all.h"
#include "meshard/ops/definition/operand.h"

namespace meshard::internal {
namespace {

std::int64_t position(const Labels& labels, int label) {
  return std::find(labels.begin(), labels.end(), label) - labels.begin();
}

// Removes dimensions of size 1 that broadcast over a larger dimension of `other`.
Labeled without_stretched(const Labeled& x, const Labeled& other) {
  Dimensions gone;
  Labels left;
  for (std::size_t d = 0; d < x.labels.size(); ++d) {
    int label = x.labels[d];
    auto i = static_cast<std::int64_t>(d);
    if (holds(other.labels, label) && x.tensor.shape()[i] == 1 &&
        other.tensor.shape()[position(other.labels, label)] != 1)
      gone.push_back(i);
    else
      left.push_back(label);
  }
  return gone.empty() ? x : Labeled{squeeze(x.tensor, gone), left};
}

void check_sizes(std::string_view name, const Labeled& lhs, const Labeled& rhs,
                 SourceLocation where) {
  for (std::size_t d = 0; d < lhs.labels.size(); ++d) {
    if (!holds(rhs.labels, lhs.labels[d])) continue;
    auto i = static_cast<std::int64_t>(d);
    std::int64_t j = position(rhs.labels, lhs.labels[d]);
    std::int64_t a = lhs.tensor.shape()[i], b = rhs.tensor.shape()[j];
    if (a != b && a != 1 && b != 1)
      throw_invalid(where, "[", name, "] sizes differ: lhs ", lhs.tensor.type(), " dimension ", i,
                    " = ", a, ", rhs ", rhs.tensor.type(), " dimension ", j, " = ", b);
  }
}

Labels joined(const Labels& a, const Labels& b) {
  Labels out = a;
  for (int label : b) out.push_back(label);
  return out;
}

// Reorders a sharding of dimensions labeled `from` to dimensions labeled `to`.
Sharding relabeled(std::string_view name, const Sharding& sharding, const Labels& from,
                   const Labels& to, SourceLocation where) {
  if (sharding.rank() != from.size())
    throw_invalid(where, "[", name, "] result_sharding describes ", sharding.rank(),
                  " dimensions, the result has ", from.size(), ": ", sharding);
  std::vector<DimensionSpec> dimensions;
  for (int label : to)
    dimensions.push_back(sharding.spec()[static_cast<std::size_t>(position(from, label))]);
  return Sharding(sharding.mesh(), PartitionSpec(std::move(dimensions)), where);
}

// Searches contraction orders. Sets of operands are bit masks.
class Orders {
 public:
  using Step = std::pair<std::size_t, std::size_t>;

  Orders(const std::vector<Labels>& operands, const Labels& keep,
         const std::map<int, std::int64_t>& sizes)
      : operands_(operands), keep_(keep), sizes_(sizes) {}

  // The cheapest tree over all operands, by dynamic programming over subsets.
  std::vector<Step> best() {
    std::size_t all = (std::size_t{1} << operands_.size()) - 1;
    std::vector<double> cost(all + 1, 0);
    std::vector<std::size_t> half(all + 1, 0);
    for (std::size_t set = 1; set <= all; ++set) {
      std::size_t first = set & (~set + 1);
      if (set == first) continue;
      cost[set] = std::numeric_limits<double>::infinity();
      // Tries every split into two parts; `rest` is the part that contains the first operand.
      for (std::size_t rest = (set - 1) & set; rest > 0; rest = (rest - 1) & set) {
        if (!(rest & first)) continue;
        double total = cost[rest] + cost[set ^ rest] + multiplications(rest, set ^ rest);
        if (total < cost[set]) {
          cost[set] = total;
          half[set] = rest;
        }
      }
    }
    steps_.clear();
    for (std::size_t i = 0; i < operands_.size(); ++i) present_.push_back(std::size_t{1} << i);
    emit(half, all);
    return steps_;
  }

  // Repeatedly contracts the cheapest pair.
  std::vector<Step> greedy() {
    std::vector<Labels> left = operands_;
    steps_.clear();
    while (left.size() > 1) {
      Step step{0, 1};
      double least = std::numeric_limits<double>::infinity();
      for (std::size_t i = 0; i < left.size(); ++i)
        for (std::size_t j = i + 1; j < left.size(); ++j)
          if (double cost = product(joined(left[i], left[j])); cost < least) {
            least = cost;
            step = {i, j};
          }
      Labels both = joined(left[step.first], left[step.second]), stays;
      left.erase(left.begin() + static_cast<std::ptrdiff_t>(step.second));
      left.erase(left.begin() + static_cast<std::ptrdiff_t>(step.first));
      for (int label : both) {
        bool needed = holds(keep_, label);
        for (const Labels& other : left) needed |= holds(other, label);
        if (needed && !holds(stays, label)) stays.push_back(label);
      }
      left.push_back(stays);
      steps_.push_back(step);
    }
    return steps_;
  }

 private:
  // The product of the sizes of the labels in a list, each counted once.
  double product(const Labels& labels) const {
    double total = 1;
    Labels seen;
    for (int label : labels) {
      if (holds(seen, label)) continue;
      seen.push_back(label);
      total *= static_cast<double>(sizes_.at(label));
    }
    return total;
  }

  // The labels of the product of a set: those that the result or operands outside the set need.
  Labels left_of(std::size_t set) const {
    Labels labels;
    for (std::size_t i = 0; i < operands_.size(); ++i) {
      if (!(set >> i & 1)) continue;
      for (int label : operands_[i]) {
        bool needed = holds(keep_, label) || set == (std::size_t{1} << i);
        for (std::size_t k = 0; k < operands_.size(); ++k)
          needed |= !(set >> k & 1) && holds(operands_[k], label);
        if (needed && !holds(labels, label)) labels.push_back(label);
      }
    }
    return labels;
  }

  double multiplications(std::size_t a, std::size_t b) const {
    return product(joined(left_of(a), left_of(b)));
  }

  // Appends the steps that compute `set`, and moves it to the end of the present operands.
  void emit(const std::vector<std::size_t>& half, std::size_t set) {
    if (half[set] == 0) return;
    std::size_t parts[] = {half[set], set ^ half[set]};
    for (std::size_t part : parts) emit(half, part);
    std::size_t places[2];
    for (std::size_t i = 0; i < 2; ++i)
      places[i] = static_cast<std::size_t>(std::find(present_.begin(), present_.end(), parts[i]) -
                                           present_.begin());
    if (places[0] > places[1]) std::swap(places[0], places[1]);
    present_.erase(present_.begin() + static_cast<std::ptrdiff_t>(places[1]));
    present_.erase(present_.begin() + static_cast<std::ptrdiff_t>(places[0]));
    present_.push_back(set);
    steps_.emplace_back(places[0], places[1]);
  }

  const std::vector<Labels>& operands_;
  const Labels& keep_;
  const std::map<int, std::int64_t>& sizes_;
  std::vector<std::size_t> present_;
  std::vector<Step> steps_;
};

}  // namespace

std::vector<std::pair<std::size_t, std::size_t>> contraction_order(
    const std::vector<Labels>& operands, const Labels& keep,
    const std::map<int, std::int64_t>& sizes) {
  if (operands.size() < 2) return {};
  if (operands.size() == 2) return {{0, 1}};
  Orders orders(operands, keep, sizes);
  return operands.size() <= 8 ? orders.best() : orders.greedy();
}

Labeled sum_out(Labeled x, const Labels& keep) {
  Dimensions gone;
  Labels left;
  for (std::size_t d = 0; d < x.labels.size(); ++d) {
    if (holds(keep, x.labels[d]))
      left.push_back(x.labels[d]);
    else
      gone.push_back(static_cast<std::int64_t>(d));
  }
  if (gone.empty()) return x;
  return {sum(x.tensor, gone), left};
}

Labeled contract(std::string_view name, Labeled lhs, Labeled rhs, const Labels& keep,
                 SourceLocation where, const std::optional<Sharding>& sharding) {
  check_sizes(name, lhs, rhs, where);
  Labeled a = without_stretched(lhs, rhs), b = without_stretched(rhs, lhs);
  // Labels that only one side has are summed before the product.
  a = sum_out(std::move(a), joined(keep, b.labels));
  b = sum_out(std::move(b), joined(keep, a.labels));
  DotDimensions dims;
  Labels batch, free;
  for (std::size_t d = 0; d < a.labels.size(); ++d) {
    int label = a.labels[d];
    auto i = static_cast<std::int64_t>(d);
    if (!holds(b.labels, label)) {
      free.push_back(label);
    } else if (holds(keep, label)) {
      batch.push_back(label);
      dims.lhs_batch.push_back(i);
      dims.rhs_batch.push_back(position(b.labels, label));
    } else {
      dims.lhs_contracting.push_back(i);
      dims.rhs_contracting.push_back(position(b.labels, label));
    }
  }
  for (int label : b.labels)
    if (!holds(a.labels, label)) free.push_back(label);
  Labels labels = joined(batch, free);
  std::optional<Sharding> wanted;
  if (sharding) wanted = relabeled(name, *sharding, keep, labels, where);
  return {dot_general(a.tensor, b.tensor, std::move(dims), std::nullopt, std::move(wanted)),
          labels};
}

Tensor ordered(const Labeled& x, const Labels& order) {
  if (x.labels == order) return x.tensor;
  Dimensions permutation;
  for (int label : order) permutation.push_back(position(x.labels, label));
  return permute_dims(x.tensor, std::move(permutation));
}

}  // namespace meshard::internal

// Tested in meshard/ops/composite/einsum_test.cc.
#include "meshard/ops/composite/contraction.h"

#include <algorithm>

#include "meshard/base/error.h"
#include "meshard/ops/composite/rearrange.h"
#include "meshard/ops/dot_general.h"
#include "meshard/ops/permute_dims.h"
#include "meshard/ops/reduction.h"

namespace meshard {
namespace {

bool holds(const Labels& labels, int label) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}

std::int64_t position(const Labels& labels, int label) {
  return std::find(labels.begin(), labels.end(), label) - labels.begin();
}

// Removes dimensions of size 1 that are to stretch over a larger one of `other`.
Labelled without_stretched(const Labelled& x, const Labelled& other) {
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
  return gone.empty() ? x : Labelled{squeeze(x.tensor, gone), left};
}

void check_sizes(std::string_view name, const Labelled& lhs, const Labelled& rhs,
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

// A sharding of dimensions labelled `from`, for dimensions labelled `to`.
Sharding relabelled(std::string_view name, const Sharding& sharding, const Labels& from,
                    const Labels& to, SourceLocation where) {
  if (sharding.rank() != from.size())
    throw_invalid(where, "[", name, "] result_sharding describes ", sharding.rank(),
                  " dimensions, the result has ", from.size(), ": ", sharding);
  std::vector<DimensionSpec> dimensions;
  for (int label : to)
    dimensions.push_back(sharding.spec()[static_cast<std::size_t>(position(from, label))]);
  return Sharding(sharding.mesh(), PartitionSpec(std::move(dimensions)), where);
}

}  // namespace

Labelled sum_out(Labelled x, const Labels& keep) {
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

Labelled contract(std::string_view name, Labelled lhs, Labelled rhs, const Labels& keep,
                  SourceLocation where, const std::optional<Sharding>& sharding) {
  check_sizes(name, lhs, rhs, where);
  Labelled a = without_stretched(lhs, rhs), b = without_stretched(rhs, lhs);
  // What only one side has is summed before the product.
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
  if (sharding) wanted = relabelled(name, *sharding, keep, labels, where);
  return {dot_general(a.tensor, b.tensor, std::move(dims), std::nullopt, std::move(wanted)),
          labels};
}

Tensor ordered(const Labelled& x, const Labels& order) {
  if (x.labels == order) return x.tensor;
  Dimensions permutation;
  for (int label : order) permutation.push_back(position(x.labels, label));
  return permute_dims(x.tensor, std::move(permutation));
}

}  // namespace meshard

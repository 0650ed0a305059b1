// Products of tensors with labeled dimensions: the basis of matmul, tensordot and einsum.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "meshard/base/inline_vector.h"
#include "meshard/base/source_location.h"
#include "meshard/graph/tensor.h"
#include "meshard/sharding/sharding.h"

namespace meshard::internal {

/// One label per dimension; dimensions with equal labels correspond.
using Labels = InlineVector<int, 6>;

/// A tensor with labeled dimensions; each label occurs once.
struct Labeled {
  Tensor tensor;
  Labels labels;
};

/// The product of two tensors, summed over the labels that are not in `keep`. Labels that are in
/// both and in `keep` are batch dimensions. A dimension of size 1 is broadcast. The result's labels
/// are in the cheapest order. `sharding` is the result's, with its dimensions in the order of
/// `keep`.
/// @error sizes of one label differ, or the sharding has another rank than `keep`; the message
/// begins with `[name]`.
Labeled contract(std::string_view name, Labeled lhs, Labeled rhs, const Labels& keep,
                 SourceLocation where, const std::optional<Sharding>& sharding = std::nullopt);

/// The best order in which to multiply several operands. Each step names two entries of a list, the
/// smaller index first; they are removed, and their product is appended. For up to 8 operands the
/// total number of multiplications is minimal (exhaustive search); for more, each step is the
/// cheapest one (greedy). `sizes` gives the size of every label.
std::vector<std::pair<std::size_t, std::size_t>> contraction_order(
    const std::vector<Labels>& operands, const Labels& keep,
    const std::map<int, std::int64_t>& sizes);

/// The sum of x over the labels that are not in `keep`.
Labeled sum_out(Labeled x, const Labels& keep);

/// The dimensions permuted to the order of `order`. @pre the same labels
Tensor ordered(const Labeled& x, const Labels& order);

}  // namespace meshard::internal

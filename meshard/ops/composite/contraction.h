// Products of labelled tensors: what matmul, tensordot and einsum are made of.
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

namespace meshard {

/// A label for each dimension; equal labels belong together.
using Labels = InlineVector<int, 6>;

/// A tensor with labelled dimensions, each label once.
struct Labelled {
  Tensor tensor;
  Labels labels;
};

/// The product of two tensors, summed over the labels that are not in `keep`. Labels in both and
/// kept are batch dimensions. A dimension of size 1 stretches to its partner. The result's labels
/// are in the order that is cheapest. `sharding`: of the result, its dimensions in the order of
/// `keep`.
/// @error sizes of one label differ, or the sharding has another rank than `keep`; the message
/// begins with `[name]`.
Labelled contract(std::string_view name, Labelled lhs, Labelled rhs, const Labels& keep,
                  SourceLocation where, const std::optional<Sharding>& sharding = std::nullopt);

/// In which order several operands are best multiplied: each step names two entries of a list,
/// first the smaller; they are taken out, and their product is put at its end. The sum of
/// multiplications over all steps is least for up to 8 operands (every way is tried); of more, each
/// step is the cheapest one. `sizes`: of every label.
std::vector<std::pair<std::size_t, std::size_t>> contraction_order(
    const std::vector<Labels>& operands, const Labels& keep,
    const std::map<int, std::int64_t>& sizes);

/// The sum over the labels that are not in `keep`.
Labelled sum_out(Labelled x, const Labels& keep);

/// The dimensions in the order of `order`. @pre the same labels
Tensor ordered(const Labelled& x, const Labels& order);

}  // namespace meshard

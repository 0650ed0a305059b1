// What is placed in partial manual regions: calls of every op, some composites, and gradients.
#pragma once
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "meshard/array/host_array.h"
#include "meshard/graph/tensor.h"

namespace meshard::partial_manual {

/// A function of tensors, with inputs for each of the two devices along the manual axis "x".
struct Subject {
  std::string op;
  std::string sample;
  std::vector<HostArray> inputs[2];
  std::function<std::vector<Tensor>(std::span<const Tensor>)> call;
  /// It has collectives over "x". Its expected value is that of a region over "x" alone.
  bool exchanges = false;
};

/// Why the samples of an op are not placed in a region; empty if they are.
std::string_view left_out(std::string_view op);

/// The calls of one op, or of one composite, with values from `seed`; then their gradients, if the
/// op moves, windows or contracts elements.
std::vector<Subject> subjects_of(std::string_view op, std::uint64_t seed);
/// All ops in the order of the table, then the composites.
std::vector<std::string> all_subjects();

}  // namespace meshard::partial_manual

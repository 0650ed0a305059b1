// Records the equal layers of an nn::Layers as one loop.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "meshard/graph/structure.h"
#include "meshard/graph/tensor.h"

namespace meshard::internal {

// How often layer_slice was recorded: without it there are no layers to search for.

/// The number of layer slices that this thread has recorded.
std::uint64_t layer_slices_recorded();

/// Begins before a function is recorded. rolled() then replaces the function's results by equal
/// ones for which equal layers, recorded one by one over the slices of an nn::Layers, are one scan.
/// What transforms the function next (a derivative, a batch, the compiler) sees one layer.
///
/// At least three layers are rolled, in the order of the slices or backward. All of them must
/// record the same operations in the same order, and may pass on values to the next layer only.
/// Otherwise they stay as they are, and UnrolledLayersScope collects the reason.
class RollingScope {
 public:
  RollingScope();
  std::vector<Tensor> rolled(std::vector<Tensor> results) const;

 private:
  std::uint64_t slices_, first_node_;
  std::size_t effects_;
};

/// f(arguments...), with equal layers rolled if the result is a structure of tensors. `arguments`
/// is a tuple.
template <class F, class Arguments>
auto apply_rolled(const F& f, Arguments&& arguments) {
  RollingScope rolling;
  auto result = std::apply(f, std::forward<Arguments>(arguments));
  if constexpr (structure::is_structure<decltype(result)>()) {
    std::vector<Tensor> tensors = rolling.rolled(structure::tensors(result));
    structure::move_into(result, std::span<Tensor>(tensors));
  }
  return result;
}

}  // namespace meshard::internal

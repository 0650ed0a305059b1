// The equal layers of a model, stacked.
#pragma once
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "meshard/base/fields.h"
#include "meshard/graph/structure.h"
#include "meshard/nn/maker.h"
#include "meshard/ops/composite/control_flow.h"

namespace meshard::nn {

namespace internal {

/// The number of layers of stacked tensors: the size of their first dimensions.
/// @error invalid argument: no tensors; tensors of rank 0, or with different numbers of layers.
std::int64_t num_layers(std::span<const Tensor> stacked, SourceLocation where);

/// Each tensor's slice of one layer. @error as num_layers; out of range: no such layer.
std::vector<Tensor> layer_of(std::span<const Tensor> stacked, std::int64_t layer,
                             SourceLocation where);

}  // namespace internal

/// A value: the equal layers of a model. Each parameter of all layers is one tensor, with the
/// layers along its first dimension. It is used like a vector of layers:
///
/// @code
/// nn::AxisRules rules;
/// auto make_all = [](nn::Maker& make) {
///   return nn::make_layers(make, 12, [](nn::Maker& one) { return nn::make_linear(one, 4, 4); });
/// };
/// nn::Layers<nn::Linear> layers = nn::create(rules, 1, make_all);
/// layers.stacked.weight.shape();  // [12, 4, 4]
/// auto f = jit([](const nn::Layers<nn::Linear>& model, Tensor x) {
///   for (const nn::Linear& layer : model) x = tanh(nn::linear(layer, x));
///   return x;
/// });
/// Tensor y = f(layers, ones({2, 4}));
/// @endcode
///
/// A loop over the layers, recorded by jit, grad, vmap or a body of control flow, becomes one loop
/// of the program (`scan`): one layer is differentiated and compiled, regardless of their number.
/// The layers must record the same operations, in the order of the layers or backward, and may pass
/// on values to the next layer only. Otherwise they are compiled one by one; JitStats::unrolled and
/// explain() report the reason.
///
/// In checkpoints, layer i is saved as element i of a vector would be: `blocks.3.weight`.
/// Optimizers regard each layer's parameters as parameters: weight_decay applies by their rank, and
/// zero_layout and Fsdp do not split the dimension of the layers.
template <class Layer>
struct Layers {
  using StackedPart = Layer;

  /// One layer whose tensors have the layers along their first dimension.
  Layer stacked;
  MESHARD_FIELDS(stacked)

  /// The number of a layer, and the caller's line.
  struct Index {
    template <std::integral I>
    Index(I number, SourceLocation line = SourceLocation::current())  // NOLINT: implicit
        : layer(static_cast<std::int64_t>(number)), where(line) {}
    std::int64_t layer;
    SourceLocation where;
  };

  /// The number of layers.
  /// @error invalid argument if the tensors have different numbers of layers, or if there are none
  std::size_t size(SourceLocation where = SourceLocation::current()) const {
    return static_cast<std::size_t>(internal::num_layers(structure::tensors(stacked), where));
  }

  /// One layer: slices of the stacked tensors. @error out of range; as size()
  Layer operator[](Index index) const {
    return structure::with_tensors(
        stacked, internal::layer_of(structure::tensors(stacked), index.layer, index.where));
  }

  /// Iterates over the layers; an element is a value.
  class Iterator {
   public:
    using value_type = Layer;
    using difference_type = std::ptrdiff_t;
    using iterator_category = std::input_iterator_tag;
    using reference = Layer;
    using pointer = void;

    Iterator() = default;
    Iterator(const Layers* layers, std::size_t layer, SourceLocation where)
        : layers_(layers), layer_(layer), where_(where) {}
    Layer operator*() const { return (*layers_)[Index(layer_, where_)]; }
    Iterator& operator++() {
      ++layer_;
      return *this;
    }
    Iterator operator++(int) { return std::exchange(*this, Iterator(layers_, layer_ + 1, where_)); }
    friend bool operator==(const Iterator& a, const Iterator& b) { return a.layer_ == b.layer_; }

   private:
    const Layers* layers_ = nullptr;
    std::size_t layer_ = 0;
    SourceLocation where_;
  };
  Iterator begin(SourceLocation where = SourceLocation::current()) const {
    return {this, 0, effective_source(where)};
  }
  Iterator end(SourceLocation where = SourceLocation::current()) const {
    return {this, size(where), where};
  }

  /// The layers as separate tensors.
  std::vector<Layer> unstacked(SourceLocation where = SourceLocation::current()) const {
    return {begin(where), end(where)};
  }
};

/// Stacks layers. @error as stack_structures: no layers; layers that differ in structure or types
template <class Layer>
Layers<Layer> stack_layers(const std::vector<Layer>& layers,
                           SourceLocation where = SourceLocation::current()) {
  return {stack_structures(layers, where)};
}

/// Creates `count` layers. `make_layer(maker)` returns one layer; its parameters are created
/// stacked, each by one program. They are equal to those of `count` calls of make_layer, one after
/// the other. make_layer is called twice.
/// @error invalid argument if `count` is not positive; errors of make_layer
template <class MakeLayer>
auto make_layers(Maker& make, std::int64_t count, const MakeLayer& make_layer,
                 SourceLocation where = SourceLocation::current()) {
  Maker counting = make.counting();
  make_layer(counting);
  Maker::Stacking stacking(make, count, counting, where);
  return Layers<std::remove_cvref_t<std::invoke_result_t<const MakeLayer&, Maker&>>>{
      make_layer(make)};
}

}  // namespace meshard::nn

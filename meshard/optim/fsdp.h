// Fully sharded data parallelism: parameters, gradients and optimizer states of a whole model, or
// the states alone, are split over the devices that would otherwise hold copies.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "meshard/graph/record.h"
#include "meshard/graph/structure.h"
#include "meshard/optim/parameter_step.h"

namespace meshard::optim {

namespace internal {
// Without its first `stacked` dimensions.
Tensor split_further(const Tensor& parameter, const std::string& axis, std::size_t stacked);
}  // namespace internal

/// The layout of an optimizer state that is split over one more mesh axis, usually "data". It
/// consists of abstract tensors, for the last argument of init(). Each has the sharding of its
/// parameter in `params`, except that the first dimension that is not split and is a multiple of
/// the axis's size is split over `axis`; the dimension of the layers in an nn::Layers is not. If
/// there is no such dimension, or the parameter already uses the axis, the sharding is the
/// parameter's.
///
/// A step then sums gradients into parts (a reduce-scatter), computes each part where its state is,
/// and gathers the new parameters: stage 1 of ZeRO (Rajbhandari et al., 2020).
/// @error invalid argument: a parameter without a sharding; not found: a mesh without the axis.
template <class Params>
Params zero_layout(const Params& params, const std::string& axis = "data",
                   SourceLocation where = SourceLocation::current()) {
  CallScope line(where, "in optim::zero_layout");
  std::vector<Tensor> tensors = structure::tensors(params);
  std::vector<std::size_t> stacked = internal::stacked_dimensions(params);
  for (std::size_t i = 0; i < tensors.size(); ++i)
    tensors[i] = internal::split_further(tensors[i], axis, stacked[i]);
  return structure::with_tensors(params, tensors);
}

/// How much is sharded: the stages of ZeRO (Rajbhandari et al., 2020).
enum class FsdpStage : std::uint8_t {
  kState = 1,       ///< the optimizer's state
  kGradients = 2,   ///< also the gradients: each device receives the sum of only its part
  kParameters = 3,  ///< also the parameters: each is gathered where it is used (PyTorch's FSDP)
};

/// Options of Fsdp: what is split, and over which mesh axis.
struct FsdpOptions {
  /// The mesh axis over which tensors are split instead of replicated. Default: "data".
  std::string axis = "data";
  FsdpStage stage = FsdpStage::kParameters;
  /// Parameters with fewer elements (per layer, if stacked by nn::Layers) are not split: gathering
  /// them costs more than splitting saves. Default: 0, all are split.
  std::int64_t smallest = 0;
};

namespace internal {
Tensor fsdp_layout(const Tensor& parameter, std::size_t stacked, const FsdpOptions& options);
}  // namespace internal

/// A value: the shardings of a model's parameters, gradients and optimizer state under fully
/// sharded data parallelism. Specified once for the whole model; the training step does not change.
///
/// Parameters are split as by zero_layout: the first dimension that is not yet split and is a
/// multiple of the axis's size is split over the axis. The dimension of the layers in an nn::Layers
/// is never split. Splits along other axes (tensor parallelism)
/// are kept.
///
/// @code
/// Mesh mesh({{"data", 4}});
/// Tensor w = mark_sharding(ones({8, 2}), mesh, P());
/// Tensor x = mark_sharding(ones({4, 8}), mesh, P("data"));
/// optim::Adam adam;
/// optim::Fsdp<Tensor> fsdp(w, {.stage = optim::FsdpStage::kParameters});
/// w = fsdp.place(w);                                      // P("data", none)
/// optim::AdamState<Tensor> state = optim::init(adam, w, fsdp.state_layout());
/// auto step = jit([&](Tensor weight, optim::AdamState<Tensor> before, Tensor batch) {
///   auto loss = [&](Tensor v) { return mean(square(matmul(batch, v))); };
///   Tensor gradient = fsdp.mark_gradients(grad(loss)(weight));
///   return optim::update(adam, weight, gradient, before);
/// });
/// std::tie(w, state) = step(w, state, x);                 // w is laid out as before
/// @endcode
template <class Params>
class Fsdp {
 public:
  /// @error as zero_layout: a parameter without a sharding; a mesh without the axis.
  explicit Fsdp(const Params& params, FsdpOptions options = {},
                SourceLocation where = SourceLocation::current())
      : options_(std::move(options)), split_(params) {
    CallScope line(where, "in optim::Fsdp");
    std::vector<Tensor> tensors = structure::tensors(params);
    std::vector<std::size_t> stacked = internal::stacked_dimensions(params);
    for (std::size_t i = 0; i < tensors.size(); ++i)
      tensors[i] = internal::fsdp_layout(tensors[i], stacked[i], options_);
    split_ = structure::with_tensors(params, tensors);
  }

  const FsdpOptions& options() const { return options_; }
  /// The shardings of the optimizer's state, as abstract tensors: pass them as the last argument of
  /// init().
  const Params& state_layout() const { return split_; }
  /// The parameters in their sharding between steps: split in stage 3, otherwise unchanged.
  Params place(const Params& params, SourceLocation where = SourceLocation::current()) const {
    CallScope line(where, "in optim::Fsdp::place");
    return options_.stage >= FsdpStage::kParameters ? laid_out(params) : params;
  }
  /// The gradients, marked with the sharding in which they are summed: split from stage 2 on,
  /// otherwise unchanged. Call it in the step, between grad and update.
  Params mark_gradients(const Params& gradients,
                        SourceLocation where = SourceLocation::current()) const {
    CallScope line(where, "in optim::Fsdp::mark_gradients");
    return options_.stage >= FsdpStage::kGradients ? laid_out(gradients) : gradients;
  }

 private:
  Params laid_out(const Params& params) const {
    std::vector<Tensor> tensors = structure::tensors(params);
    std::vector<Tensor> places = internal::for_parameters(params, split_, "optim.Fsdp", "layout");
    for (std::size_t i = 0; i < tensors.size(); ++i)
      tensors[i] = internal::laid_out(tensors[i], places[i]);
    return structure::with_tensors(params, tensors);
  }

  FsdpOptions options_;
  Params split_;
};

}  // namespace meshard::optim

// vmap: turns a function of one batch member into a function of the whole batch.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "meshard/graph/effects.h"
#include "meshard/graph/record.h"
#include "meshard/graph/structure.h"
#include "meshard/graph/tensor.h"
#include "meshard/ops/batching/batch_axes.h"
#include "meshard/ops/rolling/roll_layers.h"

namespace meshard {

/// Options of vmap().
struct VmapOptions {
  /// The batch dimension of the arguments: one for all tensors, one for each argument (and all
  /// tensors in it), or one for each tensor. `none`: all members share the tensor. Default: 0.
  BatchAxes in_axes = 0;
  /// The batch dimension of the results: one for all tensors, or one for each. `none`: the result
  /// is the same for all members and gets no batch dimension. Default: 0.
  BatchAxes out_axes = 0;
  /// The number of members. Needed only if no argument is mapped; by default the arguments
  /// determine it.
  std::optional<std::int64_t> axis_size = std::nullopt;
  /// The mesh axis that splits the batch dimension of values whose sharding f specifies
  /// (mark_sharding, sharding_constraint). If it is empty (default), or the mesh does not have this
  /// axis, or the axis is manual, the compiler chooses.
  std::string mesh_axis = {};
};

}  // namespace meshard

namespace meshard::internal {

// One call of a batched function.
class VmapCall {
 public:
  VmapCall(const VmapOptions& options, std::size_t arguments, std::size_t tensors,
           SourceLocation where);

  /// The tensor that f receives in place of the next tensor. `argument` is the position of the
  /// argument that it belongs to.
  Tensor enter(const Tensor& tensor, std::size_t argument, const std::string& path);
  /// The results of all members. @pre `results` is what f returned for the members
  std::vector<Tensor> leave(std::vector<Tensor> results);

 private:
  const BatchAxis& in_axis(std::size_t argument) const;
  Tensor leave(const Tensor& result, const Tensor& batched, std::size_t i, std::size_t count) const;

  const VmapOptions& options_;
  std::size_t arguments_, next_ = 0;
  SourceLocation where_;
  std::optional<std::int64_t> size_;
  std::string sized_by_;  // the argument or option that determined size_
  std::vector<Tensor> members_, batched_;
  EffectScope effects_;  // of f
};

}  // namespace meshard::internal

namespace meshard {

/// A function that runs `f` on every member of a batch at once. f takes tensors of one member and
/// is called once; every op that it records on members is recorded for all of them.
///
///     auto distances = vmap([](Tensor a, Tensor b) { return sqrt(sum(square(a - b))); });
///     distances(x, y);                                   // x, y f32[100,3]: f32[100]
///     vmap(f, {.in_axes = {0, none}})(batch, weights);   // all members share the weights
///
/// Arguments and the result may be structures of tensors; numbers in them are shared. Tensors that
/// f captures are shared too. vmap nests, and combines with grad and jit in any order. Each member
/// gets the random numbers that its key produces without vmap.
/// @error invalid argument: the sizes along the mapped dimensions differ (naming both arguments); a
/// mapped tensor has no such dimension; nothing is mapped and axis_size is not set; the number of
/// axes matches neither the arguments nor the tensors; a result differs between members although
/// its out_axes entry is none. Unimplemented: an op without a batch rule.
template <class F>
auto vmap(F f, VmapOptions options = {}, SourceLocation where = SourceLocation::current()) {
  return [f = std::move(f), options = std::move(options),
          where = effective_source(where)]<class... Arguments>(const Arguments&... arguments) {
    internal::VmapCall call(options, sizeof...(Arguments),
                            (std::size_t{0} + ... + structure::tensors(arguments).size()), where);
    [[maybe_unused]] std::size_t position = 0;
    [[maybe_unused]] auto enter = [&]<class T>(const T& argument) {
      std::vector<Tensor> members;
      structure::for_each(
          argument,
          [&](const auto& leaf, const std::string& path) {
            if constexpr (structure::Leaf<std::remove_cvref_t<decltype(leaf)>>)
              members.push_back(call.enter(leaf, position, path));
          },
          cat("argument ", position));
      ++position;
      return structure::with_tensors(argument, members);
    };
    // Braces evaluate the elements from left to right.
    std::tuple<Arguments...> members{enter(arguments)...};
    auto result = [&] {
      internal::KeepOperandsScope
          keep;  // nothing is computed or placed while members have no value
      return internal::apply_rolled(f, std::move(members));
    }();
    std::vector<Tensor> results = call.leave(structure::tensors(result));
    return structure::with_tensors(std::move(result), results);
  };
}

}  // namespace meshard

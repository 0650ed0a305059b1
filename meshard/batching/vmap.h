// vmap: a function of one member of a batch becomes one of the whole batch.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "meshard/batching/batch_axes.h"
#include "meshard/graph/record.h"
#include "meshard/graph/structure.h"
#include "meshard/graph/tensor.h"

namespace meshard {

/// What vmap may be told.
struct VmapOptions {
  /// Where the members lie in the arguments: one for all tensors, one for each argument (and all
  /// tensors in it), or one for each tensor. `none`: all members share it.
  BatchAxes in_axes = 0;
  /// Where they are to lie in the result: one for all tensors, or one for each. `none`: the members
  /// have it in common, and it comes as it is.
  BatchAxes out_axes = 0;
  /// How many members there are; needed only where no argument is mapped.
  std::optional<std::int64_t> axis_size = std::nullopt;
  /// The mesh axis that is to split the batch where f says how a value lies (mark_sharding,
  /// sharding_constraint). Empty: there the compiler chooses. Meshes without that axis, and where
  /// it is manual: likewise.
  std::string mesh_axis = {};
};

}  // namespace meshard

namespace meshard::internal {

// One call of a batched function.
class VmapCall {
 public:
  VmapCall(const VmapOptions& options, std::size_t arguments, std::size_t tensors,
           SourceLocation where);

  /// What f sees of the next tensor, in order; `argument` is the position of its argument.
  Tensor enter(const Tensor& tensor, std::size_t argument, const std::string& path);
  /// The results of all members. @pre what f gave for the members
  std::vector<Tensor> leave(const std::vector<Tensor>& results) const;

 private:
  const BatchAxis& in_axis(std::size_t argument) const;
  Tensor leave(const Tensor& result, const Tensor& batched, std::size_t i, std::size_t count) const;

  const VmapOptions& options_;
  std::size_t arguments_, tensors_, next_ = 0;
  SourceLocation where_;
  std::optional<std::int64_t> size_;
  std::string sized_by_;  // what the size is known from
  std::vector<Tensor> members_, batched_;
};

}  // namespace meshard::internal

namespace meshard {

/// The function that runs `f` on every member of a batch at once. f takes tensors of one member and
/// is called once; every op that it records on members is recorded for all of them.
///
///     auto distances = vmap([](Tensor a, Tensor b) { return sqrt(sum(square(a - b))); });
///     distances(x, y);                                   // x, y f32[100,3]: f32[100]
///     vmap(f, {.in_axes = {0, none}})(batch, weights);   // all members share the weights
///
/// Arguments and the result may be structures of tensors; numbers in them are shared. Tensors that
/// f captures are shared too. vmaps nest, and go with grad and jit in any order. Random numbers of
/// a member are those that its key gives alone.
/// @error invalid argument: the sizes along the mapped dimensions differ (naming both arguments);
/// a mapped tensor has no such dimension; nothing is mapped and no axis_size said; another number
/// of axes than arguments or tensors; a result that differs between members where out_axes says
/// none. Unimplemented: an op without a batch rule.
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
    // Braces, so that arguments enter from the left.
    std::tuple<Arguments...> members{enter(arguments)...};
    auto result = [&] {
      KeepOperandsScope keep;  // nothing is computed or placed while members have no value
      return std::apply(f, std::move(members));
    }();
    std::vector<Tensor> results = call.leave(structure::tensors(result));
    return structure::with_tensors(std::move(result), results);
  };
}

}  // namespace meshard

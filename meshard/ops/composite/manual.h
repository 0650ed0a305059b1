// manual: a function that defines what each device does with its shards.
#pragma once
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "meshard/graph/annotation.h"
#include "meshard/graph/effects.h"
#include "meshard/graph/record.h"
#include "meshard/graph/structure.h"
#include "meshard/graph/tensor.h"
#include "meshard/ops/composite/uneven_parts.h"
#include "meshard/sharding/partition_spec.h"

namespace meshard {

/// A value: partition specs as a parameter: one, or a list.
class SpecList {
 public:
  SpecList(PartitionSpec spec) : specs_{std::move(spec)} {}                 // NOLINT: a parameter
  SpecList(std::initializer_list<PartitionSpec> specs) : specs_(specs) {}   // NOLINT
  SpecList(std::vector<PartitionSpec> specs) : specs_(std::move(specs)) {}  // NOLINT

  std::size_t size() const { return specs_.size(); }
  const PartitionSpec& operator[](std::size_t i) const { return specs_[i]; }

 private:
  std::vector<PartitionSpec> specs_;
};

/// Options of manual().
struct ManualOptions {
  /// The axes that are manual. Empty (default): all axes of the mesh. The compiler chooses how
  /// local values are sharded over the other axes.
  std::vector<std::string> axes = {};
  /// The full shape of each tensor of the result. Needed if a dimension does not divide evenly.
  /// Empty (default): local sizes are multiplied by the number of devices that split them.
  std::vector<Shape> out_shapes = {};
  /// The padding of arguments whose dimensions the devices do not divide evenly. Empty (default):
  /// such an argument is an error. For an f that sums its parts, 0 or ReduceKind::kSum; for one
  /// that takes their maximum, ReduceKind::kMax. valid_size() gives the number of other elements.
  std::optional<PadValue> pad = std::nullopt;
};

}  // namespace meshard

namespace meshard::internal {

// Converts tensors between full and local values for one manual function.
class ManualRegion {
 public:
  ManualRegion(const Mesh& mesh, SpecList in_specs, SpecList out_specs,
               const ManualOptions& options, SourceLocation where);

  /// The region for a call with these arguments. The call is nested in the manual function that is
  /// being recorded or that the arguments are local to.
  /// @error invalid argument if that function is over another mesh, or also over some of these
  /// axes.
  ManualRegion called_with(std::span<const Tensor> arguments) const;
  /// The manual axes of the local values; nothing varies yet.
  const ManualAxes& place() const { return place_; }
  /// The spec of tensor `i` of all tensors. It belongs to argument `argument` of `arguments`; a
  /// list has one spec per argument or one per tensor.
  const PartitionSpec& in_spec(std::size_t i, std::size_t tensors, std::size_t argument,
                               std::size_t arguments) const;
  Tensor enter(const Tensor& full, const PartitionSpec& spec) const;
  /// Tensor `i` of `tensors` of the result.
  Tensor leave(const Tensor& local, std::size_t i, std::size_t tensors) const;

 private:
  void check_spec(const PartitionSpec& spec, std::string_view which) const;
  void check_enters(const Tensor& value) const;

  Mesh mesh_;  // as passed by the user
  ManualAxes place_;
  SpecList in_specs_, out_specs_;
  std::vector<Shape> out_shapes_;
  std::optional<PadValue> pad_;
  SourceLocation where_;
};

}  // namespace meshard::internal

namespace meshard {

/// Returns a function that runs `f` on the shards of every device of `mesh`. `f` receives each
/// device's part of the arguments, as `in_specs` split them, and returns each device's part of the
/// results, which `out_specs` combine. JAX calls this shard_map.
///
/// @code no-run
/// Mesh mesh({{"x", 4}});
/// auto total = manual(mesh, P("x"), P(), [](const Tensor& part) {
///   return all_reduce(sum(part), "x");            // part is f32[2] on each of the four devices
/// });
/// Tensor y = total(ones({8}));                    // 8
/// @endcode
///
/// Arguments and the result may be structures of tensors. A list of in_specs has one spec per
/// argument, used for all tensors in it, or one per tensor. out_specs has one spec for all tensors,
/// or one per tensor. Inside, f may use the collectives (all_reduce, all_gather, reduce_scatter,
/// all_to_all, collective_permute) and axis_index over the manual axes.
///
/// A local value varies over the axes that split it. In an out_spec, an axis may be omitted only if
/// the result does not vary over it. A dimension that does not divide evenly is an error, unless
/// ManualOptions::pad specifies with what the last parts are padded. Gradients of the padding are
/// dropped; ManualOptions::out_shapes specifies where it is removed from the results.
///
/// f may use full values only as arguments, except free values: C++ numbers, constants, rank-0
/// tensors that were not recorded or are already computed, and values computed only from these.
///
/// f may call a manual function over other axes of the same mesh, with values that are local to f.
/// The inner function splits each local value further, and inside it the axes of both functions are
/// manual. Its specs name its own axes; its results are local to f again. It may also use f's
/// rank-0 local values without passing them as arguments. JAX calls this a nested shard_map.
///
/// @code
/// Mesh mesh({{"x", 2}, {"y", 2}});
/// auto inner = manual(mesh, P("y"), P(), [](const Tensor& part) {
///   return all_reduce(sum(part), {"x", "y"});     // part is f32[2]
/// }, {.axes = {"y"}});
/// auto outer = manual(mesh, P("x"), P(), inner, {.axes = {"x"}});
/// Tensor y = outer(ones({8}));                    // 8
/// @endcode
///
/// @error a spec does not fit (see full_to_shard and shard_to_full); the number of specs is wrong;
/// a dimension of an argument does not divide evenly, and no padding is given;
/// in a nested call: another mesh than that of the outer function, or axes that are already manual
/// there; a slice of a mesh whose axes are not axes of its root.
template <class F>
auto manual(const Mesh& mesh, SpecList in_specs, SpecList out_specs, F f,
            ManualOptions options = {}, SourceLocation where = SourceLocation::current()) {
  internal::ManualRegion made(mesh, std::move(in_specs), std::move(out_specs), options,
                              effective_source(where));
  return [made, f = std::move(f)]<class... Arguments>(const Arguments&... arguments) {
    std::vector<Tensor> all;
    [[maybe_unused]] auto collect = [&](const auto& argument) {
      for (const Tensor& tensor : structure::tensors(argument)) all.push_back(tensor);
    };
    (collect(arguments), ...);
    internal::ManualRegion region = made.called_with(all);
    std::size_t tensors = all.size();
    [[maybe_unused]] std::size_t next = 0, position = 0;
    [[maybe_unused]] auto enter = [&]<class T>(const T& argument) {
      std::vector<Tensor> locals;
      for (const Tensor& full : structure::tensors(argument))
        locals.push_back(
            region.enter(full, region.in_spec(next++, tensors, position, sizeof...(Arguments))));
      ++position;
      return structure::with_tensors(argument, locals);
    };
    // Braces guarantee that arguments enter from left to right.
    std::tuple<Arguments...> locals{enter(arguments)...};
    std::vector<Tensor> full, parts;
    auto result = [&] {
      internal::ManualScope scope(region.place());
      internal::EffectScope effects;
      auto returned = std::apply(f, std::move(locals));
      parts = structure::tensors(returned);
      effects.attach(parts);
      return returned;
    }();
    for (std::size_t i = 0; i < parts.size(); ++i)
      full.push_back(region.leave(parts[i], i, parts.size()));
    return structure::with_tensors(std::move(result), full);
  };
}

}  // namespace meshard

// manual: a function that says what each device does, on the part of the data that it holds.
#pragma once
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "meshard/graph/annotation.h"
#include "meshard/graph/record.h"
#include "meshard/graph/structure.h"
#include "meshard/graph/tensor.h"
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

/// What manual() may be told besides.
struct ManualOptions {
  /// The axes that are manual; none: all of the mesh. The compiler lays local values out along the
  /// others as it likes.
  std::vector<std::string> axes = {};
  /// The full shape of each tensor of the result, where a dimension does not divide. None: local
  /// sizes are multiplied by the devices that split them.
  std::vector<Shape> out_shapes = {};
};

}  // namespace meshard

namespace meshard::internal {

// How tensors enter and leave one manual function.
class ManualRegion {
 public:
  ManualRegion(const Mesh& mesh, SpecList in_specs, SpecList out_specs,
               const ManualOptions& options, SourceLocation where);

  /// The same for a call with these arguments, inside the manual function that is being recorded or
  /// that they are local to.
  /// @error invalid argument if that one is over another mesh, or over some of these axes too.
  ManualRegion called_with(std::span<const Tensor> arguments) const;
  /// Of the local values; nothing varies yet.
  const ManualAxes& place() const { return place_; }
  /// The spec of tensor `i` of all, which belongs to argument `argument` of `arguments`: a list has
  /// one for each argument, or one for each tensor.
  const PartitionSpec& in_spec(std::size_t i, std::size_t tensors, std::size_t argument,
                               std::size_t arguments) const;
  Tensor enter(const Tensor& full, const PartitionSpec& spec) const;
  /// Tensor `i` of `tensors` of the result.
  Tensor leave(const Tensor& local, std::size_t i, std::size_t tensors) const;

 private:
  void check_spec(const PartitionSpec& spec, std::string_view which) const;
  void check_enters(const Tensor& value) const;

  Mesh mesh_;  // as the user named it
  ManualAxes place_;
  SpecList in_specs_, out_specs_;
  std::vector<Shape> out_shapes_;
  SourceLocation where_;
};

}  // namespace meshard::internal

namespace meshard {

/// The function that runs `f` on every device of `mesh`: f takes what each device holds of the
/// arguments, as `in_specs` split them, and returns what each device holds of the results, which
/// `out_specs` put together. JAX calls this shard_map.
///
/// @code no-run
/// Mesh mesh({{"x", 4}});
/// auto total = manual(mesh, P("x"), P(), [](const Tensor& part) {
///   return all_reduce(sum(part), "x");            // part is f32[2] on each of the four devices
/// });
/// Tensor y = total(ones({8}));                    // 8
/// @endcode
///
/// Arguments and the result may be structures of tensors. A list of in_specs has one spec for each
/// argument, used for all tensors in it, or one for each tensor; out_specs has one for all tensors,
/// or one for each. Inside, f may use the collectives (all_reduce, all_gather, reduce_scatter,
/// all_to_all, collective_permute) and axis_index over the manual axes.
///
/// A local value varies over the axes that split it. Values that are equal on all devices along an
/// axis may leave without naming it; those that vary may not. A dimension that does not divide is
/// padded with zeros on the way in; ManualOptions::out_shapes says where the padding is cut off on
/// the way out.
///
/// Full values may not be used in f but as arguments; C++ numbers, constants and tensors of rank 0
/// may.
///
/// f may call a manual function over other axes of the same mesh, with values that are local to f:
/// that one splits what each device holds further, and inside of it the axes of both are manual.
/// Its specs name its own axes; its results are local to f again. JAX calls this a nested
/// shard_map.
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
/// @error a spec does not fit (see full_to_shard and shard_to_full); the number of specs; inside
/// another function given to manual: another mesh than that one's, axes that are manual there
/// already; a slice of a mesh whose axes are not axes of its root.
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
    // Braces, so that arguments enter from the left.
    std::tuple<Arguments...> locals{enter(arguments)...};
    auto result = [&] {
      ManualScope scope(region.place());
      return std::apply(f, std::move(locals));
    }();
    std::vector<Tensor> full, parts = structure::tensors(result);
    for (std::size_t i = 0; i < parts.size(); ++i)
      full.push_back(region.leave(parts[i], i, parts.size()));
    return structure::with_tensors(std::move(result), full);
  };
}

}  // namespace meshard

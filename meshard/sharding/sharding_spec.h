// Shardings for tensors that do not exist yet.
#pragma once
#include <concepts>
#include <optional>
#include <string>

#include "meshard/sharding/sharding.h"

namespace meshard {

/// A value: a mesh and a partition spec for tensors that do not exist yet, such as the batches of a
/// data loader. If the spec is shorter than a tensor's rank, the remaining dimensions are not
/// split.
///
/// In a **minibatch**, dimension 0 is the batch. It is split evenly over all devices of the mesh.
/// The rows keep the order of the batch, whatever the order of the devices. The tensor is the batch
/// of this process, which has all devices of the mesh.
///
/// @code
/// ShardingSpec spec = ShardingSpec::minibatch(Mesh({{"data", 4}}), P("data"));
/// spec.can_apply(ones({8, 3}));                  // true
/// spec.find_sharding({6, 3}).has_value();        // false: 6 rows for 4 devices
/// ShardingSpec::parse(spec.to_string()).value() == spec;  // true
/// @endcode
class ShardingSpec {
 public:
  /// @error as Sharding's.
  ShardingSpec(Mesh mesh, const PartitionSpec& spec,
               SourceLocation where = SourceLocation::current());
  /// @error as Sharding's; the first dimension is not split over all devices of the mesh.
  static ShardingSpec minibatch(Mesh mesh, const PartitionSpec& spec,
                                SourceLocation where = SourceLocation::current());

  const Mesh& mesh() const { return sharding_.mesh(); }
  const PartitionSpec& spec() const { return sharding_.spec(); }
  bool is_minibatch() const { return is_minibatch_; }

  /// True if a tensor of this rank has all the dimensions that the spec names.
  bool can_apply(std::size_t rank) const { return rank >= sharding_.rank(); }
  /// True if sharding() succeeds for this tensor: its rank and its sizes fit.
  template <class Tensor>
  requires requires(const Tensor& x) {
    { x.shape() } -> std::convertible_to<IntView>;
  }
  bool can_apply(const Tensor& x) const { return find_sharding(x.shape()).has_value(); }
  /// The sharding of a tensor with these dimensions.
  /// @error more dimensions in the spec than in the tensor; a minibatch whose rows do not divide
  /// evenly; an uneven dimension on a mesh that rejects uneven sizes (Mesh::with_uneven).
  Sharding sharding(IntView dims, SourceLocation where = SourceLocation::current()) const;
  /// The same, but returns none instead of throwing.
  std::optional<Sharding> find_sharding(IntView dims) const;

  /// `ShardingSpec(mesh<data=8>, P("data", none))`, with `, minibatch`.
  std::string to_string() const;
  static Result<ShardingSpec> parse(std::string_view text);
  friend bool operator==(const ShardingSpec&, const ShardingSpec&) = default;

 private:
  Sharding sharding_;
  bool is_minibatch_ = false;
};

}  // namespace meshard

// Shardings in DTensor's form: a placement for each axis of a mesh.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "meshard/sharding/sharding.h"

namespace meshard {

/// A value: the mesh axis splits dimension `dim`; a negative `dim` counts from the last. Not the
/// data of one device: that is a LocalShard.
struct Shard {
  constexpr explicit Shard(std::int64_t dimension) : dim(dimension) {}
  std::int64_t dim;
  /// `Shard(dim=0)`.
  std::string to_string() const;
  friend bool operator==(const Shard&, const Shard&) = default;
};
/// A value: all devices along the axis hold the same data.
struct Replicate {
  /// `Replicate()`.
  std::string to_string() const;
  friend bool operator==(const Replicate&, const Replicate&) = default;
};
/// A value: each device along the axis holds a partial result, not reduced yet. "sum", "max"
/// and "min" correspond to an unreduced axis of a Sharding.
struct Partial {
  Partial() = default;
  explicit Partial(std::string reduction) : reduce_op(std::move(reduction)) {}
  std::string reduce_op = "sum";
  /// `Partial(sum)`.
  std::string to_string() const;
  friend bool operator==(const Partial&, const Partial&) = default;
};

/// A value: how one mesh axis distributes a tensor.
using Placement = std::variant<Replicate, Shard, Partial>;
/// `Shard(dim=0)`, `Replicate()`, `Partial(sum)`.
std::string to_string(const Placement& placement);

/// A value: a Placement for each axis of a mesh, in the mesh's order.
///
/// Axes that split the same dimension split it in mesh order, the first axis most significant, like
/// axes("x", "y"). Uneven dimensions are cut as by Sharding: ceil(size / tiles)
/// each. (DTensor splits axis by axis, which gives other shards if several axes split one uneven
/// dimension.)
///
/// @code
/// Mesh mesh({{"data", 2}, {"model", 4}});
/// Sharding s = Placements({Shard(0), Replicate()}).sharding(mesh, 2);
/// s.spec().to_string();                     // P("data", none)
/// Placements::of(s).value().to_string();    // (Shard(dim=0), Replicate())
/// @endcode
class Placements {
 public:
  Placements() = default;
  Placements(std::initializer_list<Placement> placements) : all_(placements) {}
  explicit Placements(std::vector<Placement> placements) : all_(std::move(placements)) {}

  /// The placements of a sharding, for the axes of sharding.mesh(). They do not record open
  /// dimensions and explicitly replicated axes.
  /// @error invalid argument: a sub-axis splits a dimension or is unreduced, or axes split a
  /// dimension in an order other than the mesh's. Placements cannot express these.
  static Result<Placements> of(const Sharding& sharding);

  std::size_t size() const { return all_.size(); }
  const Placement& operator[](std::size_t axis) const { return all_[axis]; }

  /// The sharding of a tensor of `rank` dimensions over this mesh.
  /// @error invalid argument: the number of placements is not the number of axes; a dimension out
  /// of range; a Partial with a reduction other than "sum", which a Sharding cannot express.
  Sharding sharding(const Mesh& mesh, std::size_t rank,
                    SourceLocation where = SourceLocation::current()) const;

  /// `(Shard(dim=0), Replicate())`, as Python prints a tuple; a single one is `(Shard(dim=0),)`.
  std::string to_string() const;
  /// Parses this form, and `[Shard(0), Replicate()]` as Python programs write it.
  static Result<Placements> parse(std::string_view text);
  friend bool operator==(const Placements&, const Placements&) = default;

 private:
  std::vector<Placement> all_;
};

}  // namespace meshard

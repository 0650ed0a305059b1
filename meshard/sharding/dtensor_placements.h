// Shardings as DTensor writes them: what each axis of a mesh does with a tensor.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "meshard/sharding/sharding.h"

namespace meshard::dtensor {

/// A value: the axis splits a dimension; a negative one counts from the last.
struct Shard {
  std::int64_t dim = 0;
  friend bool operator==(const Shard&, const Shard&) = default;
};
/// A value: each device along the axis holds the same.
struct Replicate {
  friend bool operator==(const Replicate&, const Replicate&) = default;
};
/// A value: each device along the axis holds a part that is still to be reduced; "sum" is what an
/// unreduced axis of a Sharding means.
struct Partial {
  std::string reduce_op = "sum";
  friend bool operator==(const Partial&, const Partial&) = default;
};

/// A value: what one axis does.
using Placement = std::variant<Shard, Replicate, Partial>;
/// `Shard(dim=0)`, `Replicate()`, `Partial(sum)`.
std::string to_string(const Placement& placement);

/// A value: a Placement for each axis of a mesh, in the mesh's order.
///
/// Axes that split the same dimension split it in the mesh's order, the first axis into the largest
/// parts, as axes("x", "y") does. Where a dimension does not divide, the shards are those of
/// Sharding: ceil(size / tiles) each. (DTensor cuts axis by axis, which differs for several axes on
/// one uneven dimension.)
///
/// @code
/// using dtensor::Placements, dtensor::Replicate;
/// Mesh mesh({{"data", 2}, {"model", 4}});
/// Sharding s = Placements({dtensor::Shard{0}, Replicate{}}).sharding(mesh, 2);
/// s.spec();                                 // P("data", none)
/// Placements::of(s).value().to_string();    // (Shard(dim=0), Replicate())
/// @endcode
class Placements {
 public:
  Placements() = default;
  Placements(std::initializer_list<Placement> placements) : all_(placements) {}
  explicit Placements(std::vector<Placement> placements) : all_(std::move(placements)) {}

  /// Those of a sharding, for the axes of sharding.mesh(). Open dimensions and axes that are
  /// explicitly replicated do not show in them.
  /// @error invalid argument: a dimension is split by a part of an axis, or by axes in another
  /// order than the mesh's; no placements say that.
  static Result<Placements> of(const Sharding& sharding);

  std::size_t size() const { return all_.size(); }
  const Placement& operator[](std::size_t axis) const { return all_[axis]; }

  /// The sharding of a tensor of `rank` dimensions over this mesh.
  /// @error invalid argument: not one placement for each axis; a dimension outside the tensor; a
  /// partial value of another reduction than "sum", which no Sharding can say.
  Sharding sharding(const Mesh& mesh, std::size_t rank,
                    SourceLocation where = SourceLocation::current()) const;

  /// `(Shard(dim=0), Replicate())`, as Python prints them; of one, `(Shard(dim=0),)`.
  std::string to_string() const;
  /// Reads these, and `[Shard(0), Replicate()]`, as Python programs write them.
  static Result<Placements> parse(std::string_view text);
  friend bool operator==(const Placements&, const Placements&) = default;

 private:
  std::vector<Placement> all_;
};

}  // namespace meshard::dtensor

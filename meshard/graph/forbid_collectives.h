// Forbids communication over mesh axes while a program is recorded.
#pragma once
#include <string>
#include <vector>

#include "meshard/base/source_location.h"
#include "meshard/graph/node.h"
#include "meshard/sharding/sharding.h"

namespace meshard {

struct Annotations;

/// A scope. While it is alive, an op that this thread records is an error at its line if it would
/// communicate over one of these mesh axes: it sums over a dimension that they split, needs one
/// whole, shifts elements along it, or reshards a value; or it is a collective over them in a
/// manual function. Nothing is compiled. Scopes nest: the axes of all count.
///
/// What communicates is known for explicit axes and for manual ones. Along an automatic axis the
/// compiler decides, so an op on a value that may be split by it is an error, too.
/// Functions that are jitted are recorded again when they are called in the scope. Reading a value
/// on the host is not checked.
///
/// ```
/// Mesh mesh({{"data", 2, AxisKind::kExplicit}, {"model", 4, AxisKind::kExplicit}});
/// Tensor x = mark_sharding(ones({8, 16}), mesh, P("data", "model"));
/// ForbidCollectives quiet({"model"});
/// Tensor y = tanh(x);     // nothing moves
/// sum(x, 1);              // error: [sum] communicates over axis "model"
/// ```
class ForbidCollectives {
 public:
  /// @error invalid argument: no axis
  explicit ForbidCollectives(std::vector<std::string> axes,
                             SourceLocation where = SourceLocation::current());
  ~ForbidCollectives();
  ForbidCollectives(const ForbidCollectives&) = delete;
  ForbidCollectives& operator=(const ForbidCollectives&) = delete;

  const std::vector<std::string>& axes() const { return axes_; }
  const SourceLocation& where() const { return where_; }
  /// The enclosing scope, or nullptr.
  const ForbidCollectives* around() const { return around_; }

 private:
  std::vector<std::string> axes_;
  SourceLocation where_;
  const ForbidCollectives* around_;
};

namespace internal {

/// Checks a node that is being recorded in a scope.
/// @param results its annotations; null if it has none
/// @error invalid argument at the node's line: it communicates over an axis, or whether it does is
/// not known; names the axis, the operand and the scope
void check_no_collectives(const Node& node, const Annotations* results);

/// The same for a value on devices that is about to be resharded.
void check_no_move(const Value& value, const Sharding& to, const SourceLocation& where);

}  // namespace internal
}  // namespace meshard

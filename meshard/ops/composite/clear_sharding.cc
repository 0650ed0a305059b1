#include "meshard/ops/composite/clear_sharding.h"

#include "meshard/graph/leaf.h"
#include "meshard/graph/named_mesh.h"
#include "meshard/graph/record.h"
#include "meshard/graph/sharding_mark.h"
#include "meshard/ops/definition/attributes.h"
#include "meshard/ops/definition/op_table.h"
#include "meshard/ops/definition/operand.h"
#include "meshard/ops/identity.h"
#include "meshard/ops/reshape.h"

namespace meshard {
namespace {

// A sharding whose dimensions are all open.
Sharding wholly_open(const Mesh& mesh, std::int64_t rank) {
  return Sharding(mesh, PartitionSpec(std::vector<DimensionSpec>(static_cast<std::size_t>(rank),
                                                                 DimensionSpec(unconstrained))));
}

}  // namespace

Tensor clear_sharding(In x) {
  Tensor cleared = operand_tensor("clear_sharding", x);
  if (cleared.value().storage() && !only_recording())
    return is_unplaced(cleared.value()) ? cleared
                                        : make_unplaced(cleared.value(), effective_source(x.where));
  // The input of a differentiated function may also be a marked value, but the values before it are
  // not part of the derivative.
  if (internal::recorder().keep_operands == 0)
    // A mark that was already computed no longer has an operand.
    while (marked_sharding(cleared.value()) && !cleared.value()->operands().empty())
      cleared = Tensor(cleared.value()->operands()[0]);
  // An argument's sharding is a fact of the trace; values after this node need not follow it.
  std::optional<Sharding> known = cleared.sharding();
  if (known && known->mesh().has_explicit_axes())
    return sharding_constraint(In(cleared, x.where), wholly_open(known->mesh(), cleared.rank()));
  if (!known && (only_recording() || !depends_on_placed(cleared.value()))) return cleared;
  // Records a new node, which is unplaced although its operand is placed.
  SourceLocation where = effective_source(x.where);
  Tensor same =
      record(reshape_op, make_attributes(ReshapeAttributes{cleared.shape()}), {&cleared}, where);
  same.value()->set_unplaced();
  return same;
}

}  // namespace meshard

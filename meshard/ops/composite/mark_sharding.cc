#include "meshard/ops/composite/mark_sharding.h"

#include "meshard/graph/abstract_tensor.h"
#include "meshard/graph/evaluator.h"
#include "meshard/graph/forbid_collectives.h"
#include "meshard/graph/leaf.h"
#include "meshard/graph/named_mesh.h"
#include "meshard/graph/sharding_mark.h"
#include "meshard/mesh/global_mesh.h"
#include "meshard/ops/all.h"
#include "meshard/ops/definition/define.h"
#include "meshard/ops/definition/op_table.h"
#include "meshard/sharding/check_even.h"
#include "meshard/sharding/dtensor_placements.h"
#include "meshard/sharding/sharding_spec.h"

namespace meshard {
namespace {

thread_local int strict_scopes = 0;

Tensor mark(const Tensor& x, const Sharding& sharding, SourceLocation where) {
  check_even(sharding, x.shape(), where);
  if (std::string_view why = why_not_unreduced(x.dtype(), sharding); !why.empty())
    throw_invalid(where, "[mark_sharding] ", x.type(), why,
                  ", so it cannot be unreduced: ", sharding);
  // In a trace, a number or a fully replicated value may follow other values to their devices;
  // recording the mark prevents that.
  bool may_follow = tracing() && sharding.is_fully_replicated() && !marked_sharding(x.value());
  if (x.sharding() == sharding && !may_follow) return x;
  if (!only_recording() && is_abstract(x)) return abstract_tensor(x.type(), sharding, where);
  if (!only_recording() && x.value().storage()) {
    if (internal::recorder().forbidden) internal::check_no_move(x.value(), sharding, where);
    return evaluator(where).place(x.value(), sharding, where);
  }
  return sharding_constraint(In(x, where), sharding);
}

void check_rank(const Tensor& x, std::size_t described, std::string_view text,
                SourceLocation where) {
  if (described > static_cast<std::size_t>(x.rank()))
    throw_invalid(where, "[mark_sharding] ", text, " describes ", described, " dimensions, ",
                  x.type(), " has ", x.rank());
  if (strict_scopes > 0 && described < static_cast<std::size_t>(x.rank()))
    throw_invalid(
        where, "[mark_sharding] ", text, " describes ", described, " dimensions, ", x.type(),
        " has ", x.rank(),
        ", and StrictSpecs requires an entry for each dimension: use `none` for the others");
}

}  // namespace

StrictSpecs::StrictSpecs() { ++strict_scopes; }
StrictSpecs::~StrictSpecs() { --strict_scopes; }

Tensor mark_sharding(In x, const Mesh& mesh, const PartitionSpec& spec) {
  SourceLocation where = effective_source(x.where);
  Tensor operand = operand_tensor("mark_sharding", x);
  check_rank(operand, spec.size(), spec.to_string(), where);
  return mark(operand, Sharding(mesh, spec, static_cast<std::size_t>(operand.rank()), where),
              where);
}

Tensor mark_sharding(In x, const Sharding& sharding) {
  SourceLocation where = effective_source(x.where);
  Tensor operand = operand_tensor("mark_sharding", x);
  check_rank(operand, sharding.rank(), sharding.to_string(), where);
  auto rank = static_cast<std::size_t>(operand.rank());
  return mark(operand, sharding.rank() < rank ? sharding.with_rank(rank, where) : sharding, where);
}

Tensor mark_sharding(In x, const Mesh& mesh, const Placements& placements) {
  SourceLocation where = effective_source(x.where);
  Tensor operand = operand_tensor("mark_sharding", x);
  return mark(operand, placements.sharding(mesh, static_cast<std::size_t>(operand.rank()), where),
              where);
}

Tensor mark_sharding(In x, const ShardingSpec& spec) {
  SourceLocation where = effective_source(x.where);
  Tensor operand = operand_tensor("mark_sharding", x);
  check_rank(operand, spec.spec().size(), spec.to_string(), where);
  return mark(operand, spec.sharding(operand.shape(), where), where);
}

Tensor mark_sharding(In x, const PartitionSpec& spec) {
  SourceLocation where = effective_source(x.where);
  return mark_sharding(In(operand_tensor("mark_sharding", x), where), require_global_mesh(where),
                       spec);
}

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

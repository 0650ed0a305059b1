#include "meshard/autodiff/grad.h"

#include "meshard/graph/annotation.h"
#include "meshard/graph/body.h"
#include "meshard/graph/leaf.h"
#include "meshard/graph/op_def.h"
#include "meshard/graph/sharding_mark.h"
#include "meshard/ops/composite/create.h"
#include "meshard/ops/reshape.h"
#include "meshard/ops/sharding_constraint.h"

namespace meshard {
extern const OpDef reshape_op;
}

namespace meshard::internal {
namespace {

// Inside manual axes all values of a loop or branch vary alike: a captured value that is the same
// on all devices is one value for each of them there. Its derivative is the sum of theirs, which no
// value inside can be.
void check_varies_alike(const Tensor& argument, const std::string& path, SourceLocation where) {
  if (!recorder().body) return;
  const ManualAxes* inside = manual_axes(recorder().body->inside(argument.value()));
  if (!inside) return;
  const ManualAxes* outside = manual_axes(argument.value());
  AxisSet copies = inside->varying - (outside ? outside->varying : AxisSet());
  if (copies.empty()) return;
  throw Error(ErrorCode::kUnimplemented,
              cat("[grad] ", path, ", ", argument.type(), ", is the same on all devices along ",
                  copies.to_string(inside->mesh),
                  ", and is captured by a loop or branch whose values differ there. Take the "
                  "gradient outside of the loop or branch"),
              where.known() ? where : argument.where())
      .with_note(cat("it was made at ", argument.where()));
}

}  // namespace

Tensor differentiation_input(const Tensor& argument, const std::string& path,
                             SourceLocation where) {
  const TensorType& type = argument.type(where);
  if (!is_inexact(type.dtype))
    throw_invalid(where.known() ? where : argument.where(), "[grad] ", path, " is ", type,
                  ": only floating-point tensors have gradients. Pass it as another argument");
  check_varies_alike(argument, path, where);
  // A reshape to its own shape, which the compiler drops. Where nothing around could depend on it,
  // another leaf on the same storage does: then lazy programs have one node less. Inside a body a
  // leaf would be one more captured value, and inside another differentiated function it would cut
  // the path to that one's input.
  Storage* storage = argument.value().storage();
  if (storage && !tracing() && recorder().keep_operands <= 1) {
    Tensor leaf = make_array(type, StoragePtr(storage), argument.where());
    // Where the compiler put a value that did not say how it lies is no part of it.
    if (!explicit_sharding(argument.value())) leaf.value().node()->annotate(nullptr);
    if (is_unplaced(argument.value())) leaf.value()->set_unplaced();
    return leaf;
  }
  return identity_of(argument);
}

Tensor identity_of(const Tensor& argument) {
  InheritSource line(argument.where());
  Tensor same = record(reshape_op, make_attributes(ReshapeAttributes{argument.shape()}),
                       {&argument}, argument.where());
  std::optional<Sharding> sharding = argument.sharding();
  return sharding ? sharding_constraint(same, *sharding) : same;
}

Tensor loss_seed(const Tensor& loss, SourceLocation where) {
  const TensorType& type = loss.type(where);
  if (!is_floating(type.dtype) || type.shape.rank() != 0)
    throw_invalid(loss.where(), "[grad] the function's result must be a float of rank 0, not ",
                  type, "; reduce it with mean or sum");
  InheritSource line(loss.where());
  return ones(type.shape, type.dtype);
}

}  // namespace meshard::internal

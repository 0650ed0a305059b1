#include "meshard/autodiff/grad.h"

#include "meshard/graph/annotation.h"
#include "meshard/graph/body.h"
#include "meshard/graph/leaf.h"
#include "meshard/graph/sharding_mark.h"
#include "meshard/ops/all.h"
#include "meshard/ops/definition/define.h"
#include "meshard/ops/definition/op_table.h"

namespace meshard::internal {
namespace {

// Inside manual axes, all values of a loop or branch vary over the same axes. A captured value that
// is unvarying outside counts as one value per device inside. Its derivative is the sum over the
// devices, which no value inside the body can represent.
void check_varies_alike(const Tensor& argument, const std::string& path, SourceLocation where) {
  if (!internal::recorder().body) return;
  const ManualAxes* inside = manual_axes(internal::recorder().body->inside(argument.value()));
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
  if (Tensor wide = wide_number(argument); wide.defined())
    return number_like(argument, identity_of(wide));
  // A reshape to its own shape, which the compiler removes. If no enclosing function can depend on
  // it, a new leaf on the same storage is used instead, which saves lazy programs a node. Inside a
  // body, a leaf would be another captured value; inside another differentiated function, it would
  // cut the path to that function's input.
  Storage* storage = argument.value().storage();
  if (storage && !tracing() && internal::recorder().keep_operands <= 1) {
    Tensor leaf = make_array(type, StoragePtr(storage), argument.where());
    // A sharding that the compiler chose is not part of the value.
    if (!explicit_sharding(argument.value())) leaf.value().node()->annotate(nullptr);
    if (is_unplaced(argument.value())) leaf.value()->set_unplaced();
    return leaf;
  }
  return identity_of(argument);
}

Tensor identity_of(const Tensor& argument) {
  internal::InheritSource line(argument.where());
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
  internal::InheritSource line(loss.where());
  return ones(type.shape, type.dtype);
}

}  // namespace meshard::internal

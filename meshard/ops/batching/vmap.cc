#include "meshard/ops/batching/vmap.h"

#include "meshard/ops/batching/batch_rule.h"
#include "meshard/ops/batching/batched_program.h"
#include "meshard/ops/movement.h"

namespace meshard::internal {
namespace {

// Moves dimension `from` of x to dimension `to`; the others keep their order.
Tensor with_dimension_moved(const Tensor& x, std::int64_t from, std::int64_t to) {
  if (from == to) return x;
  Dimensions order;
  for (int d = 0; d < x.shape().rank(); ++d)
    if (d != from) order.push_back(d);
  order.insert(order.begin() + to, from);
  return permute_dims(In(x, x.where()), std::move(order));
}

}  // namespace

VmapCall::VmapCall(const VmapOptions& options, std::size_t arguments, std::size_t tensors,
                   SourceLocation where)
    : options_(options), arguments_(arguments), where_(where) {
  std::size_t axes = options.in_axes.size();
  if (axes != 1 && axes != arguments && axes != tensors)
    throw_invalid(where_, "[vmap] ", axes, " in_axes for ", arguments, " arguments with ", tensors,
                  " tensors: give one for all, one for each argument, or one for each tensor");
  if (options.axis_size) {
    if (*options.axis_size < 0)
      throw_invalid(where_, "[vmap] axis_size = ", *options.axis_size, " is negative");
    size_ = options.axis_size;
    sized_by_ = "axis_size";
  }
}

const BatchAxis& VmapCall::in_axis(std::size_t argument) const {
  const BatchAxes& axes = options_.in_axes;
  if (axes.size() == 1) return axes[0];
  return axes[axes.size() == arguments_ ? argument : next_];
}

Tensor VmapCall::enter(const Tensor& tensor, std::size_t argument, const std::string& path) {
  if (!tensor.defined())
    throw_invalid(where_, "[vmap] ", path,
                  " has no value: it was default-constructed or moved from");
  const BatchAxis& axis = in_axis(argument);
  ++next_;
  if (axis.is_none()) return tensor;
  const TensorType& type = tensor.type();
  std::int64_t at = axis.dimension() < 0 ? axis.dimension() + type.rank() : axis.dimension();
  if (at < 0 || at >= type.rank())
    throw_invalid(where_, "[vmap] ", path, " is ", type, " made at ", tensor.where(),
                  ": it has no dimension ", axis.dimension(),
                  " to map over. If all members share it, set its in_axes entry to none");
  std::int64_t size = type.shape[at];
  if (size_ && *size_ != size)
    throw_invalid(where_, "[vmap] the sizes of the mapped dimensions differ: ", sized_by_, " = ",
                  *size_, ", ", path, " dimension ", at, " = ", size, " (", type, " made at ",
                  tensor.where(), ")");
  if (!size_) sized_by_ = cat(path, " dimension ", at);
  size_ = size;
  internal::InheritSource line(where_);
  batched_.push_back(with_dimension_moved(tensor, at, 0));
  members_.push_back(batch_member(batched_.back(), tensor.where()));
  return members_.back();
}

std::vector<Tensor> VmapCall::leave(std::vector<Tensor> results) {
  effects_.attach(results);
  if (!size_)
    throw_invalid(where_, "[vmap] no argument is mapped: set axis_size to the number of members");
  std::size_t axes = options_.out_axes.size();
  if (axes != 1 && axes != results.size())
    throw_invalid(where_, "[vmap] ", axes, " out_axes for ", results.size(),
                  " tensors of the result: give one for all, or one for each");
  std::vector<Tensor> batched =
      batch_program(results, members_, batched_, {*size_, options_.mesh_axis});
  std::vector<Tensor> out;
  for (std::size_t i = 0; i < results.size(); ++i)
    out.push_back(leave(results[i], batched[i], i, results.size()));
  return out;
}

Tensor VmapCall::leave(const Tensor& result, const Tensor& batched, std::size_t i,
                       std::size_t count) const {
  if (!result.defined()) throw_invalid(where_, "[vmap] tensor ", i, " of the result has no value");
  const BatchAxes& axes = options_.out_axes;
  const BatchAxis& axis = axes.size() == 1 ? axes[0] : axes[i];
  bool differs = batched.rank() > result.rank();
  if (axis.is_none()) {
    if (differs)
      throw_invalid(where_, "[vmap] tensor ", i, " of the ", count, " of the result, ",
                    result.type(), " made at ", result.where(),
                    ", differs between members, so its out_axes entry cannot be none");
    return batched;
  }
  int rank = result.shape().rank() + 1;
  std::int64_t to = axis.dimension() < 0 ? axis.dimension() + rank : axis.dimension();
  if (to < 0 || to >= rank)
    throw_invalid(where_, "[vmap] out_axes asks for dimension ", axis.dimension(), " of tensor ", i,
                  " of the result, which is ", result.type(), " for each member");
  internal::InheritSource line(result.where());
  Tensor whole = differs ? batched : repeated_for_batch(batched, *size_);
  return with_dimension_moved(whole, 0, to);
}

}  // namespace meshard::internal

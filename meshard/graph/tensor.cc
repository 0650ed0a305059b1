#include "meshard/graph/tensor.h"

#include <ostream>

#include "meshard/graph/abstract_tensor.h"
#include "meshard/graph/annotation.h"
#include "meshard/graph/evaluator.h"
#include "meshard/graph/leaf.h"
#include "meshard/graph/sharding_mark.h"

namespace meshard {

void Tensor::fail_undefined(SourceLocation where) {
  throw_invalid(where,
                "[tensor] this tensor has no value: it was default-constructed or moved from");
}

std::int64_t Tensor::dim(std::int64_t dimension, SourceLocation where) const {
  const Shape& extents = shape(where);
  return extents[normalize_dimension(dimension, extents.rank(), "tensor", where)];
}

HostArray Tensor::to_host(SourceLocation where) const {
  (void)type(where);
  if (!value_.storage()) {
    if (const ManualAxes* manual = manual_axes(value_))
      throw Error(ErrorCode::kFailedPrecondition,
                  cat("[tensor] a local value has no elements to read: it is ", *manual,
                      ", where each device has its own. Return it from the function given to "
                      "manual(), or bring it back with shard_to_full, and read the full value"),
                  where)
          .with_note(cat("it was recorded at ", value_->where().to_string()));
    if (value_->trace() != 0 || &value_->op() == &parameter_op)
      throw Error(
          ErrorCode::kFailedPrecondition,
          "[tensor] a traced value has no elements to read: inside jit and vmap only shapes and "
          "dtypes are known. Return it from the function and read the result",
          where)
          .with_note(cat("it was recorded at ", value_->where().to_string()));
    evaluator(where).evaluate(std::span(&value_, 1), where);
  }
  const Storage& storage = computed_storage(value_, where);
  Evaluator* running = storage.kind() == Storage::Kind::kDevice ? installed_evaluator() : nullptr;
  return running ? running->read(storage, where) : storage.to_host(where);
}

std::optional<Sharding> Tensor::sharding() const {
  if (!value_ || value_->is_unplaced() || manual_axes(value_)) return std::nullopt;
  if (const Sharding* known = leaf_sharding(value_)) return *known;
  if (std::optional<Sharding> marked = marked_sharding(value_)) return marked;
  const Sharding* part = explicit_sharding(value_);
  return part ? std::optional(*part) : std::nullopt;
}

std::optional<Sharding> Tensor::stored_sharding() const {
  const Storage* storage = value_ ? value_.storage() : nullptr;
  const Sharding* stored = storage ? storage->sharding() : nullptr;
  return stored ? std::optional(*stored) : std::nullopt;
}

std::string Tensor::placement() const {
  if (!value_) return "nowhere";
  if (Storage* storage = value_.storage()) return storage->placement();
  if (const ManualAxes* manual = manual_axes(value_)) return manual->to_string();
  return value_->trace() ? "traced" : "recorded";
}

std::string Tensor::to_string() const {
  if (!value_) return "tensor without a value";
  if (const ManualAxes* manual = manual_axes(value_)) return cat(value_.type(), " (", *manual, ")");
  if (!value_.storage() && (value_->trace() != 0 || &value_->op() == &parameter_op))
    return cat(value_.type(), " (traced)");
  if (is_abstract(*this)) return cat(value_.type(), " (abstract)");
  // Printing has no place for the caller's line; that of the value is the user's as well.
  SourceLocation where = value_->where();
  if (!value_.storage()) evaluator(where).evaluate(std::span(&value_, 1), where);
  std::string parts = computed_storage(value_, where).local_text(where);
  return parts.empty() ? to_host(where).to_string() : parts;
}

}  // namespace meshard

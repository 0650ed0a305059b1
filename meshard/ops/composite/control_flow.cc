#include "meshard/ops/composite/control_flow.h"

#include "meshard/graph/annotation.h"
#include "meshard/graph/explicit_sharding.h"
#include "meshard/graph/sharding_mark.h"
#include "meshard/ops/all.h"
#include "meshard/ops/definition/operand.h"

namespace meshard::internal {
namespace {

// The sharding that a carry keeps in every step: that of its initial value, if it has one. Not
// needed for explicit shardings, which are part of the value; a local value has none.
std::optional<Sharding> kept_sharding(const Tensor& carry) {
  if (explicit_sharding(carry.value())) return std::nullopt;
  return specified_sharding(carry);
}

Tensor kept(const Tensor& like, const Tensor& value) {
  std::optional<Sharding> sharding = kept_sharding(like);
  return sharding ? sharding_constraint(In(value, value.where()), *sharding) : value;
}

std::string described(const Tensor& tensor) {
  const Sharding* part = explicit_sharding(tensor.value());
  return part ? cat(tensor.type(), " @ ", *part) : cat(tensor.type());
}

// True if the body may return a carry with this explicit sharding. An initial value without one
// counts as whole.
bool keeps_part(const Tensor& in, const Tensor& out) {
  const Sharding *before = explicit_sharding(in.value()), *after = explicit_sharding(out.value());
  return (!before || after) && same_explicit_sharding(before, after);
}

}  // namespace

Tensor number_state(In number) {
  Tensor tensor = operand_tensor("loop", number);
  if (number.tensor || number.scalar.kind == ScalarKind::kBool) return tensor;
  const bool is_float = number.scalar.kind == ScalarKind::kFloat;
  return weak_number(astype(number, is_float ? DType::f64 : DType::i64));
}

BodyFunction keeping_carries(const CarryForm& form, std::span<const Tensor> carries,
                             BodyFunction body) {
  return [&form, carries, body = std::move(body)](std::span<const Tensor> parameters) {
    std::vector<Tensor> given(parameters.begin(), parameters.end());
    for (std::size_t i = 0; i < carries.size(); ++i) given[i] = kept(carries[i], given[i]);
    std::vector<Tensor> results = body(given);
    for (std::size_t i = 0; i < carries.size(); ++i) {
      if (!results[i].defined())
        throw_invalid(form.where, "[", form.op, "] ", form.paths[i],
                      " has no value in the result of the body");
      if (results[i].type() == given[i].type() && keeps_part(given[i], results[i])) continue;
      if (wide_number(given[i]).defined() && results[i].rank() == 0 &&
          can_replace(given[i], results[i].dtype()))
        continue;  // the number takes this dtype (trace_loop)
      throw Error(ErrorCode::kInvalidArgument,
                  cat("[", form.op, "] ", form.paths[i], " enters the body as ",
                      described(given[i]), ", but the body returns it as ", described(results[i])),
                  form.where)
          .with_note(cat("the returned value was made at ", results[i].where()));
    }
    return results;
  };
}

std::vector<Tensor> kept_results(std::span<const Tensor> carries, std::vector<Tensor> results) {
  for (std::size_t i = 0; i < carries.size(); ++i) results[i] = kept(carries[i], results[i]);
  return results;
}

std::int64_t scan_length(const std::vector<Tensor>& sliced, const std::vector<std::string>& paths,
                         std::optional<std::int64_t> length, SourceLocation where) {
  for (std::size_t i = 0; i < sliced.size(); ++i) {
    const TensorType& type = sliced[i].type(where);
    if (type.shape.rank() == 0)
      throw_invalid(where, "[scan] ", paths[i], " is ", type, ": it has no dimension to slice");
    if (length && type.shape[0] != *length)
      throw_invalid(where, "[scan] ", paths[i], ", ", type, ", has ", type.shape[0],
                    " slices, but ", i == 0 ? std::string("length") : paths[0], " specifies ",
                    *length);
    length = type.shape[0];
  }
  if (!length)
    throw_invalid(where, "[scan] without xs, ScanOptions::length must specify the number of steps");
  if (*length < 0) throw_invalid(where, "[scan] length = ", *length, " is negative");
  return *length;
}

void BranchForm::check(const std::vector<std::string>& paths, const std::vector<Tensor>& now) {
  for (std::size_t i = 0; i < now.size(); ++i) {
    if (!now[i].defined())
      throw_invalid(where, "[", op, "] ", paths[i], " has no value in the result of a function");
    if (known && now[i].type() != types[i])
      throw Error(ErrorCode::kInvalidArgument,
                  cat("[", op, "] ", paths[i], " is ", types[i], " in one function and ",
                      now[i].type(), " in another"),
                  where)
          .with_note(cat("the latter was made at ", now[i].where()));
    if (!known) types.push_back(now[i].type());
  }
  known = true;
}

Tensor index_state(std::int64_t number) {
  return constant(HostArray::scalar(static_cast<std::int32_t>(number)));
}

Tensor next_index(const Tensor& index) { return add(index, 1); }

Tensor index_is_less(const Tensor& index, const Tensor& end) { return less(index, end); }

Tensor bound(const In& number) {
  Tensor tensor = operand_tensor("fori_loop", number);
  if (is_floating(tensor.dtype()) || tensor.dtype() == DType::bool_ || tensor.rank() != 0)
    throw_invalid(effective_source(number.where),
                  "[fori_loop] a bound must be an integer of rank 0, not ", tensor.type());
  return astype(In(tensor, number.where), DType::i32);
}

Tensor case_of(const In& predicate) {
  Tensor tensor = operand_tensor("cond", predicate);
  if (tensor.dtype() != DType::bool_ || tensor.rank() != 0)
    throw_invalid(effective_source(predicate.where),
                  "[cond] the predicate must be a bool of rank 0, not ", tensor.type());
  return astype(In(tensor, predicate.where), DType::i32);
}

std::vector<Tensor> stack_each(const std::vector<std::vector<Tensor>>& structures,
                               SourceLocation where) {
  if (structures.empty()) throw_invalid(where, "[stack_structures] takes at least one structure");
  std::vector<Tensor> stacked;
  for (std::size_t i = 0; i < structures[0].size(); ++i) {
    std::vector<Tensor> row;
    for (const std::vector<Tensor>& each : structures) {
      if (each.size() != structures[0].size())
        throw_invalid(where, "[stack_structures] one structure has ", structures[0].size(),
                      " tensors, but another has ", each.size());
      row.push_back(each[i]);
    }
    stacked.push_back(stack(row, 0, where));
  }
  return stacked;
}

std::vector<Tensor> slice_each(const std::vector<Tensor>& stacked, std::int64_t i,
                               SourceLocation where) {
  SourceScope line(where);
  std::vector<Tensor> slices;
  for (const Tensor& tensor : stacked) slices.push_back(index(tensor, {i}));
  return slices;
}

}  // namespace meshard::internal

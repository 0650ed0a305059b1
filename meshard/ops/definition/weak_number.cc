// Tested in meshard/trace/jit_test.cc.
#include "meshard/ops/definition/weak_number.h"

#include <memory>

#include "meshard/base/cat.h"
#include "meshard/base/error.h"
#include "meshard/graph/annotation.h"
#include "meshard/graph/op_def.h"
#include "meshard/graph/record.h"
#include "meshard/ops/cast.h"
#include "meshard/ops/definition/attributes.h"
#include "meshard/ops/definition/op_table.h"
#include "meshard/ops/reshape.h"

namespace meshard {

Tensor weak_number(const Tensor& wide) {
  if (wide.dtype() == DType::bool_) return wide;
  Tensor number = astype(wide, is_integer(wide.dtype()) ? kDefaultInteger : kDefaultFloat);
  set_wide_number(number, wide);
  return number;
}

Tensor large_number(const Tensor& wide) {
  // A node of its own, because the annotation refers to the number.
  Tensor number = record(reshape_op, make_attributes(ReshapeAttributes{Shape{}}), {&wide},
                         effective_source(wide.where()));
  set_wide_number(number, wide);
  return number;
}

Tensor number_like(const Tensor& number, const Tensor& wide) {
  return number.dtype() == wide.dtype() ? large_number(wide) : weak_number(wide);
}

void check_holds_large(const In& x, DType dtype) {
  const Tensor wide = wide_number(x);
  if (!wide.defined() || wide.dtype() != x.tensor->dtype()) return;
  const bool is_float = is_floating(wide.dtype());
  const bool holds = is_float ? size_in_bytes(real_dtype(dtype)) == 8 && is_inexact(dtype)
                     : is_inexact(dtype) ? dtype != DType::f16 && !is_float8(dtype)
                                         : dtype == wide.dtype() || dtype == DType::bool_;
  if (!holds)
    throw_invalid(effective_source(x.where), "[number] ", dtype,
                  " cannot hold a number argument that ",
                  is_float ? kDefaultFloat : kDefaultInteger,
                  " cannot hold: use a wider dtype for the other operand, or pass a tensor");
}

Tensor wide_number(const In& x) {
  if (!x.tensor || !x.tensor->defined()) return {};
  const Annotations* annotations = x.tensor->value()->annotations().get();
  return annotations && annotations->wide ? Tensor(annotations->wide) : Tensor();
}

std::optional<ScalarKind> weak_kind(const In& x) {
  if (!x.tensor) return x.scalar.kind;
  if (!wide_number(x).defined()) return std::nullopt;
  return is_integer(x.tensor->dtype()) ? ScalarKind::kInteger : ScalarKind::kFloat;
}

void set_wide_number(const Tensor& result, const Tensor& wide) {
  const Node& node = *result.value().node();
  Annotations annotations = node.annotations() ? *node.annotations() : Annotations{};
  annotations.wide = wide.value();
  result.value().node()->annotate(std::make_shared<const Annotations>(std::move(annotations)));
}

}  // namespace meshard

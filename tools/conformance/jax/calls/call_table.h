// The calls of calls_*.json by name: each reads its attributes from the case and calls the public
// function with that name. tests/golden/jax/calls/README.md describes them.
#pragma once
#include <cmath>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "meshard/ops/all.h"
#include "tools/conformance/suite.h"

namespace meshard::conformance {

/// A case has something unsupported, or lacks something: it counts as unknown.
struct Unreadable : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A view of the attributes of a call. The case must outlive it.
class Attributes {
 public:
  explicit Attributes(const Json& fields) : fields_(&fields) {}

  bool has(const char* name) const { return fields_->contains(name); }
  /// The field. @error Unreadable if it is missing; for the functions below, also if its type is
  /// wrong.
  const Json& at(const char* name) const;
  std::int64_t integer(const char* name) const;
  double number(const char* name) const;
  bool flag(const char* name) const;
  std::string text(const char* name) const;
  DType dtype(const char* name) const;
  Dimensions list(const char* name) const;
  Shape shape(const char* name) const { return Shape(list(name)); }
  /// Empty if the case does not have it.
  std::optional<std::int64_t> maybe_integer(const char* name) const;
  /// All dimensions if the case has none.
  DimensionList dimensions(const char* name = "dimensions") const;
  /// The index in `words` of the field's value.
  std::size_t one_of(const char* name, std::initializer_list<std::string_view> words) const;

 private:
  const Json* fields_;
};

using Tensors = std::vector<Tensor>;
using Operands = std::span<const Tensor>;
using CallFunction = std::function<Tensors(Operands, const Attributes&)>;
using CallTable = std::map<std::string_view, CallFunction>;

/// Wraps a function that returns one result.
template <class F>
CallFunction one_result(F f) {
  return [f](Operands x, const Attributes& at) { return Tensors{f(x, at)}; };
}

inline CallFunction of_one(Tensor (*op)(In)) {
  return one_result([op](Operands x, const Attributes&) { return op(x[0]); });
}
inline CallFunction of_two(Tensor (*op)(In, In)) {
  return one_result([op](Operands x, const Attributes&) { return op(x[0], x[1]); });
}

/// The function with this name; null if there is none.
const CallFunction* find_call(std::string_view op);

// One table for each family.
const CallTable& element_wise_calls();
const CallTable& reduction_calls();
const CallTable& movement_calls();
const CallTable& contraction_calls();
const CallTable& indexing_calls();
const CallTable& window_calls();
const CallTable& network_calls();
const CallTable& optimizer_calls();

}  // namespace meshard::conformance

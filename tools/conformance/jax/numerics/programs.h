// The programs of the cases of numerics.json, in meshard. A case is described by the family in its
// `id` (`ew_exp`, `red_sum_02`), by `params`, or by the words of `what`. The programs are derived
// from these, not from a list of recorded ids.
#pragma once
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "meshard/graph/tensor.h"
#include "tools/conformance/suite.h"

namespace meshard::conformance {

using Tensors = std::vector<Tensor>;
using Inputs = std::span<const Tensor>;
/// A function of tensors.
using Program = std::function<Tensors(Inputs)>;
using Programs = std::map<std::string, Program, std::less<>>;

/// Wraps a function that returns one result.
template <class F>
Program single(F f) {
  return [f](Inputs x) { return Tensors{f(x)}; };
}

/// The program of a case; none if it is unknown. `test` must outlive it.
std::optional<Program> numerics_program(const Json& test);

// One function for each family. Each returns none for cases of other families.
std::optional<Program> element_wise_program(const Json& test);
std::optional<Program> reduction_program(const Json& test);
std::optional<Program> shape_program(const Json& test);
std::optional<Program> index_program(const Json& test);
std::optional<Program> order_program(const Json& test);
std::optional<Program> network_program(const Json& test);
std::optional<Program> transform_program(const Json& test);
std::optional<Program> control_program(const Json& test);
std::optional<Program> window_program(const Json& test);
std::optional<Program> linear_algebra_program(const Json& test);

/// The entry with this name.
std::optional<Program> find_program(const Programs& programs, std::string_view name);

/// All integers in a text, in order: `pad (1, -2)` has 1 and -2.
std::vector<std::int64_t> integers_in(std::string_view text);
/// The integer after a word, such as 1 in `axis 1`; `otherwise` if there is none.
std::int64_t integer_behind(std::string_view text, std::string_view word, std::int64_t otherwise);
bool mentions(std::string_view text, std::string_view word);

/// The dtype and the shape of a recorded result.
DType result_dtype(const Json& test, std::size_t i = 0);
Shape result_shape(const Json& test, std::size_t i = 0);

}  // namespace meshard::conformance

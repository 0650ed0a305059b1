#include "tools/conformance/jax/numerics/programs.h"

#include <cctype>
#include <cstdlib>

#include "tools/conformance/jax/numerics/arrays.h"

namespace meshard::conformance {

std::optional<Program> numerics_program(const Json& test) {
  for (auto family : {element_wise_program, reduction_program, shape_program, index_program,
                      order_program, network_program, transform_program, control_program,
                      window_program, linear_algebra_program})
    if (std::optional<Program> program = family(test)) return program;
  return std::nullopt;
}

std::optional<Program> find_program(const Programs& programs, std::string_view name) {
  auto found = programs.find(name);
  return found == programs.end() ? std::nullopt : std::optional(found->second);
}

std::vector<std::int64_t> integers_in(std::string_view text) {
  std::vector<std::int64_t> numbers;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (!std::isdigit(static_cast<unsigned char>(text[i]))) continue;
    bool minus = i > 0 && text[i - 1] == '-';
    std::size_t begin = i;
    while (i < text.size() && std::isdigit(static_cast<unsigned char>(text[i]))) ++i;
    std::int64_t value = std::atoll(std::string(text.substr(begin, i - begin)).c_str());
    numbers.push_back(minus ? -value : value);
  }
  return numbers;
}

std::int64_t integer_behind(std::string_view text, std::string_view word, std::int64_t otherwise) {
  std::size_t at = text.find(word);
  if (at == std::string_view::npos) return otherwise;
  std::vector<std::int64_t> numbers = integers_in(text.substr(at + word.size()));
  return numbers.empty() ? otherwise : numbers[0];
}

bool mentions(std::string_view text, std::string_view word) {
  return text.find(word) != std::string_view::npos;
}

DType result_dtype(const Json& test, std::size_t i) {
  return dtype_in_jax(test.at("outputs").at(i).at("dtype").get<std::string>());
}

Shape result_shape(const Json& test, std::size_t i) {
  return Shape(test.at("outputs").at(i).at("shape").get<std::vector<std::int64_t>>());
}

}  // namespace meshard::conformance

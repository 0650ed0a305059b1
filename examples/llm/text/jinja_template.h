#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "examples/llm/text/jinja_expression.h"

namespace llm::jinja {

/// What a statement did to the loop around it.
enum class Flow { kNext, kBreak, kContinue };
using Statement = std::function<Flow(Scope&, std::string& out)>;

/// The subset of Jinja 3 that chat templates use, with their white space (trim_blocks,
/// lstrip_blocks) and functions (raise_exception, strftime_now, namespace, range, dict): for, if,
/// set, macro, generation, break, continue, filters, tests, and methods of texts and dictionaries.
/// Everything else is an error. Immutable; threads may share one.
class Template {
 public:
  /// @error std::invalid_argument with the line and what is not supported there
  explicit Template(std::string_view source);

  /// The text for variables, an object.
  /// @error std::invalid_argument for what the template raises, or what fails in it
  [[nodiscard]] std::string render(const nlohmann::ordered_json& variables) const;

 private:
  std::vector<Statement> statements_;
};

}  // namespace llm::jinja

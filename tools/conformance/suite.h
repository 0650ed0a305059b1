// A suite answers the cases of one golden file, and judges its answers against the recorded ones.
#pragma once
#include <functional>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tools/conformance/rules.h"

namespace meshard::conformance {

using Json = nlohmann::json;

/// What became of a case.
struct Verdict {
  enum class Kind { kPassed, kFailed, kUnknown };
  Kind kind = Kind::kPassed;
  /// The rules without which it had failed; empty if it passed as it is.
  std::vector<Rule> rules;
  /// Of a failed case: where the answers differ first, ours and the recorded one.
  std::string difference;

  static Verdict failed(std::string difference) {
    return {Kind::kFailed, {}, std::move(difference)};
  }
  static Verdict by(Rule rule) { return {Kind::kPassed, {rule}, {}}; }
};

/// The cases of the files of one name.
struct Suite {
  std::string_view file;
  /// Our raw answer to a case's input, before any rule: `{"expect": ...}`, `{"expect_error": {type,
  /// code}}` or both, in the file's own schema; null if the input asks for something not known.
  std::function<Json(const Json& input)> answer;
  /// @param test a case with `name`, `tags`, `input`, and `expect` or `expect_error` or both
  /// @param answer what `answer` said to it, not null
  std::function<Verdict(const Json& test, const Json& answer)> judge;
};

/// The suite for a file of this name; none if nobody knows it.
const Suite* find_suite(std::string_view file);

bool has_tag(const Json& test, std::string_view tag);

Suite pycute_suite();
Suite mesh_layout_suite();
Suite mesh_layout_classic_suite();
Suite rank_list_suite();
Suite large_suite();
Suite mesh_ops_suite();

}  // namespace meshard::conformance

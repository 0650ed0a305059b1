// A suite answers the cases of one golden file, and judges its answers against the recorded ones.
#pragma once
#include <filesystem>
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
  enum class Kind { kPassed, kFailed, kUnknown, kSkipped };
  Kind kind = Kind::kPassed;
  /// The rules without which it had failed; empty if it passed as it is.
  std::vector<Rule> rules;
  /// Of a failed case: where the answers differ first, ours and the recorded one. Of a skipped one:
  /// why.
  std::string difference;

  static Verdict failed(std::string difference) {
    return {Kind::kFailed, {}, std::move(difference)};
  }
  static Verdict by(Rule rule) { return {Kind::kPassed, {rule}, {}}; }
};

/// Where a case was read.
struct GoldenFile {
  std::filesystem::path path;  // other files of its folder are beside it
  Json meta;                   // the field `meta` beside `cases`; null if there is none
};

/// The cases of the files of one name. A case is `{name, tags, input, expect}`, with
/// `expect_error` instead of or beside `expect`; or one flat object with an `id`, in which inputs
/// and recorded answers lie side by side; or an entry of an object of these, whose key is the `id`.
struct Suite {
  /// A name, or a pattern in which one `*` stands for any text.
  std::string_view file;
  /// Our raw answer, before any rule, in the file's own schema: `{"expect": ...}`,
  /// `{"expect_error": ...}` or both; of a flat case, the fields that are answers. Null if the
  /// input asks for something not known.
  /// @param input the case's `input`; a flat case as a whole
  std::function<Json(const Json& input, const GoldenFile& file)> answer;
  /// @param test the case
  /// @param answer what `answer` said to it, not null
  std::function<Verdict(const Json& test, const Json& answer)> judge;
  /// How many virtual devices `answer` needs for this input. If set, it is called in another
  /// process, which has that many (worker.h); the file's meta is null there.
  std::function<int(const Json& input)> devices = {};
  /// How long that process may take for an answer: compiling takes well under a second, but a
  /// machine may be busy.
  int seconds = 120;
};

/// The suite for a file of this name; none if nobody knows it.
const Suite* find_suite(std::string_view file);

bool has_tag(const Json& test, std::string_view tag);

#define SUITE(name) Suite name##_suite();
#include "tools/conformance/suites.inc"
#undef SUITE

}  // namespace meshard::conformance

// A suite answers the cases of one golden file, and compares its answers with the recorded ones.
#pragma once
#include <cstdint>
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

/// The result of a case.
struct Verdict {
  enum class Kind { kPassed, kFailed, kUnknown, kSkipped };
  Kind kind = Kind::kPassed;
  /// The rules that the case needed to pass; empty if it passed without one.
  std::vector<Rule> rules;
  /// Failed: the first difference between our answer and the recorded one. Skipped: the reason.
  std::string difference;

  static Verdict failed(std::string difference) {
    return {Kind::kFailed, {}, std::move(difference)};
  }
  static Verdict by(Rule rule) { return {Kind::kPassed, {rule}, {}}; }
};

/// The file that contains a case.
struct GoldenFile {
  std::filesystem::path path;  // its folder also has the other files
  Json meta;                   // the field `meta` next to `cases`; null if there is none
};

/// The cases of the files with one name. A case is `{name, tags, input, expect}`, with
/// `expect_error` in place of or in addition to `expect`; or one flat object with an `id`, in which
/// inputs and recorded answers are mixed; or an entry of an object of these, with its key as the
/// `id`.
struct Suite {
  /// A file name, or a pattern in which one `*` matches any text.
  std::string_view file;
  /// Returns our raw answer, before any rule, in the file's own schema: `{"expect": ...}`,
  /// `{"expect_error": ...}` or both; for a flat case, the fields that are answers. Null if the
  /// input has something unknown.
  /// @param input the case's `input`; a flat case is passed as a whole
  std::function<Json(const Json& input, const GoldenFile& file)> answer;
  /// @param test the case
  /// @param answer the result of `answer`, not null
  std::function<Verdict(const Json& test, const Json& answer)> judge;
  /// The number of virtual devices that `answer` needs for this input. If set, `answer` is called
  /// in another process, which has this many devices (worker.h); the file's meta is null there.
  std::function<int(const Json& input)> devices = {};
  /// The time limit of that process for one answer. Compilation takes much less than a second, but
  /// the machine may be busy.
  int seconds = 120;
  /// The memory that an answer needs, in bytes. Where less is available, the cases are skipped.
  std::int64_t memory = 0;
};

/// The suite for a file with this name; null if there is none.
const Suite* find_suite(std::string_view file);

bool has_tag(const Json& test, std::string_view tag);

#define SUITE(name) Suite name##_suite();
#include "tools/conformance/suites.inc"
#undef SUITE

}  // namespace meshard::conformance

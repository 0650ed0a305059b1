#include "tools/conformance/report.h"

#include <algorithm>
#include <fstream>
#include <ostream>

#include "meshard/base/cat.h"
#include "tools/conformance/available_memory.h"
#include "tools/conformance/difference.h"
#include "tools/conformance/worker.h"

namespace meshard::conformance {
namespace {

/// The JSON files in `folder`, sorted, so that reports can be compared.
std::vector<std::filesystem::path> json_files(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
    if (entry.is_regular_file() && entry.path().extension() == ".json")
      files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

/// The cases of a golden file: the file itself, its field `cases`, or an object of named cases next
/// to `meta`, whose names become their `id`.
Json cases_of(Json content) {
  if (!content.is_object()) return content;
  if (content.contains("cases")) return std::move(content.at("cases"));
  Json cases;
  for (auto& [field, named] : content.items())
    if (field != "meta" && named.is_object())
      for (auto& [id, fields] : named.items()) {
        fields["id"] = id;
        cases.push_back(std::move(fields));
      }
  return cases;
}

bool is_skipped(const Json& test, const std::vector<std::string>& tags) {
  return std::any_of(tags.begin(), tags.end(),
                     [&test](const std::string& tag) { return has_tag(test, tag); });
}

/// The field that names a case: `name`, or the `id` of a flat case; null if it has neither.
const char* name_field(const Json& test) {
  for (const char* field : {"name", "id"})
    if (test.is_object() && test.contains(field) && test.at(field).is_string()) return field;
  return nullptr;
}

/// If a suite throws, that is a bug of meshard or of the suite, and the case fails with the
/// exception.
Verdict judge(const Suite& suite, const Json& test, const GoldenFile& file, Workers& workers,
              Json& answer) {
  try {
    if (std::int64_t there = suite.memory > 0 ? available_memory() : 0; there < suite.memory)
      return {Verdict::Kind::kSkipped,
              {},
              cat("it needs ", suite.memory >> 20, " MiB of memory, ", there >> 20,
                  " MiB are available")};
    const Json& input = test.contains("input") ? test.at("input") : test;
    answer = suite.devices
                 ? workers.ask(suite.devices(input), file.path.string(), input, suite.seconds)
                 : answer_or_unknown(suite, input, file);
    if (answer.is_null()) return {Verdict::Kind::kUnknown, {}, {}};
    if (answer.contains("skipped"))
      return {Verdict::Kind::kSkipped, {}, answer.at("skipped").get<std::string>()};
    return suite.judge(test, answer);
  } catch (const std::exception& error) {
    return Verdict::failed(cat("the suite failed: ", error.what()));
  }
}

class FileRun {
 public:
  FileRun(const RunOptions& options, std::string name, Workers& workers, RunReport& run)
      : options_(options), name_(std::move(name)), workers_(workers), run_(run) {}

  void run(const std::filesystem::path& path) {
    std::ifstream file(path);
    Json content = Json::parse(file, nullptr, false);
    Json meta = content.is_object() ? content.value("meta", Json()) : Json();
    Json tests = cases_of(std::move(content));
    const Suite* suite = find_suite(path.filename().string());
    if (!suite) {
      report_.unknown = tests.is_array() ? static_cast<std::int64_t>(tests.size()) : 1;
      note_ = "; no suite knows this file";
    } else if (!tests.is_array()) {
      fail("(the file)", "is not a JSON array of cases");
    } else {
      GoldenFile golden{path, std::move(meta)};
      for (const Json& test : tests) run_case(*suite, test, golden);
    }
  }

  void print(std::ostream& out) const {
    out << name_ << ": " << report_.passed << " passed, " << report_.failed << " failed, "
        << report_.by_rule << " by rule, " << report_.unknown << " unknown";
    if (report_.skipped) out << ", " << report_.skipped << " skipped";
    out << note_ << "\n";
    for (Rule rule : all_rules())
      if (auto found = report_.rule_counts.find(rule); found != report_.rule_counts.end())
        out << "  by rule " << rule_name(rule) << ": " << found->second << "\n";
    for (const std::string& line : failures_) out << "  " << line << "\n";
  }

  void add_to(FileReport& total) const {
    total.passed += report_.passed;
    total.failed += report_.failed;
    total.by_rule += report_.by_rule;
    total.unknown += report_.unknown;
    total.skipped += report_.skipped;
  }

 private:
  void run_case(const Suite& suite, const Json& test, const GoldenFile& file) {
    const char* field = name_field(test);
    if (!field) return fail("(a case)", cat("has no name: ", shortened(test)));
    if (is_skipped(test, options_.skipped_tags)) {
      ++report_.skipped;
      return;
    }
    std::string name = test.at(field);
    Json answer;
    Verdict verdict = judge(suite, test, file, workers_, answer);
    if (verdict.kind == Verdict::Kind::kUnknown) {
      ++report_.unknown;
    } else if (verdict.kind == Verdict::Kind::kSkipped) {
      ++report_.skipped;
      note_ = cat("; ", verdict.difference);
    } else if (verdict.kind == Verdict::Kind::kFailed) {
      fail(name, verdict.difference);
    } else if (verdict.rules.empty()) {
      ++report_.passed;
    } else {
      ++report_.by_rule;
      for (Rule rule : verdict.rules) ++report_.rule_counts[rule];
    }
    if (options_.observe)
      run_.observed[file.path.filename().string()].push_back(
          {{field, name}, {"answer", std::move(answer)}});
  }

  void fail(const std::string& name, const std::string& difference) {
    ++report_.failed;
    failures_.push_back(cat("FAILED ", name, ": ", difference));
  }

  const RunOptions& options_;
  std::string name_;
  Workers& workers_;
  RunReport& run_;
  FileReport report_;
  std::string note_;
  std::vector<std::string> failures_;
};

}  // namespace

RunReport run_all(const RunOptions& options, std::ostream& out) {
  RunReport report;
  Workers workers;
  for (const std::filesystem::path& path : json_files(options.data)) {
    FileRun file(options, path.lexically_relative(options.data).string(), workers, report);
    file.run(path);
    file.print(out);
    file.add_to(report.total);
  }
  return report;
}

}  // namespace meshard::conformance

// The journal of a search: its results so far, for resuming an interrupted search.
#pragma once
#include <cstdio>
#include <map>
#include <memory>
#include <string>

#include "meshard/base/result.h"
#include "meshard/plan/search.h"

namespace meshard {

/// Owner of a file to which verdicts are appended, one line each. Truncated lines are skipped when
/// reading.
class PlanJournal {
 public:
  /// Opens or creates the file. @param problem one line of text that identifies the problem
  /// @error the file cannot be read or written; failed precondition: it belongs to another problem,
  /// or another version of meshard wrote it
  static Result<PlanJournal> open(const std::string& path, const std::string& problem);

  /// Verdicts of earlier runs, by the names of the candidates.
  const std::map<std::string, PlanVerdict>& verdicts() const { return verdicts_; }
  /// Appends a verdict and flushes it to the system. @error the file cannot be written
  /// @param candidate its name: one line without tabs, unique for each candidate
  Result<void> add(const std::string& candidate, const PlanVerdict& verdict);

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::string path_;
  std::unique_ptr<std::FILE, Close> file_;
  std::map<std::string, PlanVerdict> verdicts_;
};

}  // namespace meshard

// The journal of a search: what it found so far, so that a search that was ended goes on.
#pragma once
#include <cstdio>
#include <map>
#include <memory>
#include <string>

#include "meshard/base/result.h"
#include "meshard/plan/search.h"

namespace meshard {

/// An owner of a file to which verdicts are appended, each in a line that is complete once it is
/// there. A line that was cut off is left out when reading.
class PlanJournal {
 public:
  /// Opens or makes the file. @param problem a text that stands for the problem, in one line
  /// @error the file cannot be read or written; failed precondition: it is of another problem
  static Result<PlanJournal> open(const std::string& path, const std::string& problem);

  /// Verdicts of earlier runs by PlanCandidate::to_string().
  const std::map<std::string, PlanVerdict>& verdicts() const { return verdicts_; }
  /// Appends, and hands it to the system before it returns. @error the file cannot be written
  Result<void> add(const PlanCandidate& candidate, const PlanVerdict& verdict);

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::string path_;
  std::unique_ptr<std::FILE, Close> file_;
  std::map<std::string, PlanVerdict> verdicts_;
};

}  // namespace meshard

// Agreement of several processes on their next step.
#pragma once
#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "meshard/base/fingerprint.h"
#include "meshard/base/result.h"
#include "meshard/processes/processes.h"

namespace meshard {

/// The next joint step of one process.
struct Intention {
  /// The processes that take part, ascending; this one is among them.
  std::vector<int> ranks;
  int rank = 0;
  /// The step's key in the store: equal in all of them, and used once.
  std::string key;
  /// Equal if all do the same.
  Fingerprint fingerprint;
  /// What and where, for messages: `"train" at train.cc:42`.
  std::string what;
  /// Where other processes find the answer (result_of_others); empty: nowhere.
  std::string announced_as = {};
  /// The details that the fingerprint is of, line by line; called only if the processes differ.
  /// Tabs separate what is compared from the user's source line, which may differ.
  std::function<std::string()> details;
};

/// Waits until all processes have said what they are about to do. The lowest one compares, and its
/// answer, which is `result()` if they agree, reaches all of them.
///
/// Waits at most `limit` for the others.
/// @error failed precondition if they differ, in all of them: the message names the processes and
/// what each does, and the first line in which the details differ, with both source lines. Deadline
/// exceeded, naming those that have said nothing; the error of `result`, in all of them; the
/// store's
Result<std::string> agree(Store& store, const Intention& intention,
                          const std::function<Result<std::string>()>& result,
                          std::chrono::milliseconds limit);

/// Publishes a result that one process has come to alone under `announced_as`, for
/// result_of_others(). Once per name.
/// @error the store's
Result<void> announce(Store& store, const std::string& announced_as,
                      const Result<std::string>& result);

/// The answer that other processes have agreed on, or one has announced, under
/// `intention.announced_as`, for a process that does not take part but needs the result. The
/// key and the details are not used.
/// @error that of the others; deadline exceeded if they have not agreed within `limit`; the store's
Result<std::string> result_of_others(Store& store, const Intention& intention,
                                     std::chrono::milliseconds limit);

}  // namespace meshard

// The NaN checks of a compiled program: what they found, and where.
#pragma once
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "meshard/array/shape.h"
#include "meshard/base/source_location.h"

namespace meshard {

/// One check in a program.
struct NanCheck {
  /// The op; empty for a result of the program.
  std::string op;
  /// The result's number, for a result of the program.
  std::size_t result = 0;
  TensorType type;
  SourceLocation where;
  bool found = false;  // guarded by NanChecks::mutex
};

/// The checks of one program: for each operation, whether it produced a NaN from operands without
/// one, and for each result of the program, whether it has a NaN. Programs report to them by number
/// (find), from threads of the plugin. Thread-safe.
class NanChecks {
 public:
  /// Makes checks that can be found by their number while they live.
  static std::shared_ptr<NanChecks> make();
  /// nullptr if there are none with this number, or they are gone.
  static std::shared_ptr<NanChecks> find(std::int64_t number);

  std::int64_t number() const { return number_; }
  /// Adds a check; returns its index. @pre the program does not run yet
  std::size_t add(NanCheck check);
  /// Called by the program: check `index` found a NaN.
  void report(std::size_t index);
  /// Locks the program, so that only one launch reports at a time, and forgets earlier reports.
  std::unique_lock<std::mutex> begin();
  /// The first result of the program with a NaN, and the first operation that produced one.
  struct Found {
    std::optional<NanCheck> result, operation;
  };
  Found found() const;

 private:
  std::int64_t number_ = 0;
  std::mutex running_;
  mutable std::mutex mutex_;
  std::vector<NanCheck> checks_;
};

}  // namespace meshard

// A process of the run that is gone.
#pragma once
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "meshard/base/enum_names.h"
#include "meshard/base/fields.h"
#include "meshard/base/print.h"

namespace meshard {

/// How a process was lost.
enum class LossKind : std::uint8_t {
  kDied,     ///< its connection closed and it had not ended: killed, crashed, or its machine went
  kStopped,  ///< it gives no sign of life: suspended, or its machine or network hangs
  kFailed,   ///< it ended with a status that is not 0 while others were running
  /// It runs, but launches other programs than this process, or in another order.
  kOutOfStep,
  /// It runs, but will not do what this process waits for, because something has failed in it.
  kGaveUp,
  /// It has ended normally, and others wait for it.
  kEnded,
  /// It waits for something else, which needs a process that waits for it.
  kElsewhere,
};

template <>
struct EnumNames<LossKind> {
  using enum LossKind;
  static constexpr EnumName<LossKind> kNames[] = {{kDied, "died"},
                                                  {kStopped, "stopped"},
                                                  {kFailed, "failed"},
                                                  {kGaveUp, "gave up"},
                                                  {kEnded, "ended"},
                                                  {kOutOfStep, "out of step"},
                                                  {kElsewhere, "waits elsewhere"}};
};

/// `died`, `stopped`, `failed`, `out of step`, `gave up`, `ended` or `waits elsewhere`.
std::string_view to_string(LossKind kind);

/// A value: a process that is gone, and what it did last.
struct ProcessLoss {
  int rank = 0;
  LossKind kind = LossKind::kDied;
  /// The exit status, for kFailed.
  int status = 0;
  std::string host = {};
  int pid = 0;
  /// What the process was in (Processes::entering), as of its last sign of life; empty if unknown.
  std::string activity = {};
  /// For kOutOfStep: the first difference. For kGaveUp: what has failed. For kEnded and kElsewhere:
  /// a line for each process that waits, and for what.
  std::string difference = {};
  /// How long it had been in `activity` when the loss was noticed.
  std::chrono::milliseconds in_activity{0};

  /// `process 2 (pid 4711 on alpha) died; it was last in "all-reduce %12, train.cc:42", 3.2 s ago`
  std::string to_string() const;
  friend bool operator==(const ProcessLoss&, const ProcessLoss&) = default;
  MESHARD_FIELDS(rank, kind, status, host, pid, activity, difference, in_activity)
};

}  // namespace meshard

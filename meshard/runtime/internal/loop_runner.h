// Runs long recorded programs in parts while they are recorded.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "meshard/base/source_location.h"
#include "meshard/graph/recorded_part.h"

namespace meshard {

/// What the loop runner needs of the evaluator.
class PartEvaluator {
 public:
  /// recorded_part(), while no other thread changes recorded nodes.
  virtual RecordedPart part(std::uint64_t first, std::uint64_t last) = 0;
  /// Makes these values arguments of the programs that use them: numbers, and slices of computed
  /// values (may_be_argument).
  virtual void make_arguments(std::span<const Value> values, SourceLocation where) = 0;
  /// Launches the program that computes the values.
  virtual void run(std::span<const Value> values, SourceLocation where) = 0;

 protected:
  ~PartEvaluator() = default;
};

/// True for values that differ between the steps of a loop although the recorded operations do not,
/// and that can be arguments of its program: a number, or a slice of a computed value.
bool may_be_argument(const Node& node);

/// One thread's loop runner. If many recorded nodes have not been computed, it looks for the period
/// in which the recorded operations repeat, and computes the nodes in parts of whole periods, which
/// have the same program. So a loop that is never synced compiles a few programs, for any number of
/// steps. Where a part ends depends on what the thread has recorded, not on time.
class LoopRunner {
 public:
  /// Called before a node is recorded, when the log is due.
  void check(internal::RecordLog& log, PartEvaluator& evaluator, SourceLocation where);
  /// Called before recorded values are computed for the user: first computes whole periods of a
  /// loop that has run in parts, so that the rest is as small for any number of steps.
  void finish_periods(internal::RecordLog& log, PartEvaluator& evaluator, SourceLocation where);
  /// Called when a part could not run: what was recorded so far stays as it is until it is read.
  /// Each failure doubles the time to the next part, whose values may need the same ones.
  void fail(internal::RecordLog& log);

 private:
  enum class State : std::uint8_t {
    kWatching,  ///< no loop is known
    kChoosing,  ///< looks where in a period the fewest values are in use
    kLooping,
  };
  // A number or a slice in the loop; it becomes an argument once it varies.
  struct Fixed {
    std::optional<std::size_t> hash;
    bool varies = false;
  };

  void watch(internal::RecordLog& log, PartEvaluator& evaluator, SourceLocation where);
  void watch_from(internal::RecordLog& log, std::uint64_t first);
  void choose(internal::RecordLog& log, PartEvaluator& evaluator, SourceLocation where);
  void begin_loop(internal::RecordLog& log, PartEvaluator& evaluator, SourceLocation where);
  void go_on(internal::RecordLog& log, PartEvaluator& evaluator, SourceLocation where);
  // The number of nodes since boundary_ that repeat the nodes of the previous period.
  std::uint64_t repeated(const internal::RecordLog& log) const;
  // Computes `periods` periods from boundary_ on.
  void run_periods(std::uint64_t periods, PartEvaluator& evaluator, SourceLocation where);
  void run_until(std::uint64_t last, PartEvaluator& evaluator, SourceLocation where);
  // The same, each node on its own.
  void run_each(std::uint64_t last, PartEvaluator& evaluator, SourceLocation where);
  void note_fixed(const RecordedPart& part);
  void make_arguments(const RecordedPart& part, PartEvaluator& evaluator, SourceLocation where);
  // The loop runner's record of such a node; nullptr for other nodes.
  Fixed* fixed(const std::pair<std::uint64_t, Value>& node);

  State state_ = State::kWatching;
  int failures_ = 0;            // since a part has run
  std::uint64_t first_ = 0;     // earlier nodes are not looked at
  std::uint64_t period_ = 0;    // in nodes
  std::uint64_t steps_ = 1;     // the number of periods of a part
  std::uint64_t boundary_ = 0;  // where a period begins: earlier nodes have run
  std::uint64_t loop_ = 0;      // the first node of the loop
  // While choosing.
  std::uint64_t choose_until_ = 0;
  std::size_t fewest_ = 0;
  std::vector<Fixed> fixed_;  // by place in the period
};

}  // namespace meshard

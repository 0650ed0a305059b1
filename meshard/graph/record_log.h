// What a thread recorded lately outside of traces, so that long programs can be run in parts.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "meshard/graph/node.h"

namespace meshard::internal {

/// The nodes that a thread recorded last, outside of traces, numbered from 0. The log does not keep
/// them alive: any thread may release them. Only the thread that records uses its log.
class RecordLog {
 public:
  /// The number of recorded nodes.
  static constexpr std::uint64_t kSlots = 1 << 14;
  /// The number of nodes after which the evaluator is called for the first time.
  static constexpr std::uint64_t kFirstCheck = 512;

  /// Adds a new node. Takes constant time.
  void add(Node& node) {
    if (is_paused_) [[unlikely]]
      return;
    if (!slots_) [[unlikely]]
      open();
    std::size_t at = count_++ % kSlots;
    sites_[at] = site_of(node);
    node.log_slot_ = &slots_[at];
    slots_[at].store(&node, std::memory_order_release);
  }
  /// The number of nodes recorded so far.
  std::uint64_t count() const { return count_; }
  /// The smallest number of a recorded node.
  std::uint64_t oldest() const { return count_ < kSlots ? 0 : count_ - kSlots; }
  /// Equal for nodes of one op that one source line recorded. @pre oldest() <= number < count()
  std::uint64_t site(std::uint64_t number) const { return sites_[number % kSlots]; }
  /// The nodes from number `first` on that are still referred to, in order, with their numbers.
  std::vector<std::pair<std::uint64_t, Value>> alive_since(std::uint64_t first) const;

  /// While paused, nodes are not added and the evaluator is not called, because it is recording.
  /// Returns the previous value.
  bool pause(bool paused) { return std::exchange(is_paused_, paused); }
  bool is_paused() const { return is_paused_; }
  /// Whether the evaluator must be called before the next node is recorded.
  bool is_due() const { return count_ >= check_at_; }
  /// Asks when that many nodes have been recorded.
  void check_at(std::uint64_t count) { check_at_ = count; }

  /// Called by any thread that is about to destroy the node, because it released the last reference
  /// or holds the only one. Returns false if the recording thread has taken a reference meanwhile;
  /// then the caller's one is released.
  static bool leave(Node& node);

 private:
  struct Memory;
  class Ring;
  static std::uint64_t site_of(const Node& node) {
    std::uint64_t hash = reinterpret_cast<std::uintptr_t>(&node.op()) * 0x9e3779b97f4a7c15u;
    hash ^= reinterpret_cast<std::uintptr_t>(node.where().file) + (hash >> 29);
    hash = (hash + node.where().line * 2 + node.where().is_derivative) * 0xbf58476d1ce4e5b9u;
    return hash ^ (hash >> 32);
  }
  bool is_own(const std::atomic<Node*>* slot) const {
    return slots_ && slot >= slots_ && slot < slots_ + kSlots;
  }
  static Value take(std::atomic<Node*>& slot);
  void open();

  std::atomic<Node*>* slots_ = nullptr;
  std::uint64_t* sites_ = nullptr;
  std::uint64_t count_ = 0;
  std::uint64_t check_at_ = kFirstCheck;
  bool is_paused_ = false;
};

inline constinit thread_local RecordLog record_log;

/// Called before a node is recorded outside of traces, if the log is due: lets the evaluator run
/// what was recorded. Does nothing while the function that is being recorded must only be recorded.
/// @error what a compile runner throws
void run_ahead(SourceLocation where);

/// While alive, this thread does not run ahead, and its log is paused.
class NoRunAheadScope {
 public:
  NoRunAheadScope();
  ~NoRunAheadScope();
  NoRunAheadScope(const NoRunAheadScope&) = delete;
  NoRunAheadScope& operator=(const NoRunAheadScope&) = delete;
  /// Whether another scope of this thread surrounds this one.
  bool is_inner() const { return before_; }

 private:
  bool before_;
};

/// Calls its argument, which may wait for devices and for other threads.
using WaitingRunner = void (*)(const std::function<void()>& work);
/// Python releases the interpreter's lock meanwhile. nullptr: the argument is just called.
void set_run_ahead_runner(WaitingRunner runner);

}  // namespace meshard::internal

#include "meshard/graph/record_log.h"

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <new>
#include <thread>

#include "meshard/base/threads.h"
#include "meshard/graph/evaluator.h"
#include "meshard/graph/record.h"

namespace meshard::internal {
namespace {

std::atomic<WaitingRunner> waiting_runner{nullptr};

// A slot with this value cannot be cleared: its node stays.
Node* locked(Node* node) {
  return reinterpret_cast<Node*>(reinterpret_cast<std::uintptr_t>(node) | 1);
}

}  // namespace

// Nodes of ended threads still refer to it, so it is reused and never freed.
struct RecordLog::Memory {
  std::atomic<Node*> slots[kSlots];
  std::uint64_t sites[kSlots];
};

// Owns the memory of a thread's log until the thread ends.
class RecordLog::Ring {
 public:
  Ring() {
    {
      std::lock_guard lock(unused().mutex);
      if (!unused().list.empty()) {
        memory_ = unused().list.back();
        unused().list.pop_back();
        return;
      }
    }
    // Pages that nothing is written to take no memory.
    memory_ = static_cast<Memory*>(std::calloc(1, sizeof(Memory)));
    if (!memory_) throw std::bad_alloc();
  }
  ~Ring() {
    bool paused = record_log.is_paused();
    record_log = RecordLog();
    record_log.pause(paused);
    std::lock_guard lock(unused().mutex);
    unused().list.push_back(memory_);
  }
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;
  Memory& memory() const { return *memory_; }

 private:
  struct Unused {
    std::mutex mutex;
    std::vector<Memory*> list;
  };
  static Unused& unused() {
    static Unused* instance = new Unused();
    return *instance;
  }
  Memory* memory_;
};

void RecordLog::open() {
  Memory& memory = thread_instance<Ring>().memory();
  slots_ = memory.slots;
  sites_ = memory.sites;
}

// A reference to the slot's node; empty if it is gone or about to be destroyed.
Value RecordLog::take(std::atomic<Node*>& slot) {
  Node* node = slot.load(std::memory_order_acquire);
  if (!node || !slot.compare_exchange_strong(node, locked(node), std::memory_order_acq_rel))
    return {};
  Value value;
  std::uint32_t references = node->references_.load(std::memory_order_acquire);
  while (references != 0 && !node->references_.compare_exchange_weak(references, references + 1,
                                                                     std::memory_order_acq_rel)) {
  }
  if (references != 0) value = Value::adopt(node);
  slot.store(node, std::memory_order_release);
  return value;
}

std::vector<std::pair<std::uint64_t, Value>> RecordLog::alive_since(std::uint64_t first) const {
  std::vector<std::pair<std::uint64_t, Value>> found;
  for (std::uint64_t number = std::max(first, oldest()); number < count_; ++number)
    if (Value value = take(slots_[number % kSlots])) found.emplace_back(number, std::move(value));
  return found;
}

bool RecordLog::leave(Node& node) {
  std::atomic<Node*>& slot = *node.log_slot_;
  if (record_log.is_own(&slot)) {
    if (slot.load(std::memory_order_relaxed) == &node)
      slot.store(nullptr, std::memory_order_relaxed);
    return true;
  }
  Node* present = &node;
  while (!slot.compare_exchange_weak(present, nullptr, std::memory_order_acq_rel)) {
    if (present != &node && present != locked(&node)) break;  // the slot has another node
    if (present != &node) std::this_thread::yield();
    present = &node;
  }
  // From here on, nobody finds the node; but the recording thread may have found it before.
  return node.references_.load(std::memory_order_acquire) <= 1 ||
         node.references_.fetch_sub(1, std::memory_order_acq_rel) == 1;
}

NoRunAheadScope::NoRunAheadScope() : before_(record_log.pause(true)) {}
NoRunAheadScope::~NoRunAheadScope() { record_log.pause(before_); }

void set_run_ahead_runner(WaitingRunner runner) { waiting_runner.store(runner); }

void run_ahead(SourceLocation where) {
  const Recorder& recording = recorder();
  if (record_log.is_paused() || recording.keep_operands != 0 || recording.body || recording.manual)
    return;
  Evaluator* evaluating = installed_evaluator();
  if (!evaluating) return record_log.check_at(record_log.count() + RecordLog::kFirstCheck);
  NoRunAheadScope scope;
  where = effective_source(where);
  if (WaitingRunner runner = waiting_runner.load())
    runner([&] { evaluating->run_ahead(record_log, where); });
  else
    evaluating->run_ahead(record_log, where);
}

}  // namespace meshard::internal

// Tested in tests/plugin/launches_test.cc.
#include "meshard/pjrt/internal/await.h"

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>

#include "meshard/base/awaiting.h"
#include "meshard/base/inline_vector.h"
#include "meshard/base/stall_report.h"
#include "meshard/base/threads.h"
#include "meshard/pjrt/event.h"
#include "meshard/pjrt/internal/client_state.h"

namespace meshard::pjrt::internal {
namespace {

constexpr std::chrono::seconds kTimeForPartners{1};

// Sleeping and being woken takes 20 to 40 us on a virtual machine: a wait that spins for as long
// before it sleeps takes at most twice as long as the better of the two (Karlin et al. 1991,
// "Empirical studies of competitive spinning for a shared-memory multiprocessor"). On one core, the
// work would wait for the spinning thread.
constexpr std::chrono::microseconds kSpinBeforeSleep{20};

bool may_spin() {
  static const bool has_several_cores = meshard::internal::usable_cores() >= 2;
  return has_several_cores;
}

// State shared by a waiting thread and the plugin's callbacks, which may come after the thread has
// given up: the last of them deletes it.
struct Gate {
  Gate(const PJRT_Api* plugin, std::string_view name, std::size_t events)
      : api(plugin), entry(name), references(events + 1), pending(events) {}

  // Wakes the thread only when nothing is pending or something failed.
  void arrive(const Result<void>& outcome) {
    std::lock_guard lock(mutex);
    --pending;
    if (!outcome.ok() && !failed) failed = outcome.error();
    if (pending == 0 || failed) changed.notify_all();
  }
  void drop() noexcept {
    if (references.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }

  const PJRT_Api* api;
  std::string entry;
  std::atomic<std::size_t> references;
  std::mutex mutex;
  std::condition_variable changed;
  std::size_t pending;
  std::optional<Error> failed;
};

struct DropGate {
  void operator()(Gate* gate) const noexcept { gate->drop(); }
};

void arrive_at_gate(PJRT_Error* error, void* argument) {
  std::unique_ptr<Gate, DropGate> gate(static_cast<Gate*>(argument));
  gate->arrive(take_error(gate->api, error, gate->entry));
}

Result<void> ask(Gate& gate, PJRT_Event* event) {
  MESHARD_PJRT_ARGS(PJRT_Event_OnReady, args);
  args.event = event;
  args.callback = arrive_at_gate;
  args.user_arg = &gate;
  return MESHARD_PJRT_CALL(gate.api, PJRT_Event_OnReady, args);
}

Result<void> wait_at(Gate& gate, const Awaited& awaited) {
  meshard::internal::StallWatch watch;
  std::optional<meshard::internal::AwaitingScope> awaiting;
  std::optional<std::chrono::steady_clock::time_point> until;
  std::unique_lock lock(gate.mutex);
  auto all_here = [&] { return gate.pending == 0; };
  while (!all_here()) {
    if (gate.failed) {
      auto now = std::chrono::steady_clock::now();
      if (!until) until = now + kTimeForPartners;
      if (now >= *until) break;
      gate.changed.wait_until(lock, *until, all_here);
      continue;
    }
    if (gate.changed.wait_for(lock, watch.slice(), [&] { return all_here() || gate.failed; }))
      continue;
    lock.unlock();
    if (!awaiting) awaiting.emplace(meshard::internal::Awaiting{.what = "work of its devices"});
    if (awaited.client && awaited.device)
      MESHARD_RETURN_IF_ERROR(awaited.client->stuck_launch(*awaited.device));
    if (watch.is_due())
      meshard::internal::report_stall(
          awaited.describe ? awaited.describe(awaited.subject) : "an event of the plugin",
          watch.waited());
    lock.lock();
  }
  return gate.failed ? Result<void>(*gate.failed) : Result<void>();
}

}  // namespace

Result<bool> is_ready(const PJRT_Api* api, PJRT_Event* event) {
  MESHARD_PJRT_QUERY(api, PJRT_Event_IsReady, args, event, event);
  return args.is_ready;
}

Result<void> outcome_of(const PJRT_Api* api, PJRT_Event* event, std::string_view entry) {
  MESHARD_PJRT_ARGS(PJRT_Event_Await, args);
  args.event = event;
  return take_error(api, api->PJRT_Event_Await(&args), entry);
}

Result<void> await_events(const PJRT_Api* api, std::span<PJRT_Event* const> events,
                          std::string_view entry, const Awaited& awaited) {
  Result<void> outcome;
  // If the query fails, wait for the event without a report: work that may still use somebody's
  // memory must not be treated as done.
  auto take = [&](PJRT_Event* event) {
    if (!is_ready(api, event).value_or(true)) return false;
    if (Result<void> one = outcome_of(api, event, entry); !one.ok() && outcome.ok())
      outcome = std::move(one);
    return true;
  };
  auto take_first = [&] {
    while (!events.empty() && take(events.front())) events = events.subspan(1);
    return events.empty();
  };
  if (take_first() || (may_spin() && meshard::internal::spin_until(take_first, kSpinBeforeSleep)))
    return outcome;
  InlineVector<PJRT_Event*, 8> pending;
  for (PJRT_Event* event : events)
    if (!take(event)) pending.push_back(event);
  if (pending.empty()) return outcome;
  std::unique_ptr<Gate, DropGate> gate(new Gate(api, entry, pending.size()));
  if (!outcome.ok()) gate->failed = outcome.error();
  for (PJRT_Event* event : pending) {
    if (ask(*gate, event).ok()) continue;
    gate->arrive(outcome_of(api, event, entry));
    gate->drop();  // in place of the callback
  }
  return wait_at(*gate, awaited);
}

}  // namespace meshard::pjrt::internal

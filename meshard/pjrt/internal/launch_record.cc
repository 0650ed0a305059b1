// Tested in tests/plugin/launches_test.cc.
#include "meshard/pjrt/internal/launch_record.h"

#include "meshard/pjrt/internal/await.h"
#include "meshard/pjrt/internal/client_state.h"

namespace meshard::pjrt::internal {
namespace {

std::string describe_launch(const void* subject) {
  return cat("the launch of ", static_cast<const LaunchRecord*>(subject)->to_string());
}

}  // namespace

Result<void> LaunchRecord::await() {
  if (done.load(std::memory_order_acquire)) {
    std::lock_guard lock(mutex);
    return *outcome;
  }
  Awaited awaited{.describe = describe_launch, .subject = this};
  Result<void> result =
      await_events(api, {events.data(), events.size()}, "PJRT_LoadedExecutable_Execute", awaited);
  if (!result.ok()) {
    result = result.error().with_note(cat("while running ", to_string()));
    // The other devices wait forever, and so do all later launches.
    if (client->rules.error_wedges_client && !is_through()) client->wedged = true;
  }
  return settle(std::move(result));
}

bool LaunchRecord::await_success() {
  if (done.load(std::memory_order_acquire)) {
    std::lock_guard lock(mutex);
    return outcome->ok();
  }
  if (!await_events(api, {events.data(), events.size()}, "PJRT_LoadedExecutable_Execute",
                    {.describe = describe_launch, .subject = this})
           .ok())
    return false;
  return settle({}).ok();
}

Result<void> LaunchRecord::settle(Result<void> result) {
  if (result.ok()) client->remember_success(number);
  std::lock_guard lock(mutex);
  if (!outcome) outcome = std::move(result);
  done.store(true, std::memory_order_release);
  return *outcome;
}

bool LaunchRecord::has_failed() {
  if (done.load(std::memory_order_acquire)) {
    std::lock_guard lock(mutex);
    return !outcome->ok();
  }
  for (std::size_t k = 0; k < events.size(); ++k) {
    if (is_through(k) && !outcome_of(api, events[k], "").ok()) return true;
  }
  return false;
}

bool LaunchRecord::is_through(std::size_t k) const {
  if (done.load(std::memory_order_acquire)) return true;
  // If the query fails, await() reports the error.
  return is_ready(api, events[k]).value_or(true);
}

bool LaunchRecord::is_through() const {
  for (std::size_t k = 0; k < events.size(); ++k)
    if (!is_through(k)) return false;
  return true;
}

bool LaunchRecord::has_succeeded() const {
  for (PJRT_Event* event : events)
    if (!outcome_of(api, event, {}).ok()) return false;
  return true;
}

void LaunchRecord::clear() noexcept {
  for (PJRT_Event*& event : events) destroy(api, std::exchange(event, nullptr));
  outcome.reset();
  done.store(false, std::memory_order_relaxed);
}

std::string LaunchRecord::to_string() const {
  std::string ids;
  for (const Device* device : site->devices->devices())
    append(ids, ids.empty() ? "" : ",", device->id());
  return cat("\"", site->name, "\" on device", events.size() == 1 ? " " : "s ", ids,
             (*site->devices)[0].of_platform(),
             where.known() ? cat(", launched at ", where) : std::string());
}

void drop_launch(LaunchRecord* record) noexcept {
  if (record->references.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  record->clear();
  delete record;
}

}  // namespace meshard::pjrt::internal

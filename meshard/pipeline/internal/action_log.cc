// Tested in tests/pipeline/pipeline_failure_test.cc.
#include "meshard/pipeline/internal/action_log.h"

#include "meshard/graph/storage.h"
#include "meshard/runtime/device_array.h"

namespace meshard::internal {

void ActionLog::add(const PipelineAction& action, const Tensor& result) {
  const Storage* storage = result.defined() ? result.value().storage() : nullptr;
  if (!storage || storage->kind() != Storage::Kind::kDevice) return;
  const auto& array = static_cast<const DeviceArray&>(*storage);
  for (std::size_t i = 0; i < array.num_shards(); ++i) {
    Result<pjrt::Event> event = array.buffers()[i].ready_event();
    if (event.ok()) events_.push_back(*std::move(event));
  }
  entries_.push_back({action, events_.size()});
}

std::optional<FailedAction> ActionLog::first_failure() const {
  std::size_t i = 0;
  for (const Entry& entry : entries_)
    for (; i < entry.end; ++i) {
      if (!events_[i].is_ready().value_or(false)) continue;
      Result<void> outcome = events_[i].await();
      if (!outcome.ok()) return FailedAction{entry.action, outcome.error()};
    }
  return std::nullopt;
}

}  // namespace meshard::internal

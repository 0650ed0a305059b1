#include "meshard/runtime/runtime.h"

#include "meshard/runtime/internal/process_runtime.h"

namespace meshard {

namespace internal {

std::atomic<bool> is_forked_child{false};

void fail_in_forked_child(SourceLocation where) {
  throw Error(
      ErrorCode::kFailedPrecondition,
      "[runtime] this process was forked after the runtime started, and the plugin's threads "
      "do not exist in it. Fork before the first tensor is computed or placed, or call "
      "exec after the fork",
      where);
}

}  // namespace internal

Result<void> configure_runtime(RuntimeOptions options) {
  return process_runtime().platforms.configure(std::move(options));
}

const pjrt::Client& runtime_client(SourceLocation where) {
  return process_runtime().platforms.client(where);
}

const pjrt::Client& runtime_client(std::string_view device_type, SourceLocation where) {
  return process_runtime().platforms.client(device_type, where);
}

const pjrt::Client& runtime_client(const Mesh& mesh, SourceLocation where) {
  return process_runtime().platforms.client(mesh, where);
}

void restart_runtime() { process_runtime().platforms.restart(); }

std::vector<const pjrt::Client*> started_clients() { return process_runtime().platforms.started(); }

}  // namespace meshard

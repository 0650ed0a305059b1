// Tested in tests/processes/check_plugin.py.
#include "meshard/runtime/internal/run_store.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <string>

#include "meshard/base/cat.h"
#include "meshard/base/fingerprint.h"
#include "meshard/runtime/internal/shared_fabric.h"

namespace meshard::internal {
namespace {

using std::chrono::milliseconds;

// Keys with lists of thousands of devices are longer than the store allows.
constexpr std::size_t kLongestKey = 1000;

// The number of earlier clients of a platform.
int next_client_of(std::string_view platform) {
  static std::mutex mutex;
  static auto* clients = new std::map<std::string, int, std::less<>>;
  std::lock_guard lock(mutex);
  return (*clients)[std::string(platform)]++;
}

class RunStore final : public pjrt::KeyValueStore {
 public:
  RunStore(Processes run, std::string_view platform, milliseconds most)
      : run_(run),
        platform_(platform),
        prefix_(cat("meshard/client/", platform, "/", next_client_of(platform), "/")),
        most_(most) {}

  /// Tells the others that this process creates its client.
  Result<void> begin() { return run_.store().put(begin_key(run_.rank()), "begun"); }

  Result<void> put(std::string_view key, std::string_view value) override {
    return run_.store().put(full(key), value);
  }

  Result<std::string> get(std::string_view key, milliseconds limit) override {
    if (limit < milliseconds(0) || limit > most_) limit = most_;
    Result<std::string> got = run_.store().get(full(key), limit);
    if (got.ok() || got.error().code() != ErrorCode::kDeadlineExceeded) return got;
    return Error(ErrorCode::kDeadlineExceeded,
                 cat("[client] no process has stored \"", key.substr(0, kLongestKey), "\" within ",
                     static_cast<double>(limit.count()) / 1000, " s; ", absent_text()));
  }

  Result<std::optional<std::string>> try_get(std::string_view key) override {
    return run_.store().try_get(full(key));
  }

 private:
  std::string full(std::string_view key) const {
    if (key.size() <= kLongestKey) return cat(prefix_, "key/", key);
    return cat(prefix_, "long/", key.substr(0, kLongestKey), "/", fingerprint(key));
  }

  std::string begin_key(int rank) const { return cat(prefix_, "begun/", rank); }

  std::string absent_text() {
    std::string names;
    for (const ProcessInfo& member : run_.members()) {
      Result<std::optional<std::string>> begun = run_.store().try_get(begin_key(member.rank));
      if (begun.ok() && !*begun) append(names, cat(names.empty() ? "" : ", ", member));
    }
    return names.empty()
               ? cat("all processes have begun to create their client of ", platform_)
               : cat("these have not begun to create their client of ", platform_, ": ", names);
  }

  Processes run_;
  std::string platform_, prefix_;
  milliseconds most_;
};

}  // namespace

Result<std::shared_ptr<pjrt::KeyValueStore>> store_for_client(Processes run,
                                                              std::string_view platform) {
  MESHARD_ASSIGN_OR_RETURN(milliseconds most, wait_for_processes());
  auto store = std::make_shared<RunStore>(run, platform, most);
  MESHARD_RETURN_IF_ERROR(store->begin());
  return std::shared_ptr<pjrt::KeyValueStore>(std::move(store));
}

}  // namespace meshard::internal

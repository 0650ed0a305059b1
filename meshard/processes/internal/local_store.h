// The store of a run with one process.
#pragma once
#include <condition_variable>
#include <map>
#include <mutex>
#include <string>

#include "meshard/processes/store.h"

namespace meshard::internal {

/// Owner of the values.
class LocalStore : public Store {
 public:
  Result<void> put(std::string_view key, std::string_view value) override;
  Result<std::string> get(std::string_view key, std::chrono::milliseconds limit) override;
  Result<std::optional<std::string>> try_get(std::string_view key) override;
  Result<void> publish(std::string_view key, std::string_view value, std::string* first) override;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::string, std::less<>> values_;
};

}  // namespace meshard::internal

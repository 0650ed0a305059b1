// The stores of a run: of one process, and that which process 0 keeps for all.
#pragma once
#include <condition_variable>
#include <map>
#include <mutex>
#include <string>

#include "meshard/processes/internal/member.h"
#include "meshard/processes/store.h"

namespace meshard::internal {

/// Owner of the values of a run with one process.
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

/// A view of a connection to process 0, which must outlive it.
class RemoteStore : public Store {
 public:
  explicit RemoteStore(MemberConnection& connection) : connection_(connection) {}

  Result<void> put(std::string_view key, std::string_view value) override;
  Result<std::string> get(std::string_view key, std::chrono::milliseconds limit) override;
  Result<std::optional<std::string>> try_get(std::string_view key) override;
  Result<void> publish(std::string_view key, std::string_view value, std::string* first) override;

 private:
  MemberConnection& connection_;
};

/// The error of a reply, after the words for the request; none if it reports success.
std::optional<Error> reply_error(const Message& reply, std::string_view request);

/// A time limit as the `number` of a request.
std::int64_t limit_number(std::chrono::milliseconds limit);

}  // namespace meshard::internal

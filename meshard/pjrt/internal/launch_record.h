// A launch in flight: its events, and what reports and errors say about it.
#pragma once
#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "meshard/base/free_list.h"
#include "meshard/base/inline_vector.h"
#include "meshard/base/result.h"
#include "meshard/base/source_location.h"
#include "meshard/pjrt/device.h"
#include "meshard/pjrt/internal/c_api.h"
#include "meshard/pjrt/launch.h"

namespace meshard::pjrt::internal {

struct ClientState;

/// The data that all launches of one program share.
struct LaunchSite {
  std::string name;
  const DeviceList* devices = nullptr;  // interned
};

/// One launch and its events, shared by the client's list of launches in flight and the user's
/// handle.
struct LaunchRecord {
  // Each launch makes one.
  static void* operator new(std::size_t) {
    return meshard::internal::FreeList<LaunchRecord, 256>::take();
  }
  static void operator delete(void* memory) {
    meshard::internal::FreeList<LaunchRecord, 256>::give(memory);
  }

  const PJRT_Api* api = nullptr;
  ClientState* client = nullptr;  // alive while the record is in its list or in a handle
  int id = 0;
  /// The number of the launch among those of the client, from 1; ids may be the user's and repeat.
  std::uint64_t number = 0;
  std::atomic<int> references{1};
  std::atomic<bool> done{false};
  /// The events of the site's devices. Null: not created yet.
  InlineVector<PJRT_Event*, 8> events;
  std::shared_ptr<const LaunchSite> site;
  SourceLocation where;
  std::chrono::steady_clock::time_point begun;

  // Set by the list of launches in flight (launch_list.h).
  LaunchRecord *older = nullptr, *newer = nullptr;
  bool is_listed = false;

  std::mutex mutex;
  std::optional<Result<void>> outcome;  // after it was awaited; guarded by mutex

  /// Waits for every event; returns the first error, if any.
  Result<void> await();
  /// The same, but returns false if a device has failed and leaves the launch as it is: others can
  /// still find out which device has failed, and which ones wait for it.
  bool await_success();
  /// Whether a device has failed; does not wait.
  bool has_failed();
  /// Whether device `k` of the launch, or every device, is done; does not wait.
  bool is_through(std::size_t k) const;
  bool is_through() const;
  /// Whether every device is done without an error.
  /// @pre is_through(), and no thread waited
  bool has_succeeded() const;
  /// Ends a wait with its result, unless another thread has: then with that one. Returns it.
  Result<void> settle(Result<void> result);
  /// Destroys the events, and forgets the outcome. @pre no one else uses the record
  void clear() noexcept;
  /// `"train" on devices 0,1, launched at train.cc:42`
  std::string to_string() const;
};

/// Records, oldest first, linked through their members `older` and `newer`: each is added and
/// removed without a search. Owns one reference to each. The client's launch_mutex guards it.
class LaunchList {
 public:
  LaunchList() = default;
  LaunchList(const LaunchList&) = delete;
  LaunchList& operator=(const LaunchList&) = delete;
  ~LaunchList() {
    while (oldest_ != nullptr) drop(oldest_);
  }

  /// For `for (LaunchRecord& record : list)`, which must not remove any.
  class Iterator {
   public:
    explicit Iterator(LaunchRecord* at) : at_(at) {}
    LaunchRecord& operator*() const { return *at_; }
    Iterator& operator++() {
      at_ = at_->newer;
      return *this;
    }
    friend bool operator==(Iterator, Iterator) = default;

   private:
    LaunchRecord* at_;
  };
  Iterator begin() const { return Iterator(oldest_); }
  Iterator end() const { return Iterator(nullptr); }

  bool empty() const { return oldest_ == nullptr; }
  std::size_t size() const { return size_; }
  /// Null if it is empty. The next ones are record->newer and record->older, null at the ends.
  LaunchRecord* oldest() const { return oldest_; }
  LaunchRecord* newest() const { return newest_; }

  /// Takes over a reference. @pre the record is in no list
  void add(LaunchRecord* record) {
    record->is_listed = true;
    record->older = newest_;
    record->newer = nullptr;
    (newest_ != nullptr ? newest_->newer : oldest_) = record;
    newest_ = record;
    ++size_;
  }
  /// Removes the record, and drops the reference. @pre it is in this list
  void drop(LaunchRecord* record) {
    (record->older != nullptr ? record->older->newer : oldest_) = record->newer;
    (record->newer != nullptr ? record->newer->older : newest_) = record->older;
    record->is_listed = false;
    --size_;
    drop_launch(record);
  }
  /// Drops the records for which `unwanted(record)`.
  template <class Unwanted>
  void drop_if(Unwanted unwanted) {
    for (LaunchRecord *record = oldest_, *next = nullptr; record != nullptr; record = next) {
      next = record->newer;
      if (unwanted(*record)) drop(record);
    }
  }

 private:
  LaunchRecord *oldest_ = nullptr, *newest_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace meshard::pjrt::internal

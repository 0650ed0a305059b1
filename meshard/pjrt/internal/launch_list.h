// The launches of a client that are in flight. Tested in tests/plugin/launch_list_test.cc.
#pragma once
#include <cstddef>

#include "meshard/pjrt/internal/launch_record.h"
#include "meshard/pjrt/launch.h"

namespace meshard::pjrt::internal {

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

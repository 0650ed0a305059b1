// A cache whose values are made once, however many threads ask for them.
#pragma once
#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "meshard/base/stall_report.h"

namespace meshard::internal {

/// An immovable cache of shared, immutable items. A thread that asks for an item that another
/// thread is making waits for it; requests for other items do not wait. If making it fails, one of
/// the waiting threads tries again. Beyond `most` items, the one whose use is the longest ago is
/// evicted; its holders keep it.
///
/// An item is found by a hash and a predicate: `matches(const Item&)`. While an item is made, a
/// *draft* replaces it: an item with as many members set as the predicate needs.
template <class Item>
class SingleFlight {
 public:
  using Pointer = std::shared_ptr<const Item>;

  /// @pre most > 0
  explicit SingleFlight(std::size_t most) : most_(most) {}
  SingleFlight(const SingleFlight&) = delete;
  SingleFlight& operator=(const SingleFlight&) = delete;

  /// The item that matches; null if there is none. `hash()` is called only if the item that was
  /// used last does not match.
  template <class Hash, class Matches>
  Pointer find(Hash hash, Matches matches) {
    std::lock_guard lock(mutex_);
    ++num_finds_;
    Entry* known = find_locked(hash, matches);
    return known ? known->item : nullptr;
  }

  /// How find_or_make() describes and refuses waits.
  template <class Describe, class Refuse>
  struct Waits {
    /// For reports of long waits: what another thread does.
    Describe describe;
    /// Throws: this thread is already making the item.
    Refuse refuse;
  };
  template <class Describe, class Refuse>
  Waits(Describe, Refuse) -> Waits<Describe, Refuse>;

  /// The item that matches, or else the result of `make()`, which runs without a lock.
  /// @pre make() returns an item; `draft` and it have the hash `hash`
  /// @error the exceptions of make(), waits.refuse() and stall handlers
  template <class Matches, class Make, class Describe, class Refuse>
  Pointer find_or_make(std::size_t hash, Matches matches, Pointer draft, Make make,
                       Waits<Describe, Refuse> waits) {
    std::unique_lock lock(mutex_);
    while (true) {
      if (Entry* known = find_locked([&] { return hash; }, matches)) return known->item;
      auto flight = std::find_if(flights_.begin(), flights_.end(),
                                 [&](const Flight* each) { return matches(*each->draft); });
      if (flight == flights_.end()) break;
      if ((*flight)->thread == std::this_thread::get_id()) waits.refuse();
      wait_or_report(
          landed_, lock, [&, before = num_landed_] { return num_landed_ != before; },
          waits.describe);
    }
    Flight flight(*this, std::move(draft));
    lock.unlock();  // `flight`'s destructor locks again, also after an exception
    Pointer made = make();
    add(hash, made);
    return made;
  }

  /// Forgets the items for which `unwanted(const Item&)`.
  template <class Unwanted>
  void erase_if(Unwanted unwanted) {
    std::vector<Pointer> gone;  // released after the lock
    std::lock_guard lock(mutex_);
    for (auto at = entries_.begin(); at != entries_.end();)
      at = unwanted(*at->second.item) ? erase(at, gone) : std::next(at);
  }

  /// Calls `f(number, item)` for each item, under the lock; the first item made has number 0.
  template <class F>
  void for_each_oldest_first(F f) const {
    std::lock_guard lock(mutex_);
    std::vector<const Entry*> entries;
    for (const auto& [hash, entry] : entries_) entries.push_back(&entry);
    std::sort(entries.begin(), entries.end(),
              [](const Entry* a, const Entry* b) { return a->number < b->number; });
    for (const Entry* entry : entries) f(entry->number, entry->item);
  }

  std::size_t size() const {
    std::lock_guard lock(mutex_);
    return entries_.size();
  }
  /// The number of calls of find().
  std::uint64_t num_finds() const {
    std::lock_guard lock(mutex_);
    return num_finds_;
  }

 private:
  struct Entry {
    Pointer item;
    std::uint64_t number = 0;    // in the order of creation
    std::uint64_t last_use = 0;  // by clock_
  };
  using Table = std::unordered_multimap<std::size_t, Entry>;

  // An item that some thread is making.
  struct Flight {
    /// @pre the lock is held
    Flight(SingleFlight& cache, Pointer d) : owner(cache), draft(std::move(d)) {
      owner.flights_.push_back(this);
    }
    ~Flight() {
      {
        std::lock_guard lock(owner.mutex_);
        std::erase(owner.flights_, this);
        ++owner.num_landed_;
      }
      owner.landed_.notify_all();
    }
    Flight(const Flight&) = delete;
    Flight& operator=(const Flight&) = delete;

    SingleFlight& owner;
    Pointer draft;
    std::thread::id thread = std::this_thread::get_id();
  };

  template <class Hash, class Matches>
  Entry* find_locked(Hash hash, Matches& matches) {
    if (!latest_ || !matches(*latest_->item)) {
      auto [first, last] = entries_.equal_range(hash());
      auto at = std::find_if(first, last, [&](auto& each) { return matches(*each.second.item); });
      if (at == last) return nullptr;
      latest_ = &at->second;
    }
    latest_->last_use = ++clock_;
    return latest_;
  }

  typename Table::iterator erase(typename Table::iterator at, std::vector<Pointer>& gone) {
    if (latest_ == &at->second) latest_ = nullptr;
    gone.push_back(std::move(at->second.item));
    return entries_.erase(at);
  }

  void add(std::size_t hash, Pointer item) {
    std::vector<Pointer> gone;  // released after the lock
    std::lock_guard lock(mutex_);
    while (entries_.size() >= most_)
      erase(
          std::min_element(entries_.begin(), entries_.end(),
                           [](auto& a, auto& b) { return a.second.last_use < b.second.last_use; }),
          gone);
    latest_ = &entries_.emplace(hash, Entry{std::move(item), num_made_++, ++clock_})->second;
  }

  const std::size_t most_;
  mutable std::mutex mutex_;  // never held while an item is made
  std::condition_variable landed_;
  Table entries_;
  Entry* latest_ = nullptr;  // in entries_: the one used last
  std::vector<const Flight*> flights_;
  std::uint64_t num_landed_ = 0;  // flights that ended, also by an exception
  std::uint64_t num_made_ = 0, num_finds_ = 0, clock_ = 0;
};

}  // namespace meshard::internal

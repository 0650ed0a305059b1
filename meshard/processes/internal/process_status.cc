#include "meshard/processes/internal/process_status.h"

#include <algorithm>

#include "meshard/base/packed_fields.h"

namespace meshard::internal {
namespace {

using std::chrono::milliseconds;

// Finds what can go on, from what runs to what waits for it.
class Search {
 public:
  Search(std::span<const std::optional<ProcessStatus>> processes, milliseconds age)
      : processes_(processes), age_(age), goes_on_(processes.size()), works_(processes.size()) {
    for (std::size_t rank = 0; rank < processes.size(); ++rank)
      goes_on_[rank] = works_[rank] = !processes[rank];
    while (advance()) {
    }
  }

  bool goes_on(std::size_t rank) const { return goes_on_[rank]; }

  // A wait of this process that never ends.
  std::optional<StuckWait> stuck_wait_of(std::size_t rank) const {
    if (!processes_[rank] || processes_[rank]->has_ended) return std::nullopt;
    const ProcessStatus& status = *processes_[rank];
    auto first_stuck = [&](const std::vector<ProcessStatus::Wait>& waits) {
      auto found = std::ranges::find_if(waits, [&](const ProcessStatus::Wait& wait) {
        return !wait.steps.empty() && !can_end(rank, wait);
      });
      return found == waits.end() ? std::nullopt : std::optional(stuck(rank, *found));
    };
    if (!goes_on_[rank])
      if (std::optional<StuckWait> found = first_stuck(status.program)) return found;
    return first_stuck(status.others);
    return std::nullopt;
  }

 private:
  // Whether more is known to go on than before.
  bool advance() {
    bool changed = false;
    for (std::size_t rank = 0; rank < processes_.size(); ++rank) {
      if (!processes_[rank]) continue;
      const ProcessStatus& status = *processes_[rank];
      auto ends = [&](const ProcessStatus::Wait& wait) { return can_end(rank, wait); };
      auto works = [&](const ProcessStatus::Wait& wait) {
        return wait.steps.empty() || ends(wait);
      };
      if (!works_[rank] && std::ranges::all_of(status.others, works)) works_[rank] = changed = true;
      if (!goes_on_[rank] && !status.has_ended &&
          (status.program.empty() || std::ranges::any_of(status.program, ends)))
        goes_on_[rank] = changed = true;
    }
    return changed;
  }

  bool can_end(std::size_t rank, const ProcessStatus::Wait& wait) const {
    if (wait.age < age_) return true;
    if (wait.steps.empty()) return works_[rank];
    return std::ranges::all_of(wait.steps,
                               [&](const SharedStep& step) { return !blocker(rank, step); });
  }

  // The process that prevents the step; one that has ended says most.
  std::optional<int> blocker(std::size_t rank, const SharedStep& step) const {
    std::optional<int> found;
    auto ask = [&](std::size_t other) {
      if (other == rank || other >= processes_.size() || goes_on_[other]) return;
      if (!step.ranks.empty() && has_come(other, step)) return;
      if (!found || processes_[other]->has_ended) found = static_cast<int>(other);
    };
    if (!step.ranks.empty()) {
      for (int other : step.ranks) ask(static_cast<std::size_t>(other));
      return found;
    }
    for (std::size_t other = 0; other < processes_.size(); ++other) {
      if (other != rank && goes_on_[other]) return std::nullopt;  // it may do what is needed
      ask(other);
    }
    return found;
  }

  bool has_come(std::size_t other, const SharedStep& step) const {
    const ProcessStatus& status = *processes_[other];
    auto is_there = [&](const ProcessStatus::Wait& wait) {
      return std::ranges::any_of(wait.steps, [&](const SharedStep& each) {
        return each.channel == step.channel && each.number >= step.number;
      });
    };
    return std::ranges::any_of(status.reached,
                               [&](const auto& each) {
                                 return each.first == step.channel && each.second >= step.number;
                               }) ||
           std::ranges::any_of(status.program, is_there) ||
           std::ranges::any_of(status.others, is_there);
  }

  StuckWait stuck(std::size_t rank, const ProcessStatus::Wait& wait) const {
    for (const SharedStep& step : wait.steps)
      if (std::optional<int> other = blocker(rank, step))
        return {static_cast<int>(rank), *other, wait};
    return {static_cast<int>(rank), static_cast<int>(rank), wait};  // not reached
  }

  std::span<const std::optional<ProcessStatus>> processes_;
  milliseconds age_;
  // By rank: whether the program may come to further steps, and whether the devices and other
  // threads do.
  std::vector<bool> goes_on_, works_;
};

}  // namespace

ProcessStatus ProcessStatus::of(const AllAwaiting& awaiting,
                                std::chrono::steady_clock::time_point now) {
  auto wait_of = [&](const Awaiting& each) {
    return Wait{each.what, each.steps, std::chrono::duration_cast<milliseconds>(now - each.since)};
  };
  ProcessStatus status;
  for (const Awaiting& each : awaiting.program) status.program.push_back(wait_of(each));
  for (const Awaiting& each : awaiting.others) status.others.push_back(wait_of(each));
  status.reached = awaiting.reached;
  return status;
}

std::string ProcessStatus::to_bytes() const { return to_packed(*this); }

std::optional<ProcessStatus> ProcessStatus::from_bytes(std::string_view bytes) {
  Result<ProcessStatus> status = from_packed<ProcessStatus>(bytes, "processes");
  return status.ok() ? std::optional(*std::move(status)) : std::nullopt;
}

std::vector<StuckWait> stuck_waits(std::span<const std::optional<ProcessStatus>> processes,
                                   milliseconds age) {
  Search search(processes, age);
  std::vector<StuckWait> found;
  for (std::size_t rank = 0; rank < processes.size(); ++rank)
    if (std::optional<StuckWait> stuck = search.stuck_wait_of(rank))
      found.push_back(*std::move(stuck));
  return found;
}

}  // namespace meshard::internal

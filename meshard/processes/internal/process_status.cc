#include "meshard/processes/internal/process_status.h"

#include <algorithm>

#include "meshard/base/cat.h"
#include "meshard/processes/internal/loss_message.h"
#include "meshard/processes/internal/message.h"

namespace meshard::internal {
namespace {

using std::chrono::milliseconds;

std::optional<std::int64_t> take_number(std::string_view& rest) {
  std::optional<std::string> text = take_field(rest);
  if (!text) return std::nullopt;
  Result<std::int64_t> number = read_number(*text);
  return number.ok() ? std::optional(*number) : std::nullopt;
}

// The number of things that follow.
std::optional<std::size_t> take_count(std::string_view& rest) {
  std::optional<std::int64_t> count = take_number(rest);
  if (!count || *count < 0 || static_cast<std::size_t>(*count) > rest.size()) return std::nullopt;
  return static_cast<std::size_t>(*count);
}

void append_number(std::string& out, std::int64_t number) { append_field(out, cat(number)); }

void append_wait(std::string& out, const ProcessStatus::Wait& wait) {
  append_field(out, wait.what);
  append_number(out, wait.age.count());
  append_number(out, std::ssize(wait.steps));
  for (const SharedStep& step : wait.steps) {
    append_field(out, step.channel);
    append_number(out, static_cast<std::int64_t>(step.number));
    append_number(out, std::ssize(step.ranks));
    for (int rank : step.ranks) append_number(out, rank);
  }
}

std::optional<SharedStep> take_step(std::string_view& rest) {
  std::optional<std::string> channel = take_field(rest);
  std::optional<std::int64_t> number = take_number(rest);
  std::optional<std::size_t> count = take_count(rest);
  if (!channel || !number || !count) return std::nullopt;
  SharedStep step{*channel, static_cast<std::uint64_t>(*number), {}};
  for (std::size_t i = 0; i < *count; ++i) {
    std::optional<std::int64_t> rank = take_number(rest);
    if (!rank) return std::nullopt;
    step.ranks.push_back(static_cast<int>(*rank));
  }
  return step;
}

std::optional<ProcessStatus::Wait> take_wait(std::string_view& rest) {
  std::optional<std::string> what = take_field(rest);
  std::optional<std::int64_t> age = take_number(rest);
  std::optional<std::size_t> count = take_count(rest);
  if (!what || !age || !count) return std::nullopt;
  ProcessStatus::Wait wait{*what, {}, milliseconds(*age)};
  for (std::size_t i = 0; i < *count; ++i) {
    std::optional<SharedStep> step = take_step(rest);
    if (!step) return std::nullopt;
    wait.steps.push_back(*std::move(step));
  }
  return wait;
}

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

std::string ProcessStatus::to_bytes() const {
  std::string out;
  append_number(out, has_ended ? 1 : 0);
  for (const std::vector<Wait>* waits : {&program, &others}) {
    append_number(out, std::ssize(*waits));
    for (const Wait& wait : *waits) append_wait(out, wait);
  }
  append_number(out, std::ssize(reached));
  for (const auto& [channel, number] : reached) {
    append_field(out, channel);
    append_number(out, static_cast<std::int64_t>(number));
  }
  return out;
}

std::optional<ProcessStatus> ProcessStatus::from_bytes(std::string_view rest) {
  ProcessStatus status;
  std::optional<std::int64_t> ended = take_number(rest);
  if (!ended) return std::nullopt;
  status.has_ended = *ended != 0;
  std::optional<std::size_t> count;
  for (std::vector<Wait>* waits : {&status.program, &status.others}) {
    count = take_count(rest);
    if (!count) return std::nullopt;
    for (std::size_t i = 0; i < *count; ++i) {
      std::optional<Wait> wait = take_wait(rest);
      if (!wait) return std::nullopt;
      waits->push_back(*std::move(wait));
    }
  }
  count = take_count(rest);
  for (std::size_t i = 0; count && i < *count; ++i) {
    std::optional<std::string> channel = take_field(rest);
    std::optional<std::int64_t> number = take_number(rest);
    if (!number) return std::nullopt;
    status.reached.emplace_back(*std::move(channel), static_cast<std::uint64_t>(*number));
  }
  if (!count || !rest.empty()) return std::nullopt;
  return status;
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

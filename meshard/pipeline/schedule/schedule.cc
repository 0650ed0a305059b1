#include "meshard/pipeline/schedule/schedule.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "meshard/base/cat.h"

namespace meshard {
namespace {

using internal::PipelineOrders;
using Orders = std::vector<std::vector<PipelineAction>>;

Error invalid_schedule(std::string message) {
  return Error(ErrorCode::kInvalidArgument, cat("[pipeline] ", message));
}

// Numbers outside these are mistakes, and would take much memory.
constexpr int kMostStages = 1 << 20, kMostMicrobatches = 1 << 20;
constexpr std::int64_t kMostPairs = std::int64_t{1} << 26;

// What is listed: each action once, and the worker of each stage.
class Inventory {
 public:
  Result<void> add(const PipelineAction& one, int worker) {
    if (one.stage < 0 || one.stage >= kMostStages || one.microbatch < 0 ||
        one.microbatch >= kMostMicrobatches)
      return invalid_schedule(cat("stage ", one.stage, ", microbatch ", one.microbatch,
                                  ": expected numbers from 0 to ", kMostStages - 1));
    if (!seen_.insert({one.work, one.stage, one.microbatch}).second)
      return invalid_schedule(cat(one, " is listed twice"));
    auto [found, added] = workers_.emplace(one.stage, worker);
    if (found->second != worker)
      return invalid_schedule(cat(one, " is on worker ", worker, ", but worker ", found->second,
                                  " does other work of stage ", one.stage));
    if (one.work != PipelineWork::kUpdate)
      microbatches_ = std::max(microbatches_, one.microbatch + 1);
    return {};
  }

  int stages() const { return workers_.empty() ? 0 : workers_.rbegin()->first + 1; }
  int microbatches() const { return microbatches_; }
  const std::map<int, int>& workers() const { return workers_; }
  bool has(PipelineWork work, int stage, int microbatch) const {
    return seen_.contains({work, stage, microbatch});
  }

  // All actions that a complete schedule needs are there, and no others.
  Result<void> check() const {
    if (stages() == 0 || microbatches_ == 0) return invalid_schedule("the schedule is empty");
    if (std::int64_t{stages()} * microbatches_ > kMostPairs)
      return invalid_schedule(cat(stages(), " stages with ", microbatches_,
                                  " microbatches are more than ", kMostPairs, " pairs"));
    std::vector<PipelineAction> missing, useless;
    for (int stage = 0; stage < stages(); ++stage)
      for (int microbatch = 0; microbatch < microbatches_; ++microbatch)
        check_microbatch(stage, microbatch, missing, useless);
    if (!missing.empty()) return invalid_schedule(cat(listed(missing), " missing"));
    if (!useless.empty())
      return invalid_schedule(
          cat(listed(useless),
              " redundant: a backward action computes both gradients, and nothing is sent beyond "
              "the first or last stage, or to a stage of the same worker"));
    return {};
  }

 private:
  void check_microbatch(int stage, int microbatch, std::vector<PipelineAction>& missing,
                        std::vector<PipelineAction>& useless) const {
    using Work = PipelineWork;
    const auto need = [&](Work work) {
      if (!has(work, stage, microbatch)) missing.push_back({work, stage, microbatch});
    };
    const auto refuse = [&](Work work) {
      if (has(work, stage, microbatch)) useless.push_back({work, stage, microbatch});
    };
    need(Work::kForward);
    bool split = has(Work::kInputGradient, stage, microbatch) ||
                 has(Work::kWeightGradient, stage, microbatch);
    if (has(Work::kBackward, stage, microbatch) || !split) {
      need(Work::kBackward);
      refuse(Work::kInputGradient);
      refuse(Work::kWeightGradient);
    } else {
      need(Work::kInputGradient);
      need(Work::kWeightGradient);
    }
    if (!crosses(stage, stage + 1)) refuse(Work::kSendForward);
    if (!crosses(stage, stage - 1)) refuse(Work::kSendBackward);
  }

  bool crosses(int stage, int to) const {
    auto a = workers_.find(stage), b = workers_.find(to);
    return a != workers_.end() && b != workers_.end() && a->second != b->second;
  }

  static std::string listed(const std::vector<PipelineAction>& actions) {
    constexpr std::size_t kMost = 4;
    std::vector<PipelineAction> shown(
        actions.begin(),
        actions.begin() + static_cast<std::ptrdiff_t>(std::min(kMost, actions.size())));
    std::string more =
        actions.size() > kMost ? cat(" and ", actions.size() - kMost, " more") : std::string();
    return cat(join(shown, ", "), more, actions.size() == 1 ? " is" : " are");
  }

  std::set<std::tuple<PipelineWork, int, int>> seen_;
  std::map<int, int> workers_;  // by stage
  int microbatches_ = 0;
};

// Adds each stage's update after the other work of its worker, if none is listed.
Result<void> add_updates(const Inventory& inventory, Orders& orders) {
  std::vector<PipelineAction> missing;
  for (const auto& [stage, worker] : inventory.workers())
    if (!inventory.has(PipelineWork::kUpdate, stage, 0))
      missing.push_back({PipelineWork::kUpdate, stage, 0});
  if (missing.empty()) return {};
  if (static_cast<int>(missing.size()) < inventory.stages())
    return invalid_schedule(
        cat("updates of some stages are listed, but not those of others: ", join(missing, ", ")));
  for (const PipelineAction& update : missing)
    orders[static_cast<std::size_t>(inventory.workers().at(update.stage))].push_back(update);
  return {};
}

Result<void> check_deadlock(const PipelineOrders& orders) {
  internal::PipelineWalk walk =
      internal::walk_pipeline(orders, [](const PipelineAction&) { return 0.0; });
  if (walk.blocked.empty()) return {};
  constexpr std::size_t kMost = 8;
  std::vector<std::string> waits;
  for (const internal::BlockedWorker& one : walk.blocked) {
    if (waits.size() == kMost) break;
    waits.push_back(cat("worker ", one.worker, " waits at ", one.at, " for ", one.needs));
  }
  std::string more = walk.blocked.size() > kMost
                         ? cat("; and ", walk.blocked.size() - kMost, " more")
                         : std::string();
  return invalid_schedule(cat("the schedule never ends: ", join(waits, "; "), more));
}

std::vector<int> peaks_of(const PipelineOrders& orders) {
  std::vector<int> live(orders.worker_of_stage.size(), 0), peak = live;
  for (const auto& actions : orders.actions)
    for (const PipelineAction& one : actions) {
      auto stage = static_cast<std::size_t>(one.stage);
      if (one.work == PipelineWork::kForward) peak[stage] = std::max(peak[stage], ++live[stage]);
      if (ends_microbatch(one.work)) --live[stage];
    }
  return peak;
}

using Work = PipelineWork;
using Actions = std::vector<PipelineAction>;

void check_positive(int stages, int microbatches, SourceLocation where) {
  if (stages < 1 || microbatches < 1)
    throw_invalid(where, "[pipeline] a pipeline of ", stages, " stages and ", microbatches,
                  " microbatches: expected at least 1 of each");
}

// Makes the order of each worker. Valid by construction, so that an error is a defect.
template <class MakeOrder>
PipelineSchedule schedule_of(int workers, std::string name, const MakeOrder& order_of) {
  std::vector<Actions> orders;
  for (int worker = 0; worker < workers; ++worker) orders.push_back(order_of(worker));
  return PipelineSchedule::of(std::move(orders), std::move(name)).value();
}

}  // namespace

PipelineSchedule::PipelineSchedule(State state)
    : state_(std::make_shared<const State>(std::move(state))) {}

Result<PipelineSchedule> PipelineSchedule::of(Orders orders, std::string name) {
  Inventory inventory;
  for (std::size_t worker = 0; worker < orders.size(); ++worker)
    for (const PipelineAction& one : orders[worker])
      MESHARD_RETURN_IF_ERROR(inventory.add(one, static_cast<int>(worker)));
  MESHARD_RETURN_IF_ERROR(inventory.check());
  MESHARD_RETURN_IF_ERROR(add_updates(inventory, orders));
  State state{.name = std::move(name),
              .orders = {.actions = std::move(orders),
                         .worker_of_stage = {},
                         .microbatches = inventory.microbatches()},
              .splits_gradients = false,
              .peak_activations = {}};
  for (const auto& [stage, worker] : inventory.workers())
    state.orders.worker_of_stage.push_back(worker);
  for (const auto& actions : state.orders.actions)
    for (const PipelineAction& one : actions)
      state.splits_gradients |= one.work == PipelineWork::kInputGradient;
  MESHARD_RETURN_IF_ERROR(check_deadlock(state.orders));
  state.peak_activations = peaks_of(state.orders);
  return PipelineSchedule(std::move(state));
}

Result<PipelineSchedule> PipelineSchedule::of(const std::vector<TimedAction>& actions,
                                              const std::vector<int>& worker_of_stage,
                                              std::string name) {
  std::vector<const TimedAction*> sorted;
  for (const TimedAction& one : actions) sorted.push_back(&one);
  std::ranges::stable_sort(
      sorted, [](const TimedAction* a, const TimedAction* b) { return a->start < b->start; });
  Orders orders;
  for (const TimedAction* one : sorted) {
    int stage = one->action.stage, worker = stage;
    bool is_known = stage >= 0 && stage < kMostStages;
    if (is_known && !worker_of_stage.empty()) {
      is_known = stage < static_cast<int>(worker_of_stage.size());
      if (is_known) worker = worker_of_stage[static_cast<std::size_t>(stage)];
    }
    if (!is_known || worker < 0 || worker >= kMostStages)
      return invalid_schedule(cat("the worker of stage ", stage, " is not known"));
    if (worker >= static_cast<int>(orders.size()))
      orders.resize(static_cast<std::size_t>(worker) + 1);
    orders[static_cast<std::size_t>(worker)].push_back(one->action);
  }
  return of(std::move(orders), std::move(name));
}

Result<PipelineSchedule> PipelineSchedule::parse(std::string_view text, std::string name) {
  Orders orders;
  for (int number = 1; !text.empty(); ++number) {
    std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    line = line.substr(0, line.find('#'));
    std::vector<PipelineAction> actions;
    constexpr std::string_view kBlank = " \t\r,";
    for (std::size_t at = 0; (at = line.find_first_not_of(kBlank, at)) != std::string_view::npos;) {
      std::size_t stop = std::min(line.find_first_of(kBlank, at), line.size());
      Result<PipelineAction> read = PipelineAction::parse(line.substr(at, stop - at));
      if (!read.ok()) return read.error().with_note(cat("in line ", number));
      actions.push_back(*read);
      at = stop;
    }
    if (!actions.empty()) orders.push_back(std::move(actions));
  }
  return of(std::move(orders), std::move(name));
}

std::string PipelineSchedule::to_string() const {
  std::string text;
  for (const auto& actions : state_->orders.actions) append(text, join(actions, " "), "\n");
  return text;
}

PipelineSchedule gpipe(int stages, int microbatches, SourceLocation where) {
  check_positive(stages, microbatches, where);
  return schedule_of(stages, "GPipe", [&](int stage) {
    Actions order;
    for (int m = 0; m < microbatches; ++m) order.push_back({Work::kForward, stage, m});
    for (int m = 0; m < microbatches; ++m) order.push_back({Work::kBackward, stage, m});
    return order;
  });
}

PipelineSchedule one_forward_one_backward(int stages, int microbatches, SourceLocation where) {
  check_positive(stages, microbatches, where);
  return schedule_of(stages, "1F1B", [&](int stage) {
    int warmup = std::min(microbatches, stages - stage - 1);
    Actions order;
    for (int m = 0; m < warmup; ++m) order.push_back({Work::kForward, stage, m});
    for (int m = 0; m < microbatches; ++m) {
      if (warmup + m < microbatches) order.push_back({Work::kForward, stage, warmup + m});
      order.push_back({Work::kBackward, stage, m});
    }
    return order;
  });
}

PipelineSchedule interleaved(int workers, int chunks, int microbatches, SourceLocation where) {
  check_positive(workers, microbatches, where);
  if (chunks < 1)
    throw_invalid(where, "[pipeline] ", chunks, " chunks for each worker: expected at least 1");
  int rounds = std::max(1, microbatches / workers);
  if (microbatches % rounds != 0)
    throw_invalid(where, "[pipeline] ", microbatches, " microbatches for ", workers,
                  " workers cannot be divided into ", rounds,
                  " equal rounds; a multiple of the number of workers can");
  int round = microbatches / rounds, total = microbatches * chunks;
  return schedule_of(workers, "interleaved 1F1B", [&](int worker) {
    // The n-th forward or backward action: a round of microbatches for one chunk after the other.
    const auto nth = [&](Work work, int n) {
      int chunk = n / round % chunks;
      if (work == Work::kBackward) chunk = chunks - 1 - chunk;
      return PipelineAction{work, chunk * workers + worker,
                            n % round + n / (round * chunks) * round};
    };
    int warmup = std::min(total, (chunks - 1) * round + 2 * (workers - 1 - worker));
    Actions order;
    for (int n = 0; n < warmup; ++n) order.push_back(nth(Work::kForward, n));
    for (int n = 0; n < total; ++n) {
      if (warmup + n < total) order.push_back(nth(Work::kForward, warmup + n));
      order.push_back(nth(Work::kBackward, n));
    }
    return order;
  });
}

PipelineSchedule zero_bubble(int stages, int microbatches, SourceLocation where) {
  check_positive(stages, microbatches, where);
  return schedule_of(stages, "ZB-H1", [&](int stage) {
    int warmup = std::min(microbatches, stages - stage - 1), weights = 0;
    Actions order;
    for (int m = 0; m < warmup; ++m) order.push_back({Work::kForward, stage, m});
    for (int m = 0; m < microbatches; ++m) {
      if (warmup + m < microbatches) order.push_back({Work::kForward, stage, warmup + m});
      order.push_back({Work::kInputGradient, stage, m});
      // Later stages keep more weight gradients for the time when only earlier stages have work.
      if (m + 1 - weights > stage) order.push_back({Work::kWeightGradient, stage, weights++});
    }
    while (weights < microbatches) order.push_back({Work::kWeightGradient, stage, weights++});
    return order;
  });
}

}  // namespace meshard

#include "meshard/pipeline/schedule/action.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "meshard/base/cat.h"

namespace meshard {
namespace {

constexpr EnumName<PipelineWork> kLetters[] = {
    {PipelineWork::kForward, "F"},
    {PipelineWork::kBackward, "B"},
    {PipelineWork::kInputGradient, "I"},
    {PipelineWork::kWeightGradient, "W"},
    {PipelineWork::kUpdate, "U"},
    {PipelineWork::kSendForward, "SEND_F"},
    {PipelineWork::kSendBackward, "SEND_B"},
};

bool read_number(std::string_view text, int& to) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), to);
  return error == std::errc() && end == text.data() + text.size() && to >= 0;
}

}  // namespace

std::string_view letters(PipelineWork work) {
  for (const auto& [known, name] : kLetters)
    if (known == work) return name;
  return "?";
}

std::string PipelineAction::to_string() const {
  return work == PipelineWork::kUpdate ? cat(stage, letters(work))
                                       : cat(stage, letters(work), microbatch);
}

Result<PipelineAction> PipelineAction::parse(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789";
  std::size_t begin = text.find_first_not_of(kDigits), last = text.find_last_not_of(kDigits);
  PipelineAction read;
  bool known = false;
  if (begin != std::string_view::npos) {
    std::string_view middle = text.substr(begin, last + 1 - begin);
    for (const auto& [work, name] : kLetters)
      if (name == middle) {
        read.work = work;
        known = true;
      }
  }
  bool is_update = known && read.work == PipelineWork::kUpdate;
  if (!known || !read_number(text.substr(0, begin), read.stage) ||
      (is_update ? last + 1 != text.size() : !read_number(text.substr(last + 1), read.microbatch)))
    return Error(
        ErrorCode::kInvalidArgument,
        cat("[pipeline] \"", text,
            "\" is not an action: expected a stage, one of F, B, I, W, U, SEND_F, SEND_B, and "
            "a microbatch, such as 2F5, or 2U"));
  return read;
}

}  // namespace meshard

namespace meshard::internal {
namespace {

class PipelineWalker {
 public:
  PipelineWalker(const PipelineOrders& orders,
                 const std::function<double(const PipelineAction&)>& duration)
      : orders_(orders),
        duration_(duration),
        ends_(kKinds * orders.worker_of_stage.size() *
              static_cast<std::size_t>(orders.microbatches)),
        listed_(ends_.size(), false),
        gradients_left_(orders.worker_of_stage.size(), 0),
        gradients_end_(orders.worker_of_stage.size(), 0) {
    for (const auto& actions : orders.actions)
      for (const PipelineAction& one : actions) {
        listed_[index(one)] = true;
        gradients_left_[static_cast<std::size_t>(one.stage)] += ends_microbatch(one.work);
      }
  }

  PipelineWalk run() {
    std::size_t workers = orders_.actions.size();
    PipelineWalk walk{.done = std::vector<std::vector<WalkedAction>>(workers), .blocked = {}};
    std::vector<double> free(workers, 0);
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t worker = 0; worker < workers; ++worker)
        while (walk.done[worker].size() < orders_.actions[worker].size()) {
          const PipelineAction& next = orders_.actions[worker][walk.done[worker].size()];
          std::optional<double> ready = ready_at(next);
          if (!ready) break;
          double start = std::max(free[worker], *ready), end = start + duration_(next);
          if (!is_send(next.work)) free[worker] = end;
          finish(next, end);
          walk.done[worker].push_back({next, start, end});
          moved = true;
        }
    }
    for (std::size_t worker = 0; worker < workers; ++worker) {
      const auto& actions = orders_.actions[worker];
      std::size_t count = walk.done[worker].size();
      if (count == actions.size()) continue;
      (void)ready_at(actions[count]);  // sets missing_
      walk.blocked.push_back({static_cast<int>(worker), actions[count], missing_});
    }
    return walk;
  }

 private:
  static constexpr std::size_t kKinds = std::size(EnumNames<PipelineWork>::kNames);

  std::size_t index(const PipelineAction& one) const {
    auto stages = orders_.worker_of_stage.size();
    auto microbatches = static_cast<std::size_t>(orders_.microbatches);
    return (static_cast<std::size_t>(one.work) * stages + static_cast<std::size_t>(one.stage)) *
               microbatches +
           static_cast<std::size_t>(one.microbatch);
  }

  void finish(const PipelineAction& one, double end) {
    ends_[index(one)] = end;
    if (!ends_microbatch(one.work)) return;
    auto stage = static_cast<std::size_t>(one.stage);
    --gradients_left_[stage];
    gradients_end_[stage] = std::max(gradients_end_[stage], end);
  }

  std::optional<double> end_of(const PipelineAction& one) {
    std::optional<double> end = ends_[index(one)];
    if (!end) missing_ = one;
    return end;
  }

  bool lists(PipelineWork work, int stage, int microbatch) const {
    return listed_[index({work, stage, microbatch})];
  }

  PipelineAction input_gradient(int stage, int microbatch) const {
    bool split = lists(PipelineWork::kInputGradient, stage, microbatch);
    return {split ? PipelineWork::kInputGradient : PipelineWork::kBackward, stage, microbatch};
  }

  // When the result of `made`, sent by `send`, is at the stage `to`.
  std::optional<double> arrival(const PipelineAction& made, PipelineWork send, int to) {
    const auto& workers = orders_.worker_of_stage;
    bool stays =
        workers[static_cast<std::size_t>(made.stage)] == workers[static_cast<std::size_t>(to)];
    PipelineAction sent{send, made.stage, made.microbatch};
    if (!stays && listed_[index(sent)]) return end_of(sent);
    std::optional<double> end = end_of(made);
    if (!end) return end;
    return stays ? *end : *end + duration_(sent);
  }

  // When everything that the action needs is there; none: something has not happened, missing_.
  std::optional<double> ready_at(const PipelineAction& one) {
    int last = static_cast<int>(orders_.worker_of_stage.size()) - 1;
    switch (one.work) {
      case PipelineWork::kForward:
        if (one.stage == 0) return 0;
        return arrival({PipelineWork::kForward, one.stage - 1, one.microbatch},
                       PipelineWork::kSendForward, one.stage);
      case PipelineWork::kBackward:
      case PipelineWork::kInputGradient: {
        auto forward = end_of({PipelineWork::kForward, one.stage, one.microbatch});
        if (!forward || one.stage == last) return forward;
        auto gradient = arrival(input_gradient(one.stage + 1, one.microbatch),
                                PipelineWork::kSendBackward, one.stage);
        if (!gradient) return gradient;
        return std::max(*forward, *gradient);
      }
      case PipelineWork::kWeightGradient:
        return end_of({PipelineWork::kInputGradient, one.stage, one.microbatch});
      case PipelineWork::kSendForward:
        return end_of({PipelineWork::kForward, one.stage, one.microbatch});
      case PipelineWork::kSendBackward: return end_of(input_gradient(one.stage, one.microbatch));
      case PipelineWork::kUpdate: break;
    }
    auto stage = static_cast<std::size_t>(one.stage);
    if (gradients_left_[stage] == 0) return gradients_end_[stage];
    for (int microbatch = 0; microbatch < orders_.microbatches; ++microbatch)
      for (PipelineWork work : {PipelineWork::kBackward, PipelineWork::kWeightGradient})
        if (lists(work, one.stage, microbatch) && !ends_[index({work, one.stage, microbatch})])
          missing_ = {work, one.stage, microbatch};
    return std::nullopt;
  }

  const PipelineOrders& orders_;
  const std::function<double(const PipelineAction&)>& duration_;
  std::vector<std::optional<double>> ends_;  // by index()
  std::vector<bool> listed_;                 // by index()
  std::vector<int> gradients_left_;          // by stage
  std::vector<double> gradients_end_;        // by stage
  PipelineAction missing_;
};

}  // namespace

PipelineWalk walk_pipeline(const PipelineOrders& orders,
                           const std::function<double(const PipelineAction&)>& duration) {
  return PipelineWalker(orders, duration).run();
}

}  // namespace meshard::internal

#include "meshard/pipeline/schedule/standard_schedules.h"

#include <algorithm>

#include "meshard/base/cat.h"

namespace meshard {
namespace {

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

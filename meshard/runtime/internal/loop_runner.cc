#include "meshard/runtime/internal/loop_runner.h"

#include <algorithm>
#include <limits>
#include <string>

#include "meshard/base/period.h"
#include "meshard/graph/annotation.h"
#include "meshard/ops/constant.h"
#include "meshard/ops/definition/attributes.h"
#include "meshard/ops/definition/op_table.h"
#include "meshard/ops/slicing.h"

namespace meshard {
namespace {

using internal::RecordLog;

// Programs with fewer recorded nodes are not divided.
constexpr std::uint64_t kLeastNodes = RecordLog::kFirstCheck;
// Programs without a period are divided at that size. Then each node is a program: larger parts
// would all be different ones.
constexpr std::uint64_t kMostNodes = RecordLog::kSlots / 2;
// The size of a part of a loop with small steps: launches cost little compared to its operations,
// and it compiles quickly.
constexpr std::uint64_t kPartNodes = 96;
// In how many places of a period it looks for the fewest values.
constexpr std::uint64_t kMostPlaces = 256;

constexpr int kMostFailures = 20;

std::size_t hash_of(const Node& node) {
  std::string key;
  node.attributes()->append_key(key);
  return std::hash<std::string>()(key);
}

}  // namespace

bool may_be_argument(const Node& node) {
  if (node.annotations()) return false;
  if (&node.op() == &constant_op) return node.type().rank() == 0;
  if (&node.op() != &slice_op || node.operands().empty() || !node.operands()[0].storage())
    return false;
  const Dimensions& stride = node.attributes_as<SliceAttributes>().stride;
  return std::all_of(stride.begin(), stride.end(), [](std::int64_t each) { return each == 1; });
}

void LoopRunner::check(RecordLog& log, PartEvaluator& evaluator, SourceLocation where) {
  switch (state_) {
    case State::kWatching: return watch(log, evaluator, where);
    case State::kChoosing: return choose(log, evaluator, where);
    case State::kLooping: return go_on(log, evaluator, where);
  }
}

void LoopRunner::watch_from(RecordLog& log, std::uint64_t first) {
  state_ = State::kWatching;
  first_ = first;
  log.check_at(std::max(first + kLeastNodes, log.count() + kLeastNodes / 4));
}

void LoopRunner::fail(RecordLog& log) {
  watch_from(log, log.count());
  failures_ = std::min(failures_ + 1, kMostFailures);
  log.check_at(log.count() + (kLeastNodes << failures_));
}

void LoopRunner::watch(RecordLog& log, PartEvaluator& evaluator, SourceLocation where) {
  first_ = std::max(first_, log.oldest());
  RecordedPart part = evaluator.part(first_, log.count());
  std::size_t size = part.nodes.size();
  if (size < kLeastNodes) {
    first_ = size == 0 ? log.count() : part.nodes.front().first;
    log.check_at(log.count() + std::max(kLeastNodes - size, kLeastNodes / 8));
    return;
  }
  // What came before the loop counts less.
  std::vector<std::uint64_t> sites;
  for (std::uint64_t at = part.nodes[size / 4].first; at < log.count(); ++at)
    sites.push_back(log.site(at));
  part = {};
  std::optional<std::size_t> period = find_period(sites);
  if (period) {
    period_ = *period;
    state_ = State::kChoosing;
    choose_until_ = log.count() + period_;
    fewest_ = std::numeric_limits<std::size_t>::max();
    return choose(log, evaluator, where);
  }
  if (size < kMostNodes) return log.check_at(log.count() + kLeastNodes);
  std::uint64_t end = log.count();
  while (first_ < end) run_each(std::min(first_ + kLeastNodes, end), evaluator, where);
  watch_from(log, end);
}

void LoopRunner::choose(RecordLog& log, PartEvaluator& evaluator, SourceLocation where) {
  std::size_t in_use = evaluator.part(first_, log.count()).wanted.size();
  if (in_use < fewest_) {
    fewest_ = in_use;
    boundary_ = log.count();
  }
  if (log.count() >= choose_until_) return begin_loop(log, evaluator, where);
  log.check_at(log.count() + 1 + period_ / kMostPlaces);
}

void LoopRunner::begin_loop(RecordLog& log, PartEvaluator& evaluator, SourceLocation where) {
  first_ = std::max(first_, log.oldest());
  std::uint64_t begin = log.count() - 1;
  while (begin >= first_ + period_ && log.site(begin) == log.site(begin - period_)) --begin;
  // Node `begin` is the last one that does not repeat another, so the periods begin after the one
  // before it.
  std::uint64_t repeats_from = begin < first_ + period_ ? first_ : begin - period_ + 1;
  if (boundary_ < repeats_from + period_) return watch_from(log, first_);
  std::uint64_t periods = (boundary_ - repeats_from) / period_;
  loop_ = repeats_from;
  steps_ = std::max<std::uint64_t>(1, kPartNodes / period_);
  fixed_.assign(period_, {});
  state_ = State::kLooping;
  note_fixed(evaluator.part(loop_, boundary_));
  boundary_ -= periods * period_;
  if (first_ < boundary_) run_until(boundary_, evaluator, where);
  for (; periods % steps_ != 0; --periods) run_periods(1, evaluator, where);
  for (; periods != 0; periods -= steps_) run_periods(steps_, evaluator, where);
  log.check_at(boundary_ + steps_ * period_);
}

std::uint64_t LoopRunner::repeated(const RecordLog& log) const {
  std::uint64_t at = boundary_;
  while (at < log.count() && log.site(at) == log.site(at - period_)) ++at;
  return at - boundary_;
}

void LoopRunner::go_on(RecordLog& log, PartEvaluator& evaluator, SourceLocation where) {
  std::uint64_t part = steps_ * period_;
  // Nodes may be recorded for long where nothing may run.
  if (boundary_ < log.oldest() + period_) return watch_from(log, log.oldest());
  std::uint64_t same = repeated(log);
  for (; same >= part; same -= part) run_periods(steps_, evaluator, where);
  if (boundary_ + same == log.count()) return log.check_at(boundary_ + part);
  for (; same >= period_; same -= period_) run_periods(1, evaluator, where);
  watch_from(log, boundary_);
}

void LoopRunner::finish_periods(RecordLog& log, PartEvaluator& evaluator, SourceLocation where) {
  if (state_ != State::kLooping || boundary_ < log.oldest() + period_) return;
  std::uint64_t same = repeated(log);
  for (; same >= period_; same -= period_) run_periods(1, evaluator, where);
  if (same > 0) make_arguments(evaluator.part(boundary_, boundary_ + same), evaluator, where);
  log.check_at(boundary_ + steps_ * period_);
}

void LoopRunner::run_periods(std::uint64_t periods, PartEvaluator& evaluator,
                             SourceLocation where) {
  run_until(boundary_ + periods * period_, evaluator, where);
  boundary_ += periods * period_;
}

void LoopRunner::run_until(std::uint64_t last, PartEvaluator& evaluator, SourceLocation where) {
  RecordedPart part = evaluator.part(first_, last);
  if (state_ == State::kLooping) {
    note_fixed(part);
    make_arguments(part, evaluator, where);
  }
  part.nodes.clear();  // only values to which something else refers are results
  if (!part.wanted.empty()) {
    evaluator.run(part.wanted, where);
    failures_ = 0;
  }
  first_ = last;
}

void LoopRunner::run_each(std::uint64_t last, PartEvaluator& evaluator, SourceLocation where) {
  for (const auto& [number, value] : evaluator.part(first_, last).nodes) {
    bool is_local = value->annotations() && value->annotations()->manual;
    if (!is_local && !value.storage()) evaluator.run({&value, 1}, where);
  }
  first_ = last;
}

LoopRunner::Fixed* LoopRunner::fixed(const std::pair<std::uint64_t, Value>& node) {
  if (node.first < loop_ || !may_be_argument(*node.second.node())) return nullptr;
  return &fixed_[(node.first - loop_) % period_];
}

void LoopRunner::note_fixed(const RecordedPart& part) {
  for (const auto& node : part.nodes) {
    Fixed* known = fixed(node);
    if (!known || known->varies) continue;
    std::size_t hash = hash_of(*node.second.node());
    known->varies = known->hash && *known->hash != hash;
    known->hash = hash;
  }
}

void LoopRunner::make_arguments(const RecordedPart& part, PartEvaluator& evaluator,
                                SourceLocation where) {
  std::vector<Value> varying;
  for (const auto& node : part.nodes)
    if (const Fixed* known = fixed(node); known && known->varies) varying.push_back(node.second);
  if (!varying.empty()) evaluator.make_arguments(varying, where);
}

}  // namespace meshard

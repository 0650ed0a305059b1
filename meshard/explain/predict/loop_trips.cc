#include "meshard/explain/predict/loop_trips.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "meshard/base/cat.h"

namespace meshard {
namespace {

using stablehlo::ModuleOp;
using stablehlo::ModuleRegion;

// The op of a region that makes a value; null if it is made elsewhere.
const ModuleOp* maker(const ModuleRegion& region, int variable) {
  for (const ModuleOp& op : region.ops)
    if (std::find(op.results.begin(), op.results.end(), variable) != op.results.end()) return &op;
  return nullptr;
}

// The values that a region returns.
const std::vector<int>* returned(const ModuleRegion& region) {
  bool ends = !region.ops.empty() && region.ops.back().mnemonic.ends_with(".return");
  return ends ? &region.ops.back().operands : nullptr;
}

class Counting {
 public:
  Counting(const ModuleOp& loop, const ModuleConstants& constants)
      : loop_(loop), constants_(constants) {}

  std::optional<std::int64_t> trips() const {
    if (loop_.regions.size() != 2) return std::nullopt;
    const std::vector<int>* goes_on = returned(condition());
    if (!goes_on || goes_on->size() != 1) return std::nullopt;
    const ModuleOp* test = maker(condition(), (*goes_on)[0]);
    if (!test || test->mnemonic != "stablehlo.compare" || test->operands.size() != 2)
      return std::nullopt;
    bool counter_first = true;
    std::optional<std::int64_t> limit = limit_of(test->operands[1]);
    std::optional<std::size_t> counter = carry(condition(), test->operands[0]);
    if (!limit || !counter) {
      counter_first = false;
      limit = limit_of(test->operands[0]);
      counter = carry(condition(), test->operands[1]);
    }
    if (!limit || !counter) return std::nullopt;
    std::optional<std::int64_t> first = initial(*counter), step = step_of(*counter);
    if (!first || !step) return std::nullopt;
    return count(direction(*test, counter_first), *first, *limit, *step);
  }

 private:
  const ModuleRegion& condition() const { return loop_.regions[0]; }
  const ModuleRegion& body() const { return loop_.regions[1]; }

  static std::optional<std::size_t> carry(const ModuleRegion& region, int variable) {
    auto found = std::find(region.arguments.begin(), region.arguments.end(), variable);
    if (found == region.arguments.end()) return std::nullopt;
    return static_cast<std::size_t>(found - region.arguments.begin());
  }

  std::optional<std::int64_t> constant(int variable) const {
    auto found = constants_.find(variable);
    return found == constants_.end() ? std::nullopt : std::optional(found->second);
  }

  std::optional<std::int64_t> initial(std::size_t carry) const {
    return carry < loop_.operands.size() ? constant(loop_.operands[carry]) : std::nullopt;
  }

  // The constant that a carry keeps.
  std::optional<std::int64_t> kept(std::optional<std::size_t> carry) const {
    const std::vector<int>* next = returned(body());
    bool keeps = carry && next && *carry < next->size() && *carry < body().arguments.size() &&
                 (*next)[*carry] == body().arguments[*carry];
    return keeps ? initial(*carry) : std::nullopt;
  }

  std::optional<std::int64_t> limit_of(int variable) const {
    std::optional<std::int64_t> own = constant(variable);
    return own ? own : kept(carry(condition(), variable));
  }

  // What one iteration adds to a carry.
  std::optional<std::int64_t> step_of(std::size_t counter) const {
    const std::vector<int>* next = returned(body());
    if (!next || counter >= next->size() || counter >= body().arguments.size()) return std::nullopt;
    std::int64_t sum = 0;
    int at = (*next)[counter];
    // Each turn goes back by one op.
    for (std::size_t turns = 0; turns <= body().ops.size(); ++turns) {
      if (at == body().arguments[counter]) return sum;
      const ModuleOp* op = maker(body(), at);
      if (!op || op->operands.size() != 2) return std::nullopt;
      int from = op->operands[0];
      std::optional<std::int64_t> by = step_constant(op->operands[1]);
      if (op->mnemonic == "stablehlo.add") {
        if (!by) by = step_constant(std::exchange(from, op->operands[1]));
      } else if (op->mnemonic == "stablehlo.subtract") {
        if (by && !is_far(*by)) by = -*by;
      } else {
        return std::nullopt;
      }
      if (!by || is_far(*by) || is_far(sum)) return std::nullopt;
      sum += *by;
      at = from;
    }
    return std::nullopt;
  }

  std::optional<std::int64_t> step_constant(int variable) const {
    std::optional<std::int64_t> own = constant(variable);
    return own ? own : kept(carry(body(), variable));
  }

  // The comparison with the counter on the left: `LT`.
  static std::string_view direction(const ModuleOp& test, bool counter_first) {
    std::string_view found;
    for (const stablehlo::ModuleAttribute& attribute : test.attributes)
      for (std::string_view each : {"LT", "LE", "GT", "GE", "NE"})
        if (attribute.value == each || attribute.value.ends_with(cat(" ", each, ">"))) found = each;
    if (counter_first || found == "NE" || found.empty()) return found;
    return found == "LT" ? "GT" : found == "LE" ? "GE" : found == "GT" ? "LT" : "LE";
  }

  static std::optional<std::int64_t> count(std::string_view direction, std::int64_t first,
                                           std::int64_t limit, std::int64_t step) {
    if (is_far(first) || is_far(limit)) return std::nullopt;
    bool up = direction == "LT" || direction == "LE";
    if (direction == "NE") {
      bool meets = step != 0 && (limit - first) % step == 0 && (limit - first) / step >= 0;
      return meets ? std::optional((limit - first) / step) : std::nullopt;
    }
    if (!up && direction != "GT" && direction != "GE") return std::nullopt;
    std::int64_t distance = up ? limit - first : first - limit, stride = up ? step : -step;
    if (direction == "LE" || direction == "GE") ++distance;
    if (distance <= 0) return 0;
    if (stride <= 0) return std::nullopt;
    return (distance + stride - 1) / stride;
  }

  // No loop counts that far, and sums of nearer numbers do not overflow.
  static bool is_far(std::int64_t number) {
    constexpr std::int64_t kFarthest = std::int64_t{1} << 52;
    return number > kFarthest || number < -kFarthest;
  }

  const ModuleOp& loop_;
  const ModuleConstants& constants_;
};

}  // namespace

ModuleConstants constants_of(const stablehlo::Module& module) {
  ModuleConstants constants;
  for_each_op(module.ops(), [&](const ModuleOp& op) {
    if (op.mnemonic != "stablehlo.constant" || op.results.size() != 1) return;
    std::string_view written = stablehlo::find_attribute(op.attributes, "");
    if (written.empty()) written = stablehlo::find_attribute(op.attributes, "value");
    std::size_t begin = written.find('<'), end = written.find('>');
    if (!written.starts_with("dense<") || end == std::string_view::npos) return;
    std::string_view number = written.substr(begin + 1, end - begin - 1);
    if (number.find_first_not_of("-0123456789") != std::string_view::npos) return;
    std::vector<std::int64_t> numbers = stablehlo::integers_of(number);
    if (numbers.size() == 1) constants.emplace(op.results[0], numbers[0]);
  });
  return constants;
}

std::optional<std::int64_t> trips_of(const ModuleOp& loop, const ModuleConstants& constants) {
  return Counting(loop, constants).trips();
}

}  // namespace meshard

#include "meshard/hlo/trip_count.h"

#include <charconv>
#include <string>
#include <string_view>

#include "meshard/hlo/internal/scalar_reader.h"

namespace meshard {
namespace {

using internal::ScalarFrame;
using internal::ScalarPlace;
using internal::ScalarReader;
using internal::ScalarValue;

// Reads `"known_trip_count":{"n":"12"}` from the backend config.
std::optional<std::int64_t> count_from_config(std::string_view config) {
  std::size_t at = config.find("\"known_trip_count\"");
  if (at == std::string_view::npos) return std::nullopt;
  std::string_view rest = config.substr(at);
  rest = rest.substr(0, rest.find('}'));
  std::size_t n = rest.find("\"n\"");
  std::size_t digit = n == std::string_view::npos ? n : rest.find_first_of("0123456789", n);
  if (digit == std::string_view::npos) return std::nullopt;
  std::int64_t count = 0;
  auto [end, error] = std::from_chars(rest.data() + digit, rest.data() + rest.size(), count);
  return error == std::errc() ? std::optional(count) : std::nullopt;
}

// The operator OP' with which `a OP b` equals `b OP' a`.
std::string_view mirrored(std::string_view direction) {
  if (direction == "LT") return "GT";
  if (direction == "GT") return "LT";
  if (direction == "LE") return "GE";
  if (direction == "GE") return "LE";
  return direction;
}

// Iterations of `for (i = start; i OP limit; i += step)`.
std::optional<std::int64_t> iterations(std::int64_t start, std::int64_t step,
                                       std::string_view direction, std::int64_t limit) {
  std::int64_t way = limit - start;
  if (direction == "LE") ++way;
  if (direction == "GE") --way;
  bool up = direction == "LT" || direction == "LE";
  if (up || direction == "GT" || direction == "GE") {
    if (up ? way <= 0 : way >= 0) return 0;
    if (up ? step <= 0 : step >= 0) return std::nullopt;  // never terminates
    return way / step + (way % step != 0);
  }
  if (direction == "EQ")
    return way != 0 ? 0 : step != 0 ? std::optional(std::int64_t{1}) : std::nullopt;
  if (direction != "NE" || (way != 0 && step == 0)) return std::nullopt;
  if (way == 0) return 0;
  if (way % step != 0 || way / step < 0) return std::nullopt;
  return way / step;
}

class LoopReader {
 public:
  LoopReader(const ModuleIndex& module, const Calls& calls, const InstructionIndex& computation,
             const HloInstruction& loop)
      : reader_(module, calls),
        computation_(computation),
        loop_(loop),
        body_(module.called(loop, 0)),
        condition_(module.called(loop, 1)) {}

  std::optional<std::int64_t> count() {
    if (body_ == nullptr || condition_ == nullptr) return std::nullopt;
    ScalarPlace test = reader_.source(reader_.result_of_iteration(*condition_, std::nullopt));
    if (test.instruction == nullptr || test.instruction->opcode != "compare") return std::nullopt;
    std::optional<ScalarValue> left = reader_.read(ScalarReader::operand(test, 0));
    std::optional<ScalarValue> right = reader_.read(ScalarReader::operand(test, 1));
    if (!left || !right) return std::nullopt;
    std::string_view direction = test.instruction->comparison_direction;
    *left = with_constants(*left);
    *right = with_constants(*right);
    if (right->variable) {
      std::swap(*left, *right);
      direction = mirrored(direction);
    }
    if (right->variable) return std::nullopt;  // both sides change
    if (!left->variable) return iterations(left->offset, 0, direction, right->offset);
    std::optional<ScalarValue> next =
        reader_.read(reader_.result_of_iteration(*body_, *left->variable));
    if (!next || next->variable != left->variable) return std::nullopt;
    std::optional<std::int64_t> start = first(*left->variable);
    if (!start) return std::nullopt;
    return iterations(*start + left->offset, next->offset, direction, right->offset);
  }

 private:
  // An element of the loop state before the first iteration.
  std::optional<std::int64_t> first(std::int64_t element) {
    static const ScalarFrame kAnyCall = {};
    ScalarPlace place{&computation_, computation_.operand(loop_, 0), &kAnyCall, {element}};
    std::optional<ScalarValue> value = reader_.read(place);
    if (!value || value->variable) return std::nullopt;
    return value->offset;
  }

  // Replaces a variable that no iteration changes by its initial value.
  ScalarValue with_constants(const ScalarValue& value) {
    if (!value.variable || !reader_.is_unchanged(*body_, *value.variable)) return value;
    std::optional<std::int64_t> start = first(*value.variable);
    return start ? ScalarValue{std::nullopt, *start + value.offset} : value;
  }

  ScalarReader reader_;
  const InstructionIndex& computation_;
  const HloInstruction& loop_;
  const InstructionIndex* body_;
  const InstructionIndex* condition_;
};

}  // namespace

std::optional<std::int64_t> trip_count(const ModuleIndex& module, const Calls& calls,
                                       const InstructionIndex& computation,
                                       const HloInstruction& loop) {
  if (auto count = count_from_config(loop.backend_config); count && *count >= 0) return count;
  return LoopReader(module, calls, computation, loop).count();
}

}  // namespace meshard

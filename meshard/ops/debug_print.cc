#include "meshard/ops/debug_print.h"

#include <cstdio>
#include <memory>
#include <mutex>
#include <utility>

#include "meshard/graph/annotate.h"
#include "meshard/graph/annotation.h"
#include "meshard/graph/effects.h"
#include "meshard/ops/definition/define.h"
#include "meshard/ops/definition/host_call.h"
#include "meshard/ops/slicing.h"

namespace meshard {
extern const OpDef debug_print_op;
namespace {

// Calls piece(text) for each text between places, and place() for each `{}`.
// Returns the position of a brace that is neither; npos if there is none.
template <class Piece, class Place>
std::size_t for_each_piece(std::string_view format, Piece piece, Place place) {
  for (std::size_t i = 0; i < format.size(); ++i) {
    char c = format[i], next = i + 1 < format.size() ? format[i + 1] : '\0';
    if (c == '{' && next == '}') {
      place();
      ++i;
    } else if ((c == '{' || c == '}') && next == c) {
      piece(format.substr(i, 1));
      ++i;
    } else if (c == '{' || c == '}') {
      return i;
    } else {
      piece(format.substr(i, 1));
    }
  }
  return std::string_view::npos;
}

// Why a format does not fit this number of values; empty if it does.
std::string format_error(std::string_view format, std::size_t values) {
  std::size_t places = 0;
  std::size_t brace = for_each_piece(
      format, [](std::string_view) {}, [&] { ++places; });
  if (brace != std::string_view::npos)
    return cat("the format \"", format, "\" has a single '", format[brace], "' at position ", brace,
               ": write {} for a value, and {{ or }} for a brace");
  if (places != values)
    return cat("the format \"", format, "\" has ", places, " {}, but the number of values is ",
               values);
  return {};
}

void infer_debug_print(const OpCall& call, ResultTypes& results) {
  if (call.operands.empty()) call.fail("takes the tensor that it returns");
  const auto& [format, silent] = call.as<DebugPrintAttributes>();
  if (std::string error = format_error(format, call.operands.size() - 1); !silent && !error.empty())
    call.fail(error);
  results.push_back(call.operand(0));
}

ShardingRule debug_print_rule(const OpCall& call) {
  ShardingRuleBuilder builder;
  TensorFactors passed = own_factors(builder, call.operand(0).shape);
  builder.operand(passed);
  for (std::size_t i = 1; i < call.operands.size(); ++i)
    builder.operand(own_factors(builder, call.operand(i).shape, FactorKind::kNeedReplication));
  return builder.result(passed).build();
}

// The result varies as operand 0 does, whatever the printed values do.
AnnotationsPtr annotate_debug_print(const Node& node) {
  AnnotationsPtr all = annotate_by_operands(node);
  if (!all || !all->manual) return all;
  const ManualAxes* own = manual_axes(node.operands()[0]);
  AxisSet varying = own ? own->varying : AxisSet();
  return annotations_of(all->manual->with_varying(varying));
}

Tensor record_print(const In& x, DebugPrintAttributes attributes,
                    const std::vector<Tensor>& values) {
  std::vector<Tensor> operands{operand_tensor(debug_print_op, x)};
  operands.insert(operands.end(), values.begin(), values.end());
  return record_all(debug_print_op, make_attributes(std::move(attributes)), operands, x.where)[0];
}

// Prints a line for each member, or one line if all members share the values.
void batch_debug_print(const BatchCall& call, std::span<Tensor> results) {
  const auto& [format, silent] = call.as<DebugPrintAttributes>();
  results[0] = batched_operand(call, 0);
  if (silent) {
    std::vector<Tensor> values(call.operands.begin() + 1, call.operands.end());
    results[0] = internal::needing(In(results[0], call.node.where()), values);
    return;
  }
  bool differs = false;
  for (std::size_t i = 1; i < call.operands.size(); ++i) differs |= call.batched[i];
  for (std::int64_t member = 0; member < (differs ? call.size : 1); ++member) {
    std::vector<Tensor> values;
    for (std::size_t i = 1; i < call.operands.size(); ++i)
      values.push_back(member_operand(call, i, member));
    results[0] = with_debug_print(In(results[0], call.node.where()), format, values);
  }
}

struct Handler {
  std::mutex mutex;
  std::shared_ptr<const DebugPrintHandler> function;  // guarded by mutex
};

// Never destroyed: programs may run while static objects are destroyed.
Handler& handler() {
  static auto* instance = new Handler;
  return *instance;
}

}  // namespace

extern constinit const OpDef debug_print_op = {
    .name = "debug_print",
    .operands = "x, values...",
    .doc =
        "The operand x itself; the program prints the values whenever it computes the result. "
        "`debug_print(format, values...)` attaches this to a result of the function that calls "
        "it.",
    .example = "with_debug_print(x, \"y is {}\", {y})",
    .infer = infer_debug_print,
    .sharding_rule = debug_print_rule,
    .emit = emit_host_call,
    .vjp = [](const VjpCall& call, std::span<Tensor> out) { out[0] = call.cotangents[0]; },
    .batch = batch_debug_print,
    .annotate = annotate_debug_print,
    .parse_attributes = parse_attributes<DebugPrintAttributes>,
};

Tensor with_debug_print(In x, std::string_view format, const std::vector<Tensor>& values) {
  return record_print(x, {std::string(format)}, values);
}

Tensor internal::needing(In x, const std::vector<Tensor>& values) {
  return record_print(x, {.format = {}, .silent = true}, values);
}

void set_debug_print_handler(DebugPrintHandler function) {
  auto shared = function ? std::make_shared<const DebugPrintHandler>(std::move(function)) : nullptr;
  std::lock_guard lock(handler().mutex);
  handler().function = std::move(shared);
}

namespace internal {

std::string formatted(std::string_view format, std::span<const std::string> values) {
  std::string out;
  std::size_t next = 0;
  for_each_piece(
      format, [&](std::string_view text) { out.append(text); },
      [&] { out.append(next < values.size() ? values[next++] : "{}"); });
  return out;
}

std::string elements_text(const HostArray& array) {
  std::string text = array.to_string();
  return text.substr(0, text.rfind(' '));  // without the type
}

void print_debug_line(const std::string& line) {
  std::shared_ptr<const DebugPrintHandler> function;
  {
    std::lock_guard lock(handler().mutex);
    function = handler().function;
  }
  if (function) return (*function)(line);
  std::string text = line + "\n";  // one call, so that lines of several threads stay whole
  (void)std::fputs(text.c_str(), stdout);
  (void)std::fflush(stdout);
}

void debug_print(const DebugFormat& format, std::span<const In> values) {
  SourceLocation where = effective_source(format.where);
  if (std::string error = format_error(format.text, values.size()); !error.empty())
    throw_invalid(where, "[debug_print] ", error);
  std::vector<Tensor> tensors;
  for (const In& value : values) tensors.push_back(operand_tensor(debug_print_op, value));
  if (EffectScope* scope = EffectScope::current()) {
    scope->add([text = std::string(format.text), tensors = std::move(tensors),
                where](const Tensor& x) { return with_debug_print(In(x, where), text, tensors); },
               where);
    return;
  }
  if (tracing()) return;  // only analyzed, never run
  std::vector<std::string> texts;
  for (const Tensor& tensor : tensors) texts.push_back(elements_text(tensor.to_host(where)));
  print_debug_line(formatted(format.text, texts));
}

}  // namespace internal
}  // namespace meshard

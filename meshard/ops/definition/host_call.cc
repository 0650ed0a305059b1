// Tested in meshard/lowering/internal/host_calls_test.cc.
#include "meshard/ops/definition/host_call.h"

#include "meshard/ops/all.h"
#include "meshard/ops/definition/attributes.h"
#include "meshard/ops/definition/emission.h"
#include "meshard/stablehlo/types.h"

namespace meshard {
extern const OpDef debug_print_op;
extern const OpDef pure_callback_op;
namespace {
constexpr std::string_view kTarget = "meshard.host_call";  // also in pjrt/host_call.h
}  // namespace

bool is_host_call(const Node& node) {
  if (&node.op() == &debug_print_op) return !node.attributes_as<DebugPrintAttributes>().silent;
  return &node.op() == &pure_callback_op;
}

bool prints(const Body& body) {
  for (const Node* node : body.graph().nodes()) {
    if (&node->op() == &debug_print_op) return true;
    for (const Body& inner : bodies_of(*node))
      if (prints(inner)) return true;
  }
  return false;
}

std::optional<HostCallText> host_call_text(const OpCall& call) {
  if (&call.op == &debug_print_op && call.as<DebugPrintAttributes>().silent) return std::nullopt;
  if (&call.op == &debug_print_op)
    return HostCallText{.attributes = {{"kind", std::string(kPrintCall)},
                                       {"text", call.as<DebugPrintAttributes>().format}},
                        .first_operand = 1,
                        .is_effect = true};
  if (&call.op == &pure_callback_op)
    return HostCallText{
        .attributes = {{"kind", std::string(kFunctionCall)},
                       {"function", std::to_string(call.as<PureCallbackAttributes>().function)}}};
  return std::nullopt;
}

const TensorType& effect_type() {
  static const TensorType type{DType::bool_, Shape{}};
  return type;
}

void write_host_call(stablehlo::ModuleWriter& writer, const HostCallText& text,
                     std::span<const stablehlo::Typed> results,
                     std::span<const stablehlo::Typed> arguments, std::string_view location) {
  std::string config = "{";
  for (const auto& [name, value] : text.attributes) {
    append(config, cat(config.size() > 1 ? ", " : "", name, " = "));
    stablehlo::append_quoted(config, value);
  }
  config += "}";
  writer.custom_call(kTarget, results, arguments, location)
      .boolean("has_side_effect", text.is_effect)
      .i32("api_version", kTypedFfi)
      .raw("backend_config", config)
      .done();
}

void emit_host_call(const OpCall& call, OpEmission& out) {
  std::optional<HostCallText> wanted = host_call_text(call);
  if (!wanted) {
    out.writer.op("stablehlo.reshape", out.results, out.operands.first(1), out.location).done();
    return;
  }
  const HostCallText& text = *wanted;
  auto arguments = out.operands.subspan(text.first_operand);
  if (!text.is_effect)
    return write_host_call(out.writer, text, out.results, arguments, out.location);
  const stablehlo::Typed nothing(out.writer.temporary(), effect_type());
  write_host_call(out.writer, text, {&nothing, 1}, arguments, out.location);
  out.writer.op("stablehlo.reshape", out.results, out.operands.first(1), out.location).done();
}

}  // namespace meshard

// Calls of functions of this process from compiled programs, as custom calls. Not a public header.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "meshard/graph/body.h"
#include "meshard/graph/op_def.h"
#include "meshard/stablehlo/module_writer.h"

namespace meshard {

/// The `api_version` of custom calls through XLA's typed foreign function interface (FFI).
inline constexpr int kTypedFfi = 4;

/// What a node passes to the host.
struct HostCallText {
  /// Names and values; `kind` tells the host what to do.
  std::vector<std::pair<std::string, std::string>> attributes;
  /// Operands before this one are not passed.
  std::size_t first_operand = 0;
  /// True for a call that returns nothing but must run: the node returns its operand 0.
  bool is_effect = false;
};

/// Kinds of calls, and the attribute that lists what each device prints in front of its text:
/// texts for the logical devices in order, separated by `;`. A device with the text `-` prints
/// nothing. Empty or missing: one device. Otherwise the last argument is the logical device.
inline constexpr std::string_view kPrintCall = "print";
inline constexpr std::string_view kFunctionCall = "function";
inline constexpr std::string_view kNanCall = "nan";
inline constexpr std::string_view kPlaces = "places";

/// The host call that an op consists of; empty for nearly all ops.
std::optional<HostCallText> host_call_text(const OpCall& call);
/// The same test for a node, without the text.
bool is_host_call(const Node& node);
/// True if a node of the body, or of a body in it, prints.
bool prints(const Body& body);

/// Writes the custom call. A call with an effect has one result of type bool, which has no meaning.
void write_host_call(stablehlo::ModuleWriter& writer, const HostCallText& text,
                     std::span<const stablehlo::Typed> results,
                     std::span<const stablehlo::Typed> arguments, std::string_view location);

/// The `emit` of ops that consist of a host call, for a program on one device.
void emit_host_call(const OpCall& call, struct OpEmission& out);

/// The type of the result of a call with an effect.
const TensorType& effect_type();

}  // namespace meshard

#include "meshard/explain/cost/custom_call_use.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <iterator>
#include <utility>

#include "meshard/base/cat.h"
#include "meshard/base/saturating.h"
#include "meshard/explain/byte_text.h"
#include "meshard/explain/collectives/origin.h"
#include "meshard/explain/cost/module_cost.h"
#include "meshard/hlo/executions.h"

namespace meshard {
namespace {

struct ByteUnit {
  std::string_view name;
  double bytes;
};
constexpr ByteUnit kByteUnits[] = {{"", 1},
                                   {"B", 1},
                                   {"KB", 1e3},
                                   {"MB", 1e6},
                                   {"GB", 1e9},
                                   {"KiB", 1024},
                                   {"MiB", 1024.0 * 1024},
                                   {"GiB", 1024.0 * 1024 * 1024}};

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

// A number of bytes, or of operations, which have no unit. None if it is not one.
std::optional<double> amount(std::string_view text, bool bytes) {
  text = trimmed(text);
  double number = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || !std::isfinite(number) || number < 0) return std::nullopt;
  std::string_view unit = trimmed(text.substr(static_cast<std::size_t>(end - text.data())));
  if (!bytes) return unit.empty() ? std::optional(number) : std::nullopt;
  for (const ByteUnit& each : kByteUnits)
    if (unit == each.name) return number * each.bytes;
  return std::nullopt;
}

std::vector<std::string_view> parts_of(std::string_view text) {
  std::vector<std::string_view> parts;
  while (true) {
    std::size_t comma = text.find(',');
    parts.push_back(text.substr(0, comma));
    if (comma == std::string_view::npos) return parts;
    text.remove_prefix(comma + 1);
  }
}

bool has_name(const CustomCall& call, std::string_view name) {
  return call.name == name || call.instruction->custom_call_target == name ||
         call.instruction->name == name;
}

std::string flop_text(double flops) {
  constexpr std::string_view kUnits[] = {"flop", "Kflop", "Mflop", "Gflop", "Tflop"};
  std::size_t unit = 0;
  while (unit + 1 < std::size(kUnits) && flops >= 1000) flops /= 1000, ++unit;
  char number[40];
  std::snprintf(number, sizeof number, "%.3g ", flops);
  return cat(number, kUnits[unit]);
}

std::string bytes_of(double bytes) {
  return byte_text(static_cast<std::int64_t>(std::min(bytes, static_cast<double>(kMostCounted))));
}

}  // namespace

std::string CustomCallUse::to_string() const {
  std::string text = cat(count, count == 1 ? " custom call " : " custom calls ", name);
  if (target != name) append(text, cat(" (", target, ")"));
  if (executions > count) append(text, cat(", ", executions, " executions"));
  append(text, cat(", operands ", byte_text(operand_bytes), ", results ", byte_text(result_bytes)));
  if (source == CustomCallSource::kUnknown) {
    append(text, ", cost unknown");
  } else {
    append(text, cat(", ", meshard::to_string(source), " ", flop_text(flops), " and ",
                     bytes_of(memory_bytes)));
    if (link_bytes > 0) append(text, cat(", sends ", bytes_of(link_bytes)));
  }
  if (communicates && link_bytes == 0) append(text, ", sends data to other devices");
  if (!place.empty()) append(text, cat(", from ", place));
  return text;
}

Result<GivenCost> GivenCost::parse(std::string_view text) {
  std::size_t equals = text.rfind('=');
  if (equals != std::string_view::npos && equals > 0) {
    std::vector<std::string_view> parts = parts_of(text.substr(equals + 1));
    std::optional<double> flops = amount(parts[0], false);
    std::optional<double> memory = parts.size() > 1 ? amount(parts[1], true) : std::nullopt;
    std::optional<double> sent = parts.size() > 2 ? amount(parts[2], true) : std::optional(0.0);
    if (flops && memory && sent && parts.size() <= 3)
      return GivenCost{std::string(trimmed(text.substr(0, equals))),
                       {.flops = *flops, .memory_bytes = *memory, .link_bytes = *sent}};
  }
  return Error(ErrorCode::kInvalidArgument,
               cat("[explain] invalid cost `", text,
                   "`: expected NAME=FLOPS,BYTES or NAME=FLOPS,BYTES,LINK BYTES for one execution "
                   "of a custom call, such as my_kernel=2e9,64MiB"));
}

Result<void> give_costs(const std::vector<GivenCost>& given, std::vector<CustomCall>& calls) {
  for (const GivenCost& each : given) {
    bool found = false;
    for (CustomCall& call : calls) {
      if (!has_name(call, each.name)) continue;
      found = true;
      call.cost = each.cost;
      call.source = CustomCallSource::kGiven;
      call.communicates = call.communicates || each.cost.link_bytes > 0;
    }
    if (found) continue;
    std::vector<std::string> names;
    for (const CustomCall& call : calls) add_once(names, call.name);
    return Error(ErrorCode::kInvalidArgument,
                 cat("[explain] a cost is given for `", each.name, "`, but the program has ",
                     names.empty() ? std::string("no custom calls")
                                   : cat("only the custom calls ", join(names, ", "))));
  }
  return {};
}

std::vector<CustomCallUse> group_custom_calls(const Executions& executions,
                                              const std::vector<CustomCall>& calls,
                                              const Graph* graph) {
  OriginFinder places(graph);
  ModuleCost costs(executions, calls);
  std::vector<CustomCallUse> uses;
  for (const CustomCall& call : calls) {
    std::string place;
    if (std::optional<OriginPlace> named = places.named(*call.instruction))
      place = named->to_string();
    auto found = std::find_if(uses.begin(), uses.end(), [&](const CustomCallUse& use) {
      return use.name == call.name && use.target == call.instruction->custom_call_target &&
             use.source == call.source && use.place == place &&
             use.communicates == call.communicates;
    });
    if (found == uses.end()) {
      uses.push_back({.name = call.name,
                      .target = call.instruction->custom_call_target,
                      .source = call.source,
                      .communicates = call.communicates,
                      .place = std::move(place)});
      found = uses.end() - 1;
    }
    auto times = static_cast<double>(call.executions);
    ++found->count;
    found->executions = saturating_add(found->executions, call.executions);
    found->operand_bytes = saturating_add(found->operand_bytes,
                                          saturating_multiply(call.operand_bytes, call.executions));
    found->result_bytes = saturating_add(found->result_bytes,
                                         saturating_multiply(call.result_bytes, call.executions));
    if (call.source == CustomCallSource::kUnknown) continue;
    const HloCost& cost = costs.of(*call.instruction);
    found->flops += times * cost.matrix_flops();
    found->memory_bytes += times * (call.cost && call.cost->memory_bytes ? *call.cost->memory_bytes
                                                                         : cost.memory_bytes);
    if (call.cost) found->link_bytes += times * call.cost->link_bytes;
  }
  return uses;
}

std::vector<std::string> custom_call_notes(const std::vector<CustomCallUse>& uses) {
  std::vector<std::string> unknown, silent, notes;
  for (const CustomCallUse& use : uses) {
    if (use.source == CustomCallSource::kUnknown) add_once(unknown, use.name);
    if (use.communicates && use.link_bytes == 0) add_once(silent, use.name);
  }
  if (!unknown.empty())
    notes.push_back(cat("the cost of custom calls is unknown (", join(unknown, ", "),
                        "): only their operands and results count, and the times are too low; give "
                        "it with --cost NAME=FLOPS,BYTES"));
  if (!silent.empty())
    notes.push_back(cat("custom calls send data to other devices (", join(silent, ", "),
                        ") and do not say how much: the communication is too low; give it with "
                        "--cost NAME=FLOPS,BYTES,LINK BYTES"));
  return notes;
}

}  // namespace meshard

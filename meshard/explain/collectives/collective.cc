#include "meshard/explain/collectives/collective.h"

#include <algorithm>
#include <array>

#include "meshard/base/cat.h"
#include "meshard/explain/byte_text.h"

namespace meshard {
namespace {

// Parts of names that JAX writes for its own constructs.
constexpr std::string_view kConstructs =
    "while closed_call checkpoint remat remat2 shard_map scan pjit core_call custom_jvp_call "
    "custom_vjp_call rematted_computation custom_vjp_call_jaxpr body_fun cond_fun xla_call";

// Transformations: the scopes are inside the parentheses.
constexpr std::array<std::string_view, 5> kTransformations = {"jvp(", "transpose(", "vmap(",
                                                              "remat(", "checkpoint("};

std::vector<std::string_view> split(std::string_view name) {
  std::vector<std::string_view> parts;
  std::size_t begin = 0;
  int depth = 0;
  for (std::size_t i = 0; i <= name.size(); ++i) {
    if (i < name.size()) depth += name[i] == '(' ? 1 : name[i] == ')' ? -1 : 0;
    if (i < name.size() && (name[i] != '/' || depth > 0)) continue;
    if (i > begin) parts.push_back(name.substr(begin, i - begin));
    begin = i + 1;
  }
  return parts;
}

// `body` and `cond` are parts of a loop only behind `while`, and `cond` is one before its branches;
// elsewhere they are names of scopes.
bool is_construct(std::string_view part, std::string_view before, std::string_view after) {
  if (part == "body" || part == "cond")
    return before == "while" || (part == "cond" && after.starts_with("branch_"));
  if (lists_name(kConstructs, part)) return true;
  if (part.starts_with("branch_") && part.ends_with("_fun")) return true;
  if (part.find("->") != std::string_view::npos) return true;  // an einsum
  if (part.find('<') != std::string_view::npos) return true;   // a local function
  return part.ends_with(")");                                  // a function, `jit(relu)`
}

void append_scopes(std::string_view text, std::string& out);

void append_scope(std::string_view part, std::string_view before, std::string_view after,
                  std::string& out) {
  for (std::string_view transformation : kTransformations)
    if (part.starts_with(transformation) && part.ends_with(")")) {
      part.remove_prefix(transformation.size());
      part.remove_suffix(1);
      return append_scopes(part, out);
    }
  if (part.empty() || is_construct(part, before, after)) return;
  append(out, out.empty() ? "" : "/", part);
}

void append_scopes(const std::vector<std::string_view>& parts, std::string& out) {
  for (std::size_t i = 0; i < parts.size(); ++i)
    append_scope(parts[i], i > 0 ? parts[i - 1] : "", i + 1 < parts.size() ? parts[i + 1] : "",
                 out);
}

void append_scopes(std::string_view text, std::string& out) { append_scopes(split(text), out); }

// Names in one line; a line is read, not searched.
constexpr std::size_t kMostNamesInLine = 3;

std::string listed_names(const std::vector<std::string>& names) {
  std::size_t shown = std::min(names.size(), kMostNamesInLine);
  std::string text;
  for (std::size_t i = 0; i < shown; ++i) append(text, i > 0 ? ", " : "", names[i]);
  if (shown < names.size()) text += ", ...";
  return text;
}

std::string_view noun(PurposeKind kind, bool many) {
  switch (kind) {
    case PurposeKind::kWeight: return many ? "weights" : "weight";
    case PurposeKind::kArgument: return many ? "arguments" : "argument";
    case PurposeKind::kGradient: return many ? "the gradients of" : "the gradient of";
    case PurposeKind::kUpdate: return many ? "the updates of" : "the update of";
    case PurposeKind::kResult: return many ? "results" : "result";
    default: return "";
  }
}

std::string axes_text(const Collective& one) {
  if (!one.axes) {
    if (one.group_size > 0)
      return cat(" in groups of ", one.group_size, " that do not match mesh axes");
    return "";
  }
  const AxisList& axes = *one.axes;
  if (axes.empty()) return " within each device";
  return cat(axes.size() == 1 ? " on axis " : " on axes ", join(axes, ", "));
}

std::string form_text(const Collective& one) {
  std::string text;
  if (one.form != CollectiveForm::kPlain) text = cat(", ", meshard::to_string(one.form));
  if (one.continues) text += ", continued from an earlier one";
  if (one.across_processes) text += ", across processes";
  return text;
}

// What it moves, or else the layers.
std::string subject(const Collective& one, const std::vector<std::string>& names,
                    const std::vector<std::string>& layers) {
  std::string text = purpose_text(one.purpose.kind, names);
  // The names of weights tell the layer.
  if (text.empty()) text = layers_text(layers);
  return text;
}

// The text after the name.
std::string details(const Collective& one, std::int64_t bytes,
                    const std::vector<std::string>& names, const std::vector<std::string>& layers) {
  std::string text = cat(subject(one, names, layers), axes_text(one));
  if (!one.shifts.empty()) append(text, ", moving ", join(one.shifts, " and "));
  append(text, ", ", byte_text(bytes),
         repetition_text(one.executions, one.executions_known, one.conditional), form_text(one));
  if (one.purpose.phase != ProgramPhase::kUnknown) append(text, ", ", to_string(one.purpose.phase));
  append(text, ", from ", one.origin);
  if (std::string_view cause = to_string(one.cause); !cause.empty()) append(text, ", ", cause);
  return text;
}

std::string_view plural_ending(CollectiveKind kind) {
  return kind == CollectiveKind::kSend || kind == CollectiveKind::kReceive ? "" : "s";
}

bool alike(const Collective& a, const Collective& b) {
  return a.kind == b.kind && a.axes == b.axes && a.group_size == b.group_size &&
         a.shifts == b.shifts && a.executions == b.executions &&
         a.executions_known == b.executions_known && a.loop_depth == b.loop_depth &&
         a.conditional == b.conditional && a.form == b.form && a.continues == b.continues &&
         a.across_processes == b.across_processes && a.cause == b.cause &&
         a.purpose.kind == b.purpose.kind && a.purpose.phase == b.purpose.phase &&
         a.origin.certainty == b.origin.certainty &&
         std::ranges::equal(a.origin.places, b.origin.places,
                            [](const OriginPlace& x, const OriginPlace& y) {
                              return x.to_string() == y.to_string();  // same line, any op
                            });
}

}  // namespace

std::string_view to_string(ProgramPhase phase) {
  return phase == ProgramPhase::kUnknown ? "" : enum_name(phase);
}

ProgramPhase phase_of_op(std::string_view op_name) {
  if (op_name.find("transpose(") != std::string_view::npos) return ProgramPhase::kBackward;
  if (op_name.find("rematted_computation") != std::string_view::npos)
    return ProgramPhase::kBackward;
  if (op_name.find("jvp(") != std::string_view::npos) return ProgramPhase::kForward;
  if (op_name.find("optimizer()/") != std::string_view::npos) return ProgramPhase::kOptimizer;
  return ProgramPhase::kUnknown;
}

std::string_view without_phase(std::string_view op_name) {
  for (std::string_view phase : {"jvp()/", "transpose(jvp())/", "optimizer()/"})
    if (op_name.starts_with(phase)) return op_name.substr(phase.size());
  return op_name;
}

std::string op_scope(std::string_view op_name) {
  std::vector<std::string_view> parts = split(op_name);
  if (!parts.empty()) parts.pop_back();  // the primitive
  std::string scope;
  append_scopes(parts, scope);
  return scope;
}

std::string common_scope(std::string_view a, std::string_view b) {
  if (a == b) return std::string(a);
  std::size_t end = 0;  // of the common components
  for (std::size_t i = 0; i <= std::min(a.size(), b.size()); ++i) {
    bool ends = (i == a.size() || a[i] == '/') && (i == b.size() || b[i] == '/');
    if (ends) end = i;
    if (i == a.size() || i == b.size() || a[i] != b[i]) break;
  }
  return std::string(a.substr(0, end));
}

std::string op_in_layer(std::string_view op_name) {
  std::vector<std::string_view> parts = split(op_name);
  if (parts.size() < 2) return "";
  std::string text = op_scope(op_name);
  std::string_view einsum = parts[parts.size() - 2];
  if (einsum.find("->") != std::string_view::npos && !einsum.ends_with(")"))
    append(text, "/", einsum);
  return cat(text, "/", parts.back());
}

std::vector<std::string> tree_keys(std::string_view name) {
  std::vector<std::string> keys;
  std::size_t at = name.find_first_of("[.");
  while (at < name.size()) {
    bool bracket = name[at] == '[';
    std::size_t end = bracket ? name.find(']', at) : name.find_first_of("[.", at + 1);
    std::string key;
    for (char c : name.substr(at + 1, std::min(end, name.size()) - at - 1))
      if (c != '\'' && c != '"' && c != '\\') key.push_back(c);
    if (!key.empty()) keys.push_back(std::move(key));
    if (end == std::string_view::npos) break;
    at = bracket ? name.find_first_of("[.", end) : end;
  }
  return keys;
}

std::string scope_of_parameter(std::string_view name) {
  std::vector<std::string> keys = tree_keys(name);
  if (!keys.empty()) keys.pop_back();
  return join(keys, "/");
}

std::string purpose_text(PurposeKind kind, const std::vector<std::string>& names) {
  std::string_view what = noun(kind, names.size() > 1);
  if (names.empty() || what.empty()) return "";
  if (names.size() == 1)  // an argument without a name is called `argument 3`
    return names[0].starts_with(cat(what, " ")) ? cat(" of ", names[0])
                                                : cat(" of ", what, " ", names[0]);
  return cat(" of ", what, " (", listed_names(names), ")");
}

std::string layers_text(const std::vector<std::string>& layers) {
  if (layers.empty() || layers == std::vector<std::string>{"loop"}) return "";  // `x 12` says so
  if (layers.size() == 1) return cat(" in ", layers[0]);
  return cat(" in ", layers.size(), " layers (", listed_names(layers), ")");
}

std::string_view to_string(CollectiveCause cause) {
  return cause == CollectiveCause::kUnknown ? "" : enum_name(cause);
}

std::string AxisShift::to_string() const {
  std::string names = axes.size() == 1 ? axes[0].to_string() : meshard::to_string(axes);
  return cat(names, " by ", by > 0 ? "+" : "", by, wraps ? "" : " without wrapping");
}

std::string CollectiveOrigin::to_string() const {
  if (certainty == OriginCertainty::kUnknown || places.empty()) return "an unknown place";
  std::vector<std::string> texts;
  for (const OriginPlace& place : places)
    add_once(texts, cat(place, place.via.empty() ? "" : ", via ", place.via));
  return cat(join(texts, ", "), " (", meshard::to_string(certainty), ")");
}

std::string repetition_text(std::int64_t executions, bool executions_known, bool conditional) {
  std::string text;
  if (executions != 1) append(text, " x ", executions);
  if (!executions_known) text += " per iteration of a loop of unknown length";
  if (conditional) text += " if its branch is taken";
  return text;
}

std::string Collective::to_string() const {
  std::vector<std::string> layers;
  if (!purpose.layer.empty()) layers.push_back(purpose.layer);
  return cat(meshard::to_string(kind), details(*this, bytes(), purpose.names, layers));
}

std::string CollectiveGroup::to_string() const {
  return cat(count, " ", meshard::to_string(example.kind),
             count == 1 ? "" : plural_ending(example.kind), details(example, bytes, names, layers));
}

std::vector<CollectiveGroup> group_collectives(const std::vector<Collective>& collectives) {
  std::vector<CollectiveGroup> groups;
  for (const Collective& one : collectives) {
    auto found = std::ranges::find_if(
        groups, [&](const CollectiveGroup& group) { return alike(group.example, one); });
    if (found == groups.end()) {
      groups.push_back({.example = one});
      found = groups.end() - 1;
    }
    ++found->count;
    for (const std::string& name : one.purpose.names) add_once(found->names, name);
    if (!one.purpose.layer.empty()) add_once(found->layers, one.purpose.layer);
    found->bytes_in = saturating_add(found->bytes_in, one.bytes_in);
    found->bytes_out = saturating_add(found->bytes_out, one.bytes_out);
    found->bytes = saturating_add(found->bytes, one.bytes());
    found->total_bytes = saturating_add(found->total_bytes, one.total_bytes());
  }
  return groups;
}

}  // namespace meshard

#include "meshard/explain/collectives/op_scope.h"

#include <algorithm>
#include <array>

#include "meshard/base/cat.h"
#include "meshard/base/field_notes.h"

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
  append(out, cat(out.empty() ? "" : "/", part));
}

void append_scopes(const std::vector<std::string_view>& parts, std::string& out) {
  for (std::size_t i = 0; i < parts.size(); ++i)
    append_scope(parts[i], i > 0 ? parts[i - 1] : "", i + 1 < parts.size() ? parts[i + 1] : "",
                 out);
}

void append_scopes(std::string_view text, std::string& out) { append_scopes(split(text), out); }

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
    append(text, cat("/", einsum));
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

}  // namespace meshard

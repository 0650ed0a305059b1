// Tested in meshard/plan/explicit_shardings_test.cc.
#include "meshard/plan/internal/constraint_text.h"

#include <algorithm>
#include <cctype>

#include "meshard/base/cat.h"
#include "meshard/base/whole_file.h"
#include "meshard/sharding/dtensor_placements.h"

namespace meshard::internal {
namespace {

// `P("data", None, ("x", "y"))`, or `P("data", none, {"x", "y"})` in C++; empty for parts of axes,
// which JAX and PyTorch cannot write.
std::string spec_text(const PartitionSpec& spec, ConstraintWords words) {
  if (words == ConstraintWords::kMeshard) return spec.to_string();
  std::vector<std::string> dimensions;
  for (const DimensionSpec& dimension : spec.dimensions()) {
    std::vector<std::string> axes;
    for (const AxisRef& axis : dimension.axes()) {
      if (!axis.is_whole()) return {};
      axes.push_back(cat("\"", axis.name, "\""));
    }
    dimensions.push_back(axes.empty()       ? "None"
                         : axes.size() == 1 ? axes[0]
                                            : cat("(", join(axes, ", "), ")"));
  }
  return cat("P(", join(dimensions, ", "), ")");
}

bool is_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

// `h` of `h = tanh(x @ w)`, `Tensor h = ...` and `auto h = ...`; `...` if the line does not give
// its value one name.
std::string name_in(std::string_view line) {
  std::size_t equals = line.find('=');
  if (equals == std::string_view::npos || equals == 0 || equals + 1 >= line.size() ||
      line[equals + 1] == '=')
    return "...";
  std::string_view left = line.substr(0, equals);
  while (!left.empty() && left.back() == ' ') left.remove_suffix(1);
  std::size_t begin = left.size();
  while (begin > 0 && is_name(left[begin - 1])) --begin;
  std::string_view name = left.substr(begin), before = left.substr(0, begin);
  bool declares = std::ranges::all_of(before, [](char c) { return is_name(c) || c == ' '; });
  if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0])) || !declares) return "...";
  return std::string(name);
}

std::string line_of_file(const std::string& path, std::int64_t number) {
  if (path.empty() || number < 1) return {};
  Result<std::string> text = read_whole_file(path);
  if (!text.ok()) return {};
  std::string_view rest = *text;
  for (std::int64_t line = 1; line < number; ++line) {
    std::size_t end = rest.find('\n');
    if (end == std::string_view::npos) return {};
    rest.remove_prefix(end + 1);
  }
  rest = rest.substr(0, rest.find('\n'));
  while (!rest.empty() && std::isspace(static_cast<unsigned char>(rest.front())))
    rest.remove_prefix(1);
  return std::string(rest);
}

bool takes_out_sharding(const ChosenSharding& shown) {
  for (std::string_view op : {"dot_general", "matmul", "einsum"})
    if (shown.op == op) return true;
  return false;
}

void constrain_value(const Sharding& sharding, ConstraintWords words, const std::string& value,
                     ChosenSharding& shown) {
  const std::string spec = spec_text(shown.spec, words);
  if (spec.empty()) return;
  std::string assigned = value == "..." ? "" : cat(value, " = ");
  switch (words) {
    case ConstraintWords::kJax:
      shown.constraint = cat(assigned, "jax.lax.with_sharding_constraint(", value, ", ", spec, ")");
      shown.other_constraint = takes_out_sharding(shown)
                                   ? cat("out_sharding=", spec)
                                   : cat(assigned, "jax.sharding.reshard(", value, ", ", spec, ")");
      return;
    case ConstraintWords::kPyTorch: {
      shown.constraint =
          cat(assigned, "meshard.torch.mark_sharding(", value, ", mesh, ", spec, ")");
      if (Result<Placements> placements = Placements::of(sharding); placements.ok())
        shown.other_constraint =
            cat(assigned, value, ".redistribute(mesh, ", placements->to_string(), ")");
      return;
    }
    case ConstraintWords::kMeshard:
      shown.constraint = cat(assigned, "mark_sharding(", value, ", mesh, ", spec, ")");
      if (takes_out_sharding(shown))
        shown.other_constraint = cat("Sharding(mesh, ", spec, ") as the last argument");
      return;
  }
}

}  // namespace

void write_constraint(const Sharding& sharding, ConstraintWords words, bool is_alone,
                      ChosenSharding& shown) {
  shown.source = line_of_file(shown.file, shown.line);
  if (shown.part == ShardedPart::kValue) {
    bool has_name = is_alone && shown.phase != ProgramPhase::kBackward;
    return constrain_value(sharding, words, has_name ? name_in(shown.source) : "...", shown);
  }
  std::string spec = spec_text(shown.spec, words);
  if (spec.empty()) return;
  if (words == ConstraintWords::kJax)
    shown.constraint = cat(shown.part == ShardedPart::kArgument ? "in_shardings" : "out_shardings",
                           " of ", shown.op, ": ", spec);
  else
    shown.constraint = cat("mark_sharding(", shown.op, ", mesh, ", spec, ")");
}

}  // namespace meshard::internal

namespace meshard {

std::string ChosenSharding::place() const {
  if (file.empty()) return {};
  std::size_t slash = file.rfind('/');
  std::string name = slash == std::string::npos ? file : file.substr(slash + 1);
  return line > 0 ? cat(name, ":", line) : name;
}

std::string ChosenSharding::to_string() const {
  std::string made = place();
  std::string out = cat(made.empty() ? "" : cat(made, "  "), op, " ", type, " ", spec);
  if (count > 1) append(out, " x ", count);
  if (phase == ProgramPhase::kBackward) append(out, ", of the backward pass");
  if (!source.empty()) append(out, "\n      ", source);
  if (constraint.empty())
    append(out, "\n    parts of axes can be written only in Shardy's words");
  else
    append(out, "\n    + ", constraint);
  if (!other_constraint.empty()) append(out, "\n      or: ", other_constraint);
  if (!difference.empty()) append(out, "\n    with it: ", difference);
  return out;
}

}  // namespace meshard

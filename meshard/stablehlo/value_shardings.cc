#include "meshard/stablehlo/value_shardings.h"

#include <cctype>
#include <charconv>
#include <unordered_map>
#include <vector>

#include "meshard/base/cat.h"
#include "meshard/stablehlo/internal/text_edits.h"

namespace meshard::stablehlo {
namespace {

constexpr std::string_view kOpTag = "meshard.op.";

// Where an op ends, with its location.
std::size_t end_of_op(const Module& module, const ModuleOp& op) {
  std::string_view text = op.text;
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())))
    text.remove_suffix(1);
  return module.range(text).end;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

class ConstraintWriter {
 public:
  ConstraintWriter(const Module& module, std::span<const ValueSharding> values)
      : module_(module), edits_(module.text()) {
    for (const ValueSharding& each : values) sharding_of_[each.variable] = each.sharding;
    while (module.text().find(prefix_) != std::string_view::npos) prefix_ += "_";
  }

  std::string run() {
    visit(module_.ops(), module_.text().size());
    return edits_.apply();
  }

 private:
  void visit(const std::vector<ModuleOp>& ops, std::size_t end) {
    for (const ModuleOp& op : ops) {
      constrain(op, end);
      for (const ModuleRegion& region : op.regions)
        visit(region.ops, module_.range(region.text).end);
    }
  }

  // @param end of the region that the op is in
  void constrain(const ModuleOp& op, std::size_t end) {
    std::string made;
    for (std::size_t r = 0; r < op.results.size(); ++r) {
      auto found = sharding_of_.find(op.results[r]);
      if (found == sharding_of_.end()) continue;
      const ModuleVariable& variable = module_.variable(op.results[r]);
      std::string own(variable.name), other = cat(prefix_, variable.name.substr(1));
      if (op.results.size() == 1) {
        // The op's result gets the other name, so that uses have that of the constraint.
        std::size_t begin = module_.range(op.text).begin;
        edits_.replace({begin, begin + own.size()}, other);
        std::swap(own, other);
      } else {
        append(own, "#", r);
        append(other, "_", r);
        rename_uses(own, other, end_of_op(module_, op), end);
      }
      append(made, "\n", indentation(op), other, " = sdy.sharding_constraint ", own, " ",
             found->second, " : ", variable.type, op.location.empty() ? "" : " ", op.location);
    }
    if (!made.empty()) edits_.replace({end_of_op(module_, op), end_of_op(module_, op)}, made);
  }

  // Of a result among several, whose name is part of no other one in its scope.
  void rename_uses(std::string_view name, const std::string& to, std::size_t begin,
                   std::size_t end) {
    std::string_view text = module_.text();
    for (std::size_t at = text.find(name, begin); at < end; at = text.find(name, at + 1)) {
      std::size_t after = at + name.size();
      if (after >= text.size() || !is_digit(text[after])) edits_.replace({at, after}, to);
    }
  }

  std::string_view indentation(const ModuleOp& op) const {
    std::string_view text = module_.text();
    std::size_t begin = module_.range(op.text).begin, line = text.rfind('\n', begin);
    line = line == std::string_view::npos ? 0 : line + 1;
    std::string_view before = text.substr(line, begin - line);
    return before.find_first_not_of(" \t") == std::string_view::npos ? before : std::string_view();
  }

  const Module& module_;
  TextEdits edits_;
  std::unordered_map<int, std::string_view> sharding_of_;
  std::string prefix_ = "%auto_";
};

}  // namespace

std::string with_numbered_ops(const Module& module) {
  TextEdits edits(module.text());
  std::size_t number = 0;
  for_each_op(module.ops(), [&](const ModuleOp& op) {
    std::string location = cat("loc(\"", kOpTag, number++, "\")");
    if (op.results.empty()) return;
    std::size_t end = end_of_op(module, op);
    if (op.location.empty())
      edits.replace({end, end}, " " + location);
    else
      edits.replace(module.range(op.location), std::move(location));
  });
  return edits.apply();
}

std::optional<std::size_t> op_number(std::string_view instruction_name) {
  std::size_t at = instruction_name.rfind(kOpTag);
  if (at == std::string_view::npos) return std::nullopt;
  std::string_view digits = instruction_name.substr(at + kOpTag.size());
  std::size_t number = 0;
  auto read = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (read.ec != std::errc()) return std::nullopt;
  return number;
}

std::string with_constraints(const Module& module, std::span<const ValueSharding> values) {
  return ConstraintWriter(module, values).run();
}

}  // namespace meshard::stablehlo

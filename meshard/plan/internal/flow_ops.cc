// Tested in meshard/plan/module_flow_test.cc.
#include "meshard/plan/internal/flow_ops.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>

#include "meshard/base/cat.h"
#include "meshard/plan/internal/bracketed_text.h"

namespace meshard::internal {
namespace {

bool is_name_character(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '$' || c == '.' ||
         c == '-' || c == '#';
}

std::string_view trimmed(std::string_view line) {
  std::size_t first = line.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return line.substr(first, line.find_last_not_of(" \t\r") + 1 - first);
}

// The line without a trailing ` loc(...)`.
std::string_view without_location(std::string_view line) {
  std::size_t at = line.rfind(" loc(");
  return at == std::string_view::npos ? line : line.substr(0, at);
}

// The integers of the first list after `word`: `dims = [1, 0]`, `array<i64: 1, 0>`.
std::vector<std::int64_t> numbers_after(std::string_view line, std::string_view word,
                                        std::size_t from = 0) {
  std::vector<std::int64_t> out;
  std::size_t at = line.find(word, from);
  if (at == std::string_view::npos) return out;
  at += word.size();
  std::size_t end = std::min(line.find_first_of("]>", at), line.size());
  std::size_t colon = line.find("i64:", at);
  if (colon < end) at = colon + 4;
  while (at < end) {
    std::int64_t number = 0;
    auto [stop, error] = std::from_chars(line.data() + at, line.data() + end, number);
    if (error == std::errc()) out.push_back(number);
    at = error == std::errc() ? static_cast<std::size_t>(stop - line.data()) : at + 1;
  }
  return out;
}

// The result types: those after the arrow, else the whole list after the last ` : `.
std::vector<std::string_view> result_types(std::string_view line) {
  std::size_t arrow = line.rfind("-> ");
  std::size_t begin = 0;
  if (arrow != std::string_view::npos) {
    begin = arrow + 3;
    if (begin < line.size() && line[begin] == '(') {
      ++begin;
      if (line.ends_with(")")) line.remove_suffix(1);
    }
  } else {
    std::size_t colon = line.rfind(" : ");
    if (colon == std::string_view::npos) return {};
    begin = colon + 3;
  }
  std::vector<std::string_view> out;
  for (const auto& [from, to] : split_list(line, begin, line.size()))
    out.push_back(line.substr(from, to - from));
  return out;
}

class FlowReader {
 public:
  explicit FlowReader(std::string_view text) : text_(text) {}

  std::map<std::string, FlowFunction> read() {
    while (next_line()) {
      std::size_t function = line_.find("func.func");
      if (function == 0) read_function();
    }
    return std::move(functions_);
  }

 private:
  using Names = std::map<std::string, int, std::less<>>;

  bool next_line() {
    if (at_ >= text_.size()) return false;
    std::size_t end = std::min(text_.find('\n', at_), text_.size());
    line_ = trimmed(text_.substr(at_, end - at_));
    at_ = end + 1;
    return true;
  }

  int new_value(std::optional<TensorType> type) {
    function_.types.push_back(std::move(type));
    return static_cast<int>(function_.types.size()) - 1;
  }

  // Reads a function, whose signature may span several lines.
  void read_function() {
    function_ = {};
    auto begin = static_cast<std::size_t>(line_.data() - text_.data());
    std::size_t name = text_.find('@', begin), bracket = text_.find('(', name);
    if (name == std::string_view::npos || bracket == std::string_view::npos) return;
    std::string called(text_.substr(name + 1, bracket - name - 1));
    std::size_t end = matching_end(text_, bracket);
    Names names;
    for (const auto& [from, to] : split_list(text_, bracket + 1, end - 1)) {
      std::size_t colon = text_.find(": ", from);
      if (colon >= to) continue;
      std::size_t stop = type_end(text_, colon + 2, to);
      int value = new_value(tensor_type(text_.substr(colon + 2, stop - colon - 2)));
      names.emplace(text_.substr(from, colon - from), value);
      function_.parameters.push_back(value);
    }
    std::size_t arrow = skip_blanks(text_, end);
    if (text_.substr(arrow, 2) == "->") {
      std::size_t list = skip_blanks(text_, arrow + 2);
      bool several = list < text_.size() && text_[list] == '(';
      end = several ? matching_end(text_, list) : type_end(text_, list, text_.size());
    }
    at_ = std::min(text_.find('\n', end), text_.size() - 1) + 1;
    read_ops(names, function_.ops);
    functions_[called] = std::move(function_);
  }

  // Reads ops up to the brace that closes the region.
  void read_ops(Names names, std::vector<FlowOp>& ops) {
    while (next_line()) {
      if (line_.starts_with("}")) return;
      if (line_.empty() || line_.starts_with("//")) continue;
      read_op(names, ops);
    }
  }

  void read_op(Names& names, std::vector<FlowOp>& ops) {
    std::string_view line = without_location(line_);
    std::size_t equals = line.starts_with("%") ? line.find(" = ") : std::string_view::npos;
    std::string_view results, rest = line;
    if (equals != std::string_view::npos) {
      results = line.substr(0, equals);
      rest = line.substr(equals + 3);
    }
    FlowOp op;
    if (rest.starts_with("stablehlo.while")) {
      read_loop(rest, names, op);
      finish(results, result_types(rest), names, op);
      ops.push_back(std::move(op));
      return;
    }
    std::string_view head = rest.substr(0, rest.find(" : "));
    read_operands(head, names, op);
    describe(rest, op);
    // An op with a region that is not followed: the region's last line has the types.
    if (rest.ends_with("({")) rest = skip_region();
    finish(results, result_types(rest), names, op);
    ops.push_back(std::move(op));
  }

  std::string_view skip_region() {
    int depth = 1;
    while (depth > 0 && next_line()) {
      std::string_view line = without_location(line_);
      if (line_.starts_with("})")) --depth;
      if (line.ends_with("({")) ++depth;
    }
    return without_location(line_);
  }

  static void read_operands(std::string_view head, const Names& names, FlowOp& op) {
    for (std::size_t at = head.find('%'); at != std::string_view::npos; at = head.find('%', at)) {
      std::size_t end = at + 1;
      while (end < head.size() && is_name_character(head[end])) ++end;
      auto found = names.find(head.substr(at, end - at));
      op.operands.push_back(found == names.end() ? -1 : found->second);
      at = end;
    }
  }

  static void describe(std::string_view rest, FlowOp& op) {
    std::string_view name = rest.substr(rest.starts_with("\"") ? 1 : 0);
    auto is = [&](std::string_view word) {
      return name.starts_with(word) &&
             (name.size() == word.size() ||
              !(std::isalnum(static_cast<unsigned char>(name[word.size()])) ||
                name[word.size()] == '_'));
    };
    if (is("stablehlo.dot_general")) {
      op.kind = FlowKind::kProduct;
      describe_product(rest, op);
    } else if (is("stablehlo.transpose")) {
      op.kind = FlowKind::kTranspose;
      op.dimensions = {numbers_after(rest, rest.find("permutation = ") == std::string_view::npos
                                               ? "dims = "
                                               : "permutation = ")};
    } else if (is("stablehlo.broadcast_in_dim")) {
      op.kind = FlowKind::kBroadcast;
      op.dimensions = {
          numbers_after(rest, rest.find("broadcast_dimensions = ") == std::string_view::npos
                                  ? "dims = "
                                  : "broadcast_dimensions = ")};
    } else if (is("stablehlo.reduce")) {
      op.kind = FlowKind::kReduce;
      op.dimensions = {numbers_after(rest, "dimensions = ")};
    } else if (is("stablehlo.reshape")) {
      op.kind = FlowKind::kReshape;
    } else if (is("sdy.sharding_constraint")) {
      op.kind = FlowKind::kConstraint;
      std::size_t begin = rest.find('<'), end = rest.find("> : ");
      if (begin < end && end != std::string_view::npos)
        op.text = rest.substr(begin, end + 1 - begin);
    } else if (is("call") || is("func.call")) {
      op.kind = FlowKind::kCall;
      std::size_t at = rest.find('@'), end = rest.find('(', at);
      if (at != std::string_view::npos && end != std::string_view::npos)
        op.text = rest.substr(at + 1, end - at - 1);
    } else if (is("return") || is("stablehlo.return") || is("func.return")) {
      op.kind = FlowKind::kReturn;
    }
  }

  static void describe_product(std::string_view rest, FlowOp& op) {
    for (const auto& [both, left, right] :
         {std::array<std::string_view, 3>{"contracting_dims = ", "lhs_contracting_dimensions = ",
                                          "rhs_contracting_dimensions = "},
          std::array<std::string_view, 3>{
              "batching_dims = ", "lhs_batching_dimensions = ", "rhs_batching_dimensions = "}}) {
      std::size_t at = rest.find(both);
      if (at != std::string_view::npos) {
        op.dimensions.push_back(numbers_after(rest, both));
        op.dimensions.push_back(numbers_after(rest, "] x ", at));
      } else {
        op.dimensions.push_back(numbers_after(rest, left));
        op.dimensions.push_back(numbers_after(rest, right));
      }
    }
  }

  // Reads `stablehlo.while(%iterArg = %0, ...) : types`, with its condition and body.
  void read_loop(std::string_view rest, const Names& names, FlowOp& op) {
    op.kind = FlowKind::kLoop;
    std::size_t bracket = rest.find('(');
    if (bracket == std::string_view::npos) return;
    Names inside = names;
    for (const auto& [from, to] : split_list(rest, bracket + 1, matching_end(rest, bracket) - 1)) {
      std::string_view item = rest.substr(from, to - from);
      std::size_t equals = item.find(" = ");
      if (equals == std::string_view::npos) continue;
      auto found = names.find(item.substr(equals + 3));
      int operand = found == names.end() ? -1 : found->second;
      std::optional<TensorType> type;
      if (operand >= 0) type = function_.types[static_cast<std::size_t>(operand)];
      int parameter = new_value(type);
      op.operands.push_back(operand);
      op.parameters.push_back(parameter);
      inside[std::string(item.substr(0, equals))] = parameter;
    }
    while (next_line() && !line_.starts_with("} do {")) {
      std::vector<std::int64_t> bound = numbers_after(line_, "stablehlo.constant dense<");
      if (bound.size() == 1 && bound[0] > 0) op.trips = bound[0];
    }
    read_ops(std::move(inside), op.body);
  }

  void finish(std::string_view results, const std::vector<std::string_view>& types, Names& names,
              FlowOp& op) {
    if (results.empty()) return;
    std::size_t colon = results.find(':');
    std::string name(results.substr(0, colon));
    std::size_t count = 1;
    if (colon != std::string_view::npos) {
      std::string_view digits = results.substr(colon + 1);
      std::from_chars(digits.data(), digits.data() + digits.size(), count);
      count = std::min<std::size_t>(count, 100000);
    }
    // If more types than results are listed (`pred, T`), the results have the last ones.
    for (std::size_t i = 0; i < count; ++i) {
      std::size_t place = types.size() >= count ? types.size() - count + i : types.size();
      int value = new_value(place < types.size() ? tensor_type(types[place]) : std::nullopt);
      op.results.push_back(value);
      if (i == 0) names[name] = value;
      if (count > 1) names[cat(name, "#", i)] = value;
    }
  }

  std::string_view text_, line_;
  std::size_t at_ = 0;
  FlowFunction function_;
  std::map<std::string, FlowFunction> functions_;
};

}  // namespace

std::optional<TensorType> tensor_type(std::string_view text) {
  if (!text.starts_with("tensor<") || !text.ends_with(">")) return std::nullopt;
  text = text.substr(7, text.size() - 8);
  Dimensions sizes;
  double product = 1;
  while (true) {
    std::int64_t size = 0;
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), size);
    if (error != std::errc() || end == text.data() + text.size() || *end != 'x' || size < 0) break;
    sizes.push_back(size);
    product *= static_cast<double>(size);
    text.remove_prefix(static_cast<std::size_t>(end - text.data()) + 1);
  }
  Result<DType> dtype = parse_stablehlo_dtype(text);
  if (!dtype.ok() || product > 1e17) return std::nullopt;
  return TensorType{*dtype, Shape(std::move(sizes))};
}

std::map<std::string, FlowFunction> read_flow(std::string_view text) {
  std::map<std::string, FlowFunction> functions = FlowReader(text).read();
  if (!functions.count("main"))
    throw Error(ErrorCode::kDataLoss, "[plan] the module has no function `func.func @main(`");
  return functions;
}

}  // namespace meshard::internal

#include "meshard/graph/graph_text.h"

#include <algorithm>
#include <charconv>
#include <map>

#include "meshard/graph/annotate.h"
#include "meshard/graph/annotation.h"
#include "meshard/graph/leaf.h"
#include "meshard/graph/op_def.h"
#include "meshard/graph/record.h"

namespace meshard {
namespace {

class Printer {
 public:
  Printer(const Graph& graph, PrintOptions options) : graph_(graph), options_(options) {}

  std::string print() {
    out_ = "graph";
    leaves(graph_.parameters());
    if (!graph_.captured().empty()) {
      out_ += " captured";
      leaves(graph_.captured());
    }
    out_ += " {\n";
    for (const Node* node : graph_.nodes()) line(*node);
    out_ += "  return";
    list(graph_.results());
    out_ += "\n}\n";
    return std::move(out_);
  }

 private:
  void name(const Value& value) {
    std::uint32_t number = graph_.number(value.node());
    bool is_leaf = number < graph_.num_leaves();
    append(out_, cat("%", is_leaf ? number + value.index() : number));
    if (value->num_outputs() > 1 && !is_leaf) append(out_, cat("#", value.index()));
  }
  void list(std::span<const Value> values) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      out_ += i ? ", " : " ";
      name(values[i]);
    }
  }
  void leaves(std::span<const Value> values) {
    out_ += "(";
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (i) out_ += ", ";
      name(values[i]);
      append(out_, cat(": ", values[i].type()));
      if (const Sharding* sharding = leaf_sharding(values[i])) append(out_, cat(" @ ", *sharding));
      if (const ManualAxes* manual = manual_axes(values[i]))
        append(out_, cat(" ", manual->printed(), " of ", manual->mesh));
    }
    out_ += ")";
  }
  void line(const Node& node) {
    append(out_, cat("  %", graph_.number(&node), " = ", node.op().name, "("));
    for (std::size_t i = 0; i < node.operands().size(); ++i) {
      if (i) out_ += ", ";
      name(node.operands()[i]);
    }
    out_ += ")";
    if (node.attributes()) {
      out_ += " {";
      node.attributes()->print(out_);
      out_ += "}";
    }
    out_ += " : ";
    for (std::uint32_t i = 0; i < node.num_outputs(); ++i) {
      if (i) out_ += ", ";
      append(out_, node.type(i));
      append_annotation(out_, node, i);
    }
    if (options_.source_lines && node.where().known()) append(out_, cat("  // ", node.where()));
    out_ += "\n";
  }

  const Graph& graph_;
  PrintOptions options_;
  std::string out_;
};

}  // namespace

std::string to_string(const Graph& graph, PrintOptions options) {
  return Printer(graph, options).print();
}

namespace {

using attribute_text::split_outside_brackets;

Error syntax(int line, std::string_view what) {
  return Error(ErrorCode::kInvalidArgument, cat("[graph] line ", line, ": ", what));
}

bool take(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

// Returns the text inside the bracket that `text` starts with, and advances `text` past it. Empty
// if the brackets are unbalanced.
std::optional<std::string_view> take_bracket(std::string_view& text, char open, char close) {
  if (text.empty() || text.front() != open) return std::nullopt;
  int depth = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '"' && (i == 0 || text[i - 1] != '\\')) quoted = !quoted;
    if (quoted) continue;
    if (text[i] == open) ++depth;
    if (text[i] == close && --depth == 0) {
      std::string_view inside = text.substr(1, i - 1);
      text.remove_prefix(i + 1);
      return inside;
    }
  }
  return std::nullopt;
}

class Parser {
 public:
  explicit Parser(FindOp find_op) : find_op_(find_op) {}

  Result<Graph> parse(std::string_view text) {
    bool returned = false;
    while (!text.empty()) {
      std::string_view line = take_line(text);
      if (std::size_t comment = line.find("  // "); comment != line.npos)
        line = line.substr(0, comment);
      if (line.empty()) continue;
      if (line_ == 1) {
        MESHARD_RETURN_IF_ERROR(header(line));
      } else if (take(line, "  return")) {
        for (std::string_view name : split_outside_brackets(line, ',')) {
          MESHARD_ASSIGN_OR_RETURN(Value value, operand(name));
          results_.push_back(value);
        }
        returned = true;
      } else if (line == "}") {
        break;
      } else {
        MESHARD_RETURN_IF_ERROR(node(line));
      }
    }
    if (!returned) return syntax(line_, "missing return");
    return Graph::build(parameters_, results_, scope_.trace());
  }

 private:
  // Takes the next line, and further lines while a brace is open: a node with bodies spans several.
  // The header is one line, although it opens the program's brace.
  std::string_view take_line(std::string_view& text) {
    int depth = 0;
    bool quoted = false;
    std::size_t end = 0;
    for (; end < text.size(); ++end) {
      char c = text[end];
      if (c == '\n' && (depth <= 0 || line_ == 0)) break;
      if (c == '"' && text[end - (end > 0)] != '\\') quoted = !quoted;
      if (quoted) continue;
      depth += c == '{' ? 1 : c == '}' ? -1 : 0;
    }
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(text.size(), end + 1));
    ++line_;
    return line;
  }

  Result<void> header(std::string_view line) {
    if (!take(line, "graph")) return syntax(line_, "expected 'graph('");
    MESHARD_RETURN_IF_ERROR(leaves(line));
    if (take(line, " captured")) MESHARD_RETURN_IF_ERROR(leaves(line));
    if (line != " {") return syntax(line_, "expected '{'");
    return {};
  }

  Result<void> leaves(std::string_view& line) {
    auto inside = take_bracket(line, '(', ')');
    if (!inside) return syntax(line_, "expected a list of parameters");
    for (std::string_view leaf : split_outside_brackets(*inside, ',')) {
      std::size_t colon = leaf.find(": ");
      if (colon == leaf.npos) return syntax(line_, "expected '%0: type'");
      std::string_view name = leaf.substr(0, colon);
      std::string_view type_text = leaf.substr(colon + 2);
      std::optional<ManualAxes> manual;
      MESHARD_RETURN_IF_ERROR(take_manual(type_text, manual));
      std::optional<Sharding> sharding;
      if (std::size_t at = type_text.find(" @ "); at != type_text.npos) {
        MESHARD_ASSIGN_OR_RETURN(sharding, Sharding::parse(type_text.substr(at + 3)));
        type_text = type_text.substr(0, at);
      }
      MESHARD_ASSIGN_OR_RETURN(TensorType type, TensorType::parse(type_text));
      Tensor parameter = make_parameter(std::move(type), std::move(sharding), {});
      if (manual) parameter.value().node()->annotate(annotations_of(std::move(*manual)));
      parameters_.push_back(parameter.value());
      values_[std::string(name)] = parameter.value();
    }
    return {};
  }

  // f32[4] manual{"x"}{"y"} varying{"x"} of mesh<x=2, y=4>
  Result<void> take_manual(std::string_view& text, std::optional<ManualAxes>& manual) {
    std::size_t at = text.find(" manual{"), varying = text.find(" varying{"),
                of = text.find(" of ");
    if (at == text.npos) return {};
    if (varying == text.npos || of == text.npos || varying < at || of < varying)
      return syntax(line_, "expected 'manual{...} varying{...} of mesh<...>'");
    MESHARD_ASSIGN_OR_RETURN(Mesh mesh, Mesh::parse(text.substr(of + 4)));
    AxisList some;
    MESHARD_RETURN_IF_ERROR(
        attribute_text::parse(text.substr(varying + 8, of - varying - 8), some));
    manual = ManualAxes{mesh, {}, AxisSet(mesh, some)};
    std::string_view regions = text.substr(at + 7, varying - at - 7);
    for (std::size_t count = 0; !regions.empty(); ++count) {
      std::size_t end = regions.find('}');
      if (end == regions.npos) return syntax(line_, "expected '}' in manual{...}");
      AxisList own;
      MESHARD_RETURN_IF_ERROR(attribute_text::parse(regions.substr(0, end + 1), own));
      if (count > 0) manual->around.push_back(manual->axes);
      manual->axes = manual->axes | AxisSet(mesh, own);
      regions.remove_prefix(end + 1);
    }
    text = text.substr(0, at);
    return {};
  }

  Result<Value> operand(std::string_view name) {
    std::uint32_t index = 0;
    if (std::size_t hash = name.find('#'); hash != name.npos) {
      std::string_view digits = name.substr(hash + 1);
      std::from_chars(digits.data(), digits.data() + digits.size(), index);
      name = name.substr(0, hash);
    }
    auto found = values_.find(std::string(name));
    if (found == values_.end()) return syntax(line_, cat("unknown value ", name));
    if (index >= found->second->num_outputs())
      return syntax(line_, cat("no such result of ", name));
    return Value(found->second.node(), index);
  }

  // %3 = name(%0, %1) {attributes} : type, type
  Result<void> node(std::string_view line) {
    std::size_t equals = line.find(" = ");
    std::size_t bracket = line.find('(');
    if (!line.starts_with("  %") || equals == line.npos || bracket == line.npos || bracket < equals)
      return syntax(line_, "expected '%n = op(...) : type'");
    std::string name(line.substr(2, equals - 2));
    std::string_view op_name = line.substr(equals + 3, bracket - equals - 3);
    const OpDef* op = find_op_(op_name);
    if (!op) return syntax(line_, cat("unknown op '", op_name, "'"));
    line.remove_prefix(bracket);
    auto operand_text = take_bracket(line, '(', ')');
    if (!operand_text) return syntax(line_, "unbalanced brackets");
    std::vector<Tensor> operands;
    for (std::string_view text : split_outside_brackets(*operand_text, ',')) {
      MESHARD_ASSIGN_OR_RETURN(Value value, operand(text));
      operands.emplace_back(value);
    }
    std::unique_ptr<const Attributes> attributes;
    if (take(line, " ") && !line.empty() && line.front() == '{') {
      auto text = take_bracket(line, '{', '}');
      if (!text || !op->parse_attributes) return syntax(line_, "unexpected attributes");
      MESHARD_ASSIGN_OR_RETURN(attributes, op->parse_attributes(*text));
      if (!take(line, " ")) return syntax(line_, "expected ' : type'");
    } else if (op->parse_attributes) {
      return syntax(line_, cat("op '", op_name, "' needs attributes"));
    }
    if (!take(line, ": ")) return syntax(line_, "expected ' : type'");
    return record_node(*op, std::move(attributes), operands, name, line);
  }

  Result<void> record_node(const OpDef& op, std::unique_ptr<const Attributes> attributes,
                           const std::vector<Tensor>& operands, const std::string& name,
                           std::string_view types) {
    std::vector<const Tensor*> pointers;
    for (const Tensor& tensor : operands) pointers.push_back(&tensor);
    Tensor result;
    try {
      result = record(op, std::move(attributes), pointers, {});
    } catch (const Error& error) {
      return error.with_note(cat("line ", line_, " of the program's text"));
    }
    std::string inferred;
    for (std::uint32_t i = 0; i < result.value()->num_outputs(); ++i) {
      append(inferred, cat(i ? ", " : "", result.value()->type(i)));
      append_annotation(inferred, *result.value().node(), i);
    }
    if (inferred != types)
      return syntax(line_,
                    cat("the text has type ", types, ", but the inferred type is ", inferred));
    values_[name] = result.value();
    return {};
  }

  FindOp find_op_;
  internal::TraceScope scope_;
  int line_ = 0;
  std::map<std::string, Value> values_;
  std::vector<Value> parameters_, results_;
};

}  // namespace

Result<Graph> parse_graph(std::string_view text, FindOp find_op) {
  return Parser(find_op).parse(text);
}

}  // namespace meshard

#include "meshard/graph/print.h"

#include "meshard/graph/annotation.h"
#include "meshard/graph/leaf.h"
#include "meshard/graph/op_def.h"

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

}  // namespace meshard

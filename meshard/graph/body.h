// Body: a program inside a node, such as the body of a loop or of a branch.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "meshard/graph/annotation.h"
#include "meshard/graph/body_function.h"
#include "meshard/graph/graph.h"
#include "meshard/graph/graph_text.h"
#include "meshard/graph/record.h"

namespace meshard {

/// A value: a closed program that an op with control flow runs. It has parameters and captures
/// nothing. Copies share the program; equal bodies compute the same from the same types and
/// shardings.
class Body {
 public:
  Body() = default;
  /// @pre the graph captures nothing
  explicit Body(Graph graph);

  const Graph& graph() const { return state_->graph; }
  std::size_t num_parameters() const { return graph().parameters().size(); }
  std::size_t num_results() const { return graph().results().size(); }
  const TensorType& parameter(std::size_t i) const { return graph().parameters()[i].type(); }
  const TensorType& result(std::size_t i) const { return graph().results()[i].type(); }
  /// Bytes that are equal exactly for equal bodies.
  const std::string& key() const { return state_->key; }

  friend bool operator==(const Body& a, const Body& b) {
    return a.state_ == b.state_ || a.key() == b.key();
  }

 private:
  struct State {
    Graph graph;
    std::string key;
  };
  std::shared_ptr<const State> state_ = std::make_shared<State>();
};

/// The bodies of a node, in the order of its attributes; empty for nearly all nodes.
std::span<const Body> bodies_of(const Node& node);

/// Parses `[graph(...) {...}, ...]`, the printed form of the attribute.
/// @error invalid argument: a syntax error, or an error of parse_graph.
Result<std::vector<Body>> parse_bodies(std::string_view text, FindOp find_op);

/// Describes a parameter of a body: its type, the known sharding of its argument, and the line that
/// made it.
struct BodyInput {
  TensorType type;
  std::optional<Sharding> sharding = std::nullopt;
  SourceLocation where = {};
};
/// The input for an argument that is passed unchanged.
BodyInput body_input(const Tensor& argument);

/// A traced body. Its parameters are the requested ones, then one for each captured value.
struct TracedBody {
  Body body;
  /// Outer values that the results need; the node that runs the body takes them as operands.
  std::vector<Tensor> captured;
  /// Inside manual axes: the axes that the results and captured values vary over.
  AxisSet varying;
};

/// Traces `function` into a body. Values recorded outside of it (values of enclosing traces, stored
/// arrays, lazy values) are captured; constants are recorded again inside. With `place`, all
/// parameters are local values of that place.
/// @error invalid argument: a result without a value; a value of a trace that has ended.
TracedBody trace_body(std::span<const BodyInput> inputs, const BodyFunction& function,
                      const std::optional<ManualAxes>& place, SourceLocation where);

/// True if this thread is recording `trace`. That is the current trace, the trace of an enclosing
/// body or jit, or 0, which stands for lazy values.
bool is_being_recorded(std::uint64_t trace);

/// While alive, this thread records a body; record() maps outer values to inner ones through it.
class BodyScope {
 public:
  explicit BodyScope(const std::optional<ManualAxes>& place);
  ~BodyScope() { internal::recorder() = before_; }
  BodyScope(const BodyScope&) = delete;
  BodyScope& operator=(const BodyScope&) = delete;

  std::uint64_t trace() const { return trace_; }
  /// The manual axes of the body's parameters; nullopt for full values.
  const std::optional<ManualAxes>& place() const { return place_; }
  Tensor parameter(const BodyInput& input);
  /// The inner value for `value`: itself if it was recorded here, else the parameter that
  /// represents it, or a copy if it is a constant.
  /// @error invalid argument: a value of a trace that has ended.
  Value inside(const Value& value);
  /// The outer value that `inner` represents; nullptr for any other node. `inner` is a result of
  /// inside() of this body or of an enclosing one.
  const Value* outside(const Node& inner) const;
  /// The outer values that became parameters, and those parameters.
  const std::vector<Tensor>& captured() const { return captured_; }
  const std::vector<Tensor>& captured_parameters() const { return captured_parameters_; }

 private:
  friend bool is_being_recorded(std::uint64_t trace);
  friend class OutsideBodiesScope;
  bool is_recording(std::uint64_t trace) const;
  Value made_inside(const Value& value);
  Tensor annotated_parameter(const BodyInput& input, const Value* outer);

  internal::Recorder before_;
  std::uint64_t trace_;
  std::optional<ManualAxes> place_;
  std::vector<Tensor> captured_, captured_parameters_;
  std::map<std::pair<const Node*, std::uint32_t>, Value> known_;
  // By inner node. Keeps the outer values alive, so that their addresses are not reused.
  std::unordered_map<const Node*, Value> outside_;
};

/// Records a program again in this thread's trace, with some of its values replaced. Only the nodes
/// that `wanted` needs are recorded; set() defines the replacements. Stored values, and values
/// outside of `trace`, are used unchanged.
/// @error internal: a parameter of `trace` is needed but has no replacement
class Replay {
 public:
  explicit Replay(std::uint64_t trace) : trace_(trace) {}
  void set(const Value& value, Tensor now) { known_[{value.node(), value.index()}] = now; }
  bool knows(const Value& value) const { return known_.contains({value.node(), value.index()}); }
  std::vector<Tensor> run(std::span<const Value> wanted);

 private:
  Tensor find(const Value& value) const;
  void again(const Node& node);

  std::uint64_t trace_;
  std::map<std::pair<const Node*, std::uint32_t>, Tensor> known_;
};

/// Records the nodes of a body in the current trace, with these arguments; returns the results.
std::vector<Tensor> inlined(const Body& body, std::span<const Tensor> arguments);

/// While alive, this thread records outside of the bodies inside the region that is `depth` deep:
/// where the function of that manual region itself is recorded. Nodes that are recorded there are
/// captured by the bodies that use them.
class OutsideBodiesScope {
 public:
  explicit OutsideBodiesScope(std::size_t depth);
  ~OutsideBodiesScope() { internal::recorder() = before_; }
  OutsideBodiesScope(const OutsideBodiesScope&) = delete;
  OutsideBodiesScope& operator=(const OutsideBodiesScope&) = delete;

 private:
  internal::Recorder before_;
};

}  // namespace meshard

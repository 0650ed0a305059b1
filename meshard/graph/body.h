// Body: a program inside a node: what a loop repeats, what a branch does.
#pragma once
#include <functional>
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
#include "meshard/graph/graph.h"
#include "meshard/graph/parse.h"
#include "meshard/graph/record.h"

namespace meshard {

/// A value: a closed program, of parameters only, which an op with control flow runs. Shared;
/// equal bodies compute the same from the same types and shardings.
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

/// Reads `[graph(...) {...}, ...]` as attributes print it.
/// @error invalid argument: syntax, and what parse_graph finds.
Result<std::vector<Body>> parse_bodies(std::string_view text, FindOp find_op);

/// What a parameter of a body is like: the type, the sharding that its argument is known to have,
/// the line that made it.
struct BodyInput {
  TensorType type;
  std::optional<Sharding> sharding = std::nullopt;
  SourceLocation where = {};
};
/// The input for an argument that goes in as it is.
BodyInput body_input(const Tensor& argument);

/// The function of a body: from its parameters to its results.
using BodyFunction = std::function<std::vector<Tensor>(std::span<const Tensor>)>;

/// A body as traced. The body's parameters are those asked for, then one for each captured value.
struct TracedBody {
  Body body;
  /// Values from outside that the results need; the node that runs the body takes them as
  /// operands.
  std::vector<Tensor> captured;
  /// Inside manual axes: what results and captured values vary over.
  AxisSet varying;
};

/// Traces `function`. Values that are recorded outside of it (values of enclosing traces, stored
/// arrays, lazy values) are captured; constants are repeated inside. With `place`, all parameters
/// are local values of that place.
/// @error invalid argument: a result without a value; a value of a trace that has ended.
TracedBody trace_body(std::span<const BodyInput> inputs, const BodyFunction& function,
                      const std::optional<ManualAxes>& place, SourceLocation where);

/// True if this thread records into `trace` now: the current trace, that of a body or jit around
/// it, or 0, that of lazy values.
bool is_being_recorded(std::uint64_t trace);

/// While alive, this thread records a body; record() asks it for the inner names of outer values.
class BodyScope {
 public:
  explicit BodyScope(const std::optional<ManualAxes>& place);
  ~BodyScope() { recorder() = before_; }
  BodyScope(const BodyScope&) = delete;
  BodyScope& operator=(const BodyScope&) = delete;

  std::uint64_t trace() const { return trace_; }
  Tensor parameter(const BodyInput& input);
  /// What a value is called inside: itself if it was recorded here, else a parameter that stands
  /// for it, or a constant like it.
  /// @error invalid argument: a value of a trace that has ended.
  Value inside(const Value& value);
  /// The value outside that `inner`, a result of inside() of this body or one around it, stands
  /// for; nullptr for any other node.
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

  Recorder before_;
  std::uint64_t trace_;
  std::optional<ManualAxes> place_;
  std::vector<Tensor> captured_, captured_parameters_;
  std::map<std::pair<const Node*, std::uint32_t>, Value> known_;
  // By inner node. Keeps the outer values alive, so that no other can come to have their address.
  std::unordered_map<const Node*, Value> outside_;
};

/// Records what `wanted` need of a program again, in the trace of this thread, with other values in
/// place of some: `known` says which. Values that are stored, and those outside of `trace`, stand
/// for themselves.
/// @error internal: a parameter of `trace` is needed and not in `known`
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

/// The results of a body for these arguments, recorded here.
std::vector<Tensor> inlined(const Body& body, std::span<const Tensor> arguments);

/// While alive, this thread records outside of the bodies inside the region that is `depth` deep:
/// where the function of that manual region itself is recorded. What is recorded there is captured
/// by the bodies that use it.
class OutsideBodiesScope {
 public:
  explicit OutsideBodiesScope(std::size_t depth);
  ~OutsideBodiesScope() { recorder() = before_; }
  OutsideBodiesScope(const OutsideBodiesScope&) = delete;
  OutsideBodiesScope& operator=(const OutsideBodiesScope&) = delete;

 private:
  Recorder before_;
};

}  // namespace meshard

#include "meshard/graph/body.h"

#include <algorithm>

#include "meshard/graph/annotate.h"
#include "meshard/graph/effects.h"
#include "meshard/graph/explicit_sharding.h"
#include "meshard/graph/leaf.h"
#include "meshard/graph/node_table.h"
#include "meshard/graph/op_def.h"
#include "meshard/graph/sharding_mark.h"

namespace meshard {
namespace {

bool is_leaf(const Node& node) {
  return &node.op() == &parameter_op || &node.op() == &array_op || &node.op() == &moved_array_op;
}

// A constant: recording it again inside a body is cheaper than capturing it.
bool is_constant(const Node& node) {
  return node.operands().empty() && !is_leaf(node) && !node.annotations() &&
         node.num_outputs() == 1;
}

// A splat: a broadcast constant.
bool is_splat(const Node& node) {
  return node.op().traits.repeats_elements && !node.annotations() && node.operands().size() == 1 &&
         is_constant(*node.operands()[0].node());
}

Tensor recorded_again(const Node& node, std::span<const Tensor> operands) {
  // What is computed again for a derivative belongs to it.
  const SourceLocation* outer = internal::recorder().outer;
  SourceLocation where =
      outer && outer->is_derivative ? node.where().of_derivative() : node.where();
  std::vector<const Tensor*> pointers;
  for (const Tensor& operand : operands) pointers.push_back(&operand);
  internal::InheritSource line(where);
  return record(node.op(), node.attributes() ? node.attributes()->clone() : nullptr,
                std::span<const Tensor* const>(pointers), where);
}

}  // namespace

Body::Body(Graph graph) {
  internal_check(graph.captured().empty(), "[graph] a body captures values");
  std::string key;
  graph.append_key(key);
  state_ = std::make_shared<const State>(State{std::move(graph), std::move(key)});
}

std::span<const Body> bodies_of(const Node& node) {
  const std::vector<Body>* bodies = node.attributes() ? node.attributes()->bodies() : nullptr;
  return bodies ? std::span<const Body>(*bodies) : std::span<const Body>();
}

// ---- Bodies as an attribute.

void attribute_text::print(std::string& out, const std::vector<Body>& bodies) {
  out.push_back('[');
  for (std::size_t i = 0; i < bodies.size(); ++i) {
    if (i) out.append(", ");
    std::string text = to_string(bodies[i].graph());
    text.pop_back();  // the final newline
    for (char c : text) {
      out.push_back(c);
      if (c == '\n') out.append("  ");
    }
  }
  out.push_back(']');
}

void attribute_text::append_key(std::string& out, const std::vector<Body>& bodies) {
  append_key(out, bodies.size());
  for (const Body& body : bodies) append_key(out, body.key());
}

Result<std::vector<Body>> parse_bodies(std::string_view text, FindOp find_op) {
  if (text.size() < 2 || text.front() != '[' || text.back() != ']')
    return Error(ErrorCode::kInvalidArgument, "[graph] expected a list of programs");
  std::vector<Body> bodies;
  for (std::string_view piece :
       attribute_text::split_outside_brackets(text.substr(1, text.size() - 2), ',')) {
    std::string lines;
    for (std::size_t i = 0; i < piece.size(); ++i) {
      lines.push_back(piece[i]);
      if (piece[i] == '\n' && piece.substr(i + 1).starts_with("  ")) i += 2;
    }
    MESHARD_ASSIGN_OR_RETURN(Graph graph, parse_graph(lines, find_op));
    bodies.emplace_back(std::move(graph));
  }
  return bodies;
}

// ---- Tracing.

BodyInput body_input(const Tensor& argument) {
  return {argument.type(), specified_sharding(argument), argument.where()};
}

BodyScope::BodyScope(const std::optional<ManualAxes>& place)
    : before_(internal::recorder()), trace_(internal::next_trace()), place_(place) {
  internal::recorder() = internal::Recorder{.trace = trace_,
                                            .keep_operands = before_.keep_operands,
                                            .outer = before_.outer,
                                            .manual = place_ ? &*place_ : nullptr,
                                            .body = this,
                                            .forbidden = before_.forbidden};
}

bool BodyScope::is_recording(std::uint64_t trace) const {
  for (const internal::Recorder* around = &before_;; around = &around->body->before_) {
    if (around->trace == trace) return true;
    if (!around->body) return false;
  }
}

Tensor BodyScope::annotated_parameter(const BodyInput& input, const Value* outer) {
  Tensor parameter =
      make_parameter(input.type, place_ ? std::nullopt : input.sharding, input.where);
  Node* node = parameter.value().node();
  if (place_) {
    node->annotate(annotations_of(*place_));
  } else if (outer) {
    // Only the explicit sharding, which is part of the value, not the layout of its bytes.
    const Sharding* part = explicit_sharding(*outer);
    node->annotate(part ? annotations_of(*part, part->rank()) : nullptr);
  }
  return parameter;
}

Tensor BodyScope::parameter(const BodyInput& input) { return annotated_parameter(input, nullptr); }

bool is_being_recorded(std::uint64_t trace) {
  if (trace == 0 || trace == internal::recorder().trace) return true;
  return internal::recorder().body && internal::recorder().body->is_recording(trace);
}

Value BodyScope::inside(const Value& value) {
  if (value->trace() == trace_ && !value.storage()) return value;
  std::pair<const Node*, std::uint32_t> key(value.node(), value.index());
  if (auto found = known_.find(key); found != known_.end()) return found->second;
  Value inner = made_inside(value);
  known_.emplace(key, inner);
  outside_.emplace(inner.node(), value);
  return inner;
}

Value BodyScope::made_inside(const Value& value) {
  const Node& node = *value.node();
  if (!value.storage() && is_constant(node)) return recorded_again(node, {}).value();
  if (!value.storage() && is_splat(node)) {
    Tensor element(inside(node.operands()[0]));
    return recorded_again(node, {&element, 1}).value();
  }
  if (!value.storage() && node.trace() != 0 && !is_recording(node.trace()))
    throw Error(ErrorCode::kInvalidArgument,
                "[graph] a traced value is used outside its trace. Return it from the function "
                "instead of keeping it",
                internal::recorder().outer ? *internal::recorder().outer : SourceLocation{})
        .with_note(cat("it was recorded at ", node.where()));
  if (place_ && !may_enter(value, *place_)) {
    const ManualAxes* other = manual_axes(value);
    throw Error(ErrorCode::kInvalidArgument,
                other ? "[graph] a value inside manual axes cannot be combined with a value inside "
                        "other manual axes: pass the latter to manual() as an argument"
                      : "[graph] a value inside manual axes cannot be combined with a full value: "
                        "pass the full value to manual() as an argument",
                internal::recorder().outer ? *internal::recorder().outer : SourceLocation{})
        .with_note(cat(other ? "the value, " : "the full value, ", value.type(), ", was made at ",
                       node.where(), other ? cat(", ", *other) : std::string()));
  }
  Tensor outer(value);
  Tensor parameter = annotated_parameter(body_input(outer), &value);
  captured_.push_back(outer);
  captured_parameters_.push_back(parameter);
  return parameter.value();
}

const Value* BodyScope::outside(const Node& inner) const {
  for (const BodyScope* scope = this; scope; scope = scope->before_.body)
    if (auto found = scope->outside_.find(&inner); found != scope->outside_.end())
      return &found->second;
  return nullptr;
}

OutsideBodiesScope::OutsideBodiesScope(std::size_t depth) : before_(internal::recorder()) {
  internal::Recorder outside = before_;
  while (outside.body && outside.body->place_ && outside.body->place_->depth() >= depth)
    outside = outside.body->before_;
  outside.outer = before_.outer;  // the user's line
  internal::recorder() = outside;
}

TracedBody trace_body(std::span<const BodyInput> inputs, const BodyFunction& function,
                      const std::optional<ManualAxes>& place, SourceLocation where) {
  BodyScope scope(place);
  TracedBody traced;
  std::vector<Tensor> parameters;
  for (const BodyInput& input : inputs) parameters.push_back(scope.parameter(input));
  internal::EffectScope effects;
  std::vector<Tensor> results = function(parameters);
  effects.attach(results);
  std::vector<Value> result_values, parameter_values;
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (!results[i].defined())
      throw_invalid(where, "[graph] tensor ", i, " of the function's result has no value");
    result_values.push_back(scope.inside(results[i].value()));
    if (const ManualAxes* manual = manual_axes(result_values.back()))
      traced.varying = traced.varying | manual->varying;
  }
  for (const Tensor& parameter : parameters) parameter_values.push_back(parameter.value());
  // A value that only unused operations capture must not become an operand: it would decide on
  // which devices the body runs.
  NodeSet needed;
  nodes_behind(
      result_values, [&](const Value& value) { return value->trace() == scope.trace(); }, needed);
  for (std::size_t i = 0; i < scope.captured().size(); ++i) {
    const Tensor &outer = scope.captured()[i], &parameter = scope.captured_parameters()[i];
    if (!needed.contains(*parameter.value().node())) continue;
    parameter_values.push_back(parameter.value());
    traced.captured.push_back(outer);
    if (const ManualAxes* manual = manual_axes(outer.value()))
      traced.varying = traced.varying | manual->varying;
  }
  traced.body = Body(Graph::build(parameter_values, result_values, scope.trace()));
  return traced;
}

// ---- Recording again.

Tensor Replay::find(const Value& value) const {
  if (auto found = known_.find({value.node(), value.index()}); found != known_.end())
    return found->second;
  internal_check(value->trace() != trace_ || value.storage(),
                 "[graph] a value of a program that is recorded again is missing");
  return Tensor(value);
}

void Replay::again(const Node& node) {
  internal_check(&node.op() != &parameter_op, "[graph] a parameter without an argument");
  std::vector<Tensor> operands;
  for (const Value& operand : node.operands()) operands.push_back(find(operand));
  Tensor copy = recorded_again(node, operands);
  for (std::uint32_t i = 0; i < node.num_outputs(); ++i)
    known_.try_emplace({&node, i}, Tensor(Value(copy.value().node(), i)));
}

std::vector<Tensor> Replay::run(std::span<const Value> wanted) {
  std::vector<const Node*> needed = nodes_behind(wanted, [&](const Value& value) {
    return !knows(value) && !value.storage() && value->trace() == trace_;
  });
  std::sort(needed.begin(), needed.end(),
            [](const Node* a, const Node* b) { return a->id() < b->id(); });
  for (const Node* node : needed) again(*node);
  std::vector<Tensor> results;
  for (const Value& value : wanted) results.push_back(find(value));
  return results;
}

std::vector<Tensor> inlined(const Body& body, std::span<const Tensor> arguments) {
  std::span<const Value> parameters = body.graph().parameters();
  internal_check(parameters.size() == arguments.size(), "[graph] arguments of a body");
  if (body.num_results() == 0) return {};
  // All nodes of a body belong to one trace; a result that is a parameter is already known.
  std::uint64_t trace = body.graph().nodes().empty() ? 0 : body.graph().nodes()[0]->trace();
  Replay replay(trace);
  for (std::size_t i = 0; i < parameters.size(); ++i) replay.set(parameters[i], arguments[i]);
  return replay.run(body.graph().results());
}

}  // namespace meshard

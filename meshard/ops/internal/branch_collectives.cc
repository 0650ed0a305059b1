#include "meshard/ops/internal/branch_collectives.h"

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "meshard/graph/annotation.h"
#include "meshard/graph/body.h"
#include "meshard/graph/node_table.h"
#include "meshard/ops/definition/define.h"
#include "meshard/ops/internal/collective.h"

namespace meshard {

extern const OpDef vary_op;

namespace {

// The axes along which each result of a node differs between devices.
using Differing = std::vector<AxisSet>;

bool runs_collectives(const Node& node);
bool runs_collectives(const Body& body) {
  std::span<const Node* const> nodes = body.graph().nodes();
  return std::any_of(nodes.begin(), nodes.end(),
                     [](const Node* node) { return runs_collectives(*node); });
}
bool runs_collectives(const Node& node) {
  std::span<const Body> bodies = bodies_of(node);
  return node.op().traits.is_collective ||
         std::any_of(bodies.begin(), bodies.end(),
                     [](const Body& b) { return runs_collectives(b); });
}

template <class T>
const T* attributes_if(const Node& node) {
  const Attributes* attributes = node.attributes();
  return attributes && attributes->type() == typeid(T) ? &node.attributes_as<T>() : nullptr;
}

// A branch or loop around the nodes that are looked at.
struct Choice {
  const Node& node;
  AxisSet differs;  // the axes along which devices choose differently
};

[[noreturn]] void fail(const Node& collective, AxisSet axes, const Choice& choice,
                       const Mesh& mesh) {
  bool loop = attributes_if<WhileAttributes>(choice.node) != nullptr;
  throw_invalid(
      collective.where(), "[", collective.op().name, "] runs over ", axes.to_string(mesh),
      loop ? cat(" in the loop at ", choice.node.where(), ", whose condition varies over ")
           : cat(" in a branch at ", choice.node.where(), ", whose predicate varies over "),
      choice.differs.to_string(mesh),
      loop ? ": the devices along it would run different numbers of steps"
           : ": the devices along it would take different branches",
      ", and the collective waits for all of them. Call it outside, or choose by a value that is "
      "the same on these devices (all_reduce of the predicate)");
}

class BranchCollectives {
 public:
  explicit BranchCollectives(const Mesh& mesh) : mesh_(mesh) {}

  Differing of(const Node& node, std::vector<AxisSet> operands) {
    if (const auto* loop = attributes_if<WhileAttributes>(node))
      return of_while(node, *loop, std::move(operands));
    if (const auto* chosen = attributes_if<SwitchAttributes>(node))
      return of_switch(node, *chosen, operands);
    if (const auto* scan = attributes_if<ScanAttributes>(node))
      return of_scan(*scan, std::move(operands));
    if (std::span<const Body> bodies = bodies_of(node); !bodies.empty())
      return results_of(bodies[0], operands);
    return Differing(node.num_outputs(), of_plain(node, operands));
  }

 private:
  static AxisSet annotated(const Node& node) {
    const AnnotationsPtr& annotations = node.annotations();
    return annotations && annotations->manual ? annotations->manual->varying : AxisSet();
  }

  // What a node without bodies adds and removes, by its annotations.
  AxisSet of_plain(const Node& node, std::span<const AxisSet> operands) const {
    AxisSet differs, before;
    for (const AxisSet& each : operands) differs = differs | each;
    for (const Value& operand : node.operands()) before = before | annotated(*operand.node());
    if (&node.op() == &vary_op) return differs;
    AxisSet after = annotated(node);
    if (node.op().traits.is_collective) return (differs | group_of(node)) & after;
    return (differs - (before - after)) | (after - before);
  }

  AxisSet group_of(const Node& node) const {
    return internal::collective::touched_axes(mesh_, *internal::collective::axes_of(node));
  }

  void check(const Node& node) const {
    if (!node.op().traits.is_collective) return;
    AxisSet own;
    for (const AxisRef& axis : *internal::collective::axes_of(node))
      if (mesh_.axis_size(axis) > 1) own = own | AxisSet(mesh_, {AxisRef(axis.name)});
    for (std::size_t i = choices_.size(); i-- > 0;)
      if (AxisSet both = own & choices_[i].differs; !both.empty())
        fail(node, both, choices_[i], mesh_);
  }

  // Differences of a body's results, given those of its parameters.
  Differing results_of(const Body& body, std::span<const AxisSet> parameters) {
    const Graph& graph = body.graph();
    std::vector<Differing> known(graph.num_leaves() + graph.nodes().size());
    auto at = [&](const Value& value) -> Differing& { return known[graph.number(value.node())]; };
    for (std::size_t i = 0; i < parameters.size(); ++i) at(graph.parameters()[i]) = {parameters[i]};
    for (const Node* node : graph.nodes()) {
      check(*node);
      std::vector<AxisSet> operands;
      for (const Value& operand : node->operands())
        operands.push_back(at(operand)[operand.index()]);
      known[graph.number(node)] = of(*node, std::move(operands));
    }
    Differing results;
    for (const Value& result : graph.results()) results.push_back(at(result)[result.index()]);
    return results;
  }

  Differing in_choice(const Node& node, AxisSet differs, const Body& body,
                      std::span<const AxisSet> parameters) {
    choices_.push_back({node, differs});
    Differing results = results_of(body, parameters);
    choices_.pop_back();
    return results;
  }

  Differing of_switch(const Node& node, const SwitchAttributes& attributes,
                      std::span<const AxisSet> operands) {
    auto arguments = static_cast<std::size_t>(attributes.num_arguments);
    std::size_t next = 1 + arguments;
    Differing results(node.num_outputs(), operands[0]);
    for (const Body& body : attributes.bodies) {
      std::vector<AxisSet> given;
      for (std::size_t i = 0; i < body.num_parameters(); ++i)
        given.push_back(operands[i < arguments ? 1 + i : next++]);
      Differing made = in_choice(node, operands[0], body, given);
      for (std::size_t i = 0; i < results.size(); ++i) results[i] = results[i] | made[i];
    }
    return results;
  }

  Differing of_while(const Node& node, const WhileAttributes& attributes,
                     std::vector<AxisSet> operands) {
    auto carries = static_cast<std::size_t>(attributes.num_carries);
    const Body &condition = attributes.bodies[0], &body = attributes.bodies[1];
    std::size_t tests = condition.num_parameters();
    AxisSet differs;
    for (bool changed = true; changed;) {
      AxisSet tested = in_choice(node, differs, condition, std::span(operands).first(tests))[0];
      std::vector<AxisSet> given(operands.begin(),
                                 operands.begin() + static_cast<std::ptrdiff_t>(carries));
      given.insert(given.end(), operands.begin() + static_cast<std::ptrdiff_t>(tests),
                   operands.end());
      Differing made = in_choice(node, differs | tested, body, given);
      changed = !(tested == differs);
      differs = differs | tested;
      for (std::size_t i = 0; i < carries; ++i) {
        AxisSet all = operands[i] | made[i] | differs;
        changed = changed || !(all == operands[i]);
        operands[i] = all;
      }
    }
    operands.resize(carries);
    return operands;
  }

  Differing of_scan(const ScanAttributes& attributes, std::vector<AxisSet> operands) {
    auto carries = static_cast<std::size_t>(attributes.num_carries);
    for (;;) {
      Differing made = results_of(attributes.bodies[0], operands);
      bool changed = false;
      for (std::size_t i = 0; i < carries; ++i) {
        AxisSet all = operands[i] | made[i];
        changed = changed || !(all == operands[i]);
        operands[i] = made[i] = all;
      }
      if (!changed) return made;
    }
  }

  const Mesh& mesh_;
  std::vector<Choice> choices_;
};

// Follows the operands of `node` back to where they enter the region, in the order of recording.
std::vector<AxisSet> followed_operands(const Node& node, const Mesh& mesh) {
  std::vector<const Node*> before = nodes_behind(
      node.operands(), [](const Value& value) { return manual_axes(value) != nullptr; });
  std::sort(before.begin(), before.end(),
            [](const Node* a, const Node* b) { return a->id() < b->id(); });
  std::unordered_map<const Node*, Differing> known;
  auto operands_of = [&](const Node& of) {
    std::vector<AxisSet> operands;
    for (const Value& operand : of.operands()) {
      auto found = known.find(operand.node());
      operands.push_back(found == known.end() ? AxisSet() : found->second[operand.index()]);
    }
    return operands;
  };
  for (const Node* each : before)
    known[each] = BranchCollectives(mesh).of(*each, operands_of(*each));
  return operands_of(node);
}

// The annotated axes of the operands, without the widening that joins the operands of bodies.
std::vector<AxisSet> annotated_operands(const Node& node) {
  std::vector<AxisSet> operands;
  for (const Value& operand : node.operands()) {
    const Value* value = &operand;
    while (&(*value)->op() == &vary_op) value = &(*value)->operands()[0];
    const ManualAxes* place = manual_axes(*value);
    operands.push_back(place ? place->varying : AxisSet());
  }
  return operands;
}

}  // namespace

void internal::check_branch_collectives(const Node& node) {
  const AnnotationsPtr& annotations = node.annotations();
  if (!annotations || !annotations->manual || !runs_collectives(node)) return;
  if (const BodyScope* body = recorder().body; body && body->place()) return;
  const Mesh& mesh = annotations->manual->mesh;
  try {
    BranchCollectives(mesh).of(node, annotated_operands(node));
  } catch (const Error&) {
    // Results of loops and branches vary over more axes than they differ along.
    BranchCollectives(mesh).of(node, followed_operands(node, mesh));
  }
}

}  // namespace meshard

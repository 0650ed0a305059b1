#include "meshard/ops/switch_case.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "meshard/graph/annotation.h"
#include "meshard/graph/body_vjp.h"
#include "meshard/graph/explicit_sharding.h"
#include "meshard/graph/sharding_mark.h"
#include "meshard/graph/superseded.h"
#include "meshard/ops/all.h"
#include "meshard/ops/definition/bodies.h"
#include "meshard/ops/definition/define.h"

namespace meshard {

extern const OpDef switch_case_op;

namespace {

using stablehlo::Typed;
using SsaValue = stablehlo::Value;

void infer_switch(const OpCall& call, ResultTypes& results) {
  const auto& attributes = call.as<SwitchAttributes>();
  const std::vector<Body>& bodies = attributes.bodies;
  if (bodies.empty()) call.fail("requires at least one branch");
  if (call.operands.empty() || call.operand(0) != TensorType{DType::i32, {}})
    call.fail("the index must be i32[], not ",
              call.operands.empty() ? std::string("missing") : cat(call.operand(0)));
  std::size_t arguments = static_cast<std::size_t>(attributes.num_arguments);
  std::size_t next = 1 + arguments;
  for (std::size_t b = 0; b < bodies.size(); ++b) {
    std::string which = cat("branch ", b);
    check_parameters(call, bodies[b], which, 0, 1, arguments);
    std::size_t captured = bodies[b].num_parameters() - arguments;
    check_parameters(call, bodies[b], which, arguments, next, captured);
    next += captured;
    if (bodies[b].num_results() != bodies[0].num_results())
      call.fail("branch 0 returns ", bodies[0].num_results(), " values, but ", which, " returns ",
                bodies[b].num_results());
    for (std::size_t i = 0; i < bodies[b].num_results(); ++i)
      if (bodies[b].result(i) != bodies[0].result(i))
        call.fail("result ", i, " of branch 0 is ", bodies[0].result(i), ", but of ", which, " ",
                  bodies[b].result(i));
  }
  if (next != call.operands.size()) call.fail("has ", call.operands.size(), " operands for ", next);
  for (std::size_t i = 0; i < bodies[0].num_results(); ++i) results.push_back(bodies[0].result(i));
  if (results.empty()) call.fail("the branches return nothing");
}

// Over explicit axes all branches must give the same shardings. A result without one counts as
// whole.
void check_same_shardings(const Node& node, const Body& first, const Body& body) {
  auto described = [](const Sharding* sharding) {
    return sharding ? cat(*sharding) : "unspecified";
  };
  for (std::size_t i = 0; i < first.num_results(); ++i) {
    const Value &a = first.graph().results()[i], &b = body.graph().results()[i];
    const Sharding *wanted = explicit_sharding(a), *present = explicit_sharding(b);
    if (same_explicit_sharding(wanted, present)) continue;
    throw Error(ErrorCode::kInvalidArgument,
                cat("[switch_case] result ", i, " is ", described(wanted), " in one branch and ",
                    described(present), " in another"),
                node.where())
        .with_note(cat("the latter was made at ", b->where()));
  }
}

bool has_marks(const Body& body) {
  std::span<const Node* const> nodes = body.graph().nodes();
  return std::any_of(nodes.begin(), nodes.end(), [](const Node* node) {
    std::span<const Body> inner = bodies_of(*node);
    return marked_sharding(Value(const_cast<Node*>(node))) ||
           std::any_of(inner.begin(), inner.end(), has_marks);
  });
}

// True if the branches may end with different shardings: with marks, with shardings over explicit
// axes, or with an op whose body has marks. XLA takes the sharding at the end of a branch for that
// of the whole case op, and rejects the program if they differ.
bool ends_may_differ(const std::vector<Body>& bodies, std::size_t result) {
  std::optional<Sharding> first;
  for (const Body& body : bodies) {
    const Value& value = body.graph().results()[result];
    std::optional<Sharding> said = marked_sharding(value);
    if (const Sharding* part = explicit_sharding(value); part && !said) said = *part;
    if (said && first && *said != *first) return true;
    if (!said && has_marks(body)) return true;
    if (said) first = std::move(said);
  }
  return false;
}

// All devices run all branches, and select the results of their own.
void emit_all_branches(const OpCall& call, OpEmission& out) {
  const auto& attributes = call.as<SwitchAttributes>();
  const TensorType truth{DType::bool_, {}}, number{DType::i32, {}};
  auto arguments = out.operands.subspan(1, static_cast<std::size_t>(attributes.num_arguments));
  std::size_t next = 1 + arguments.size();
  std::vector<SsaValue> selected;
  for (std::size_t b = 0; b < attributes.bodies.size(); ++b) {
    std::vector<SsaValue> given;
    for (const Typed& argument : arguments) given.push_back(argument.value);
    while (given.size() < attributes.bodies[b].num_parameters())
      given.push_back(out.operands[next++].value);
    SsaValue is_own = out.writer.temporary(), taken = is_own;
    SsaValue which = out.writer.scalar(DType::i32, static_cast<double>(b));
    out.writer.op("stablehlo.compare", {{is_own, truth}}, {out.operands[0], {which, number}})
        .enumeration("comparison_direction", "comparison_direction", "EQ")
        .done();
    if (out.taken) {
      taken = out.writer.temporary();
      out.writer.elementwise("stablehlo.and", taken, {is_own, *out.taken}, truth);
    }
    std::vector<SsaValue> results = out.bodies->write_taken(b, given, taken);
    bool is_last = b + 1 == attributes.bodies.size();
    for (std::size_t i = 0; i < results.size(); ++i) {
      const TensorType& type = *out.results[i].type;
      SsaValue before = b == 0 ? results[i] : selected[i];
      SsaValue after = is_last ? out.results[i].value : out.writer.temporary();
      out.writer
          .op("stablehlo.select", {{after, type}},
              {{is_own, truth}, {results[i], type}, {before, type}}, out.location)
          .done();
      if (b == 0) selected.push_back(after);
      selected[i] = after;
    }
  }
}

// The branches refer to the names of the arguments directly.
void emit_switch(const OpCall& call, OpEmission& out) {
  if (out.by_all_devices) return emit_all_branches(call, out);
  const auto& attributes = call.as<SwitchAttributes>();
  std::size_t arguments = static_cast<std::size_t>(attributes.num_arguments);
  std::vector<SsaValue> values;
  for (std::size_t i = 0; i < arguments; ++i) values.push_back(out.operands[1 + i].value);
  std::size_t next = 1 + arguments;
  auto op = out.writer.op("stablehlo.case", out.results, {out.operands[0]}, out.location);
  for (std::size_t b = 0; b < attributes.bodies.size(); ++b) {
    std::vector<SsaValue> given = values;
    while (given.size() < attributes.bodies[b].num_parameters())
      given.push_back(out.operands[next++].value);
    op.region({}, [&] {
      std::vector<SsaValue> results = out.bodies->write(b, given);
      std::vector<Typed> returned;
      for (std::size_t i = 0; i < results.size(); ++i) {
        const TensorType& type = *out.results[i].type;
        if (ends_may_differ(attributes.bodies, i)) {
          // A barrier hides the marked value's sharding; its result may be laid out as those of the
          // other branches.
          SsaValue marked = std::exchange(results[i], out.writer.temporary());
          out.writer.op("stablehlo.optimization_barrier", {{results[i], type}}, {{marked, type}})
              .done();
        }
        returned.emplace_back(results[i], type);
      }
      out.writer.terminate(returned);
    });
  }
  op.done();
}

// The operands of the call that each branch takes, by its parameters.
std::vector<std::vector<std::size_t>> operands_of_branches(const SwitchAttributes& attributes) {
  std::size_t arguments = static_cast<std::size_t>(attributes.num_arguments);
  std::size_t next = 1 + arguments;
  std::vector<std::vector<std::size_t>> all;
  for (const Body& body : attributes.bodies) {
    std::vector<std::size_t> operands;
    for (std::size_t i = 0; i < body.num_parameters(); ++i)
      operands.push_back(i < arguments ? 1 + i : next++);
    all.push_back(std::move(operands));
  }
  return all;
}

// The derivative of a switch: a switch with the same index over the derivatives of the branches.
class SwitchVjp {
 public:
  explicit SwitchVjp(const VjpCall& call)
      : call_(call),
        attributes_(call.as<SwitchAttributes>()),
        operands_(operands_of_branches(attributes_)) {}

  void run(std::span<Tensor> out) {
    differentiate();
    keep();
    std::vector<std::size_t> wanted;
    for (std::size_t i = 1; i < call_.operands.size(); ++i)
      if (call_.needs(i)) wanted.push_back(i);
    std::vector<BodyFunction> branches;
    for (std::size_t b = 0; b < vjps_.size(); ++b)
      branches.push_back([this, b, &wanted](std::span<const Tensor>) { return back(b, wanted); });
    std::vector<Tensor> results =
        switch_tensors(In(call_.operands[0], call_.node.where()), branches, {}, call_.node.where());
    for (std::size_t i = 0; i < wanted.size(); ++i) out[wanted[i]] = results[i];
  }

 private:
  void differentiate() {
    std::vector<bool> has_cotangent;
    for (const Tensor& cotangent : call_.cotangents) has_cotangent.push_back(cotangent.defined());
    for (std::size_t b = 0; b < operands_.size(); ++b) {
      std::vector<bool> wanted;
      for (std::size_t operand : operands_[b]) wanted.push_back(call_.needs(operand));
      std::vector<InBackward> back(wanted.size(), InBackward::kAvailable);
      vjps_.push_back(call_.bodies->differentiate(attributes_.bodies[b], has_cotangent, wanted,
                                                  back, {}, call_.node.where()));
    }
  }

  std::size_t num_results() const { return call_.results.size(); }

  // Records the switch with the residuals of each branch as further results; the other branches
  // return zeros for them.
  void keep() {
    std::vector<Tensor> extra;
    for (std::size_t b = 0; b < vjps_.size(); ++b) {
      first_kept_.push_back(num_results() + extra.size());
      const Body& forward = vjps_[b].forward;
      for (std::size_t i = num_results(); i < forward.num_results(); ++i)
        extra.emplace_back(forward.graph().results()[i]);
    }
    if (extra.empty()) return;
    SwitchAttributes more = attributes_;
    more.extends = extension_key(*call_.node.attributes(), num_results());
    internal::InheritSource forward_pass(call_.node.where());
    for (std::size_t b = 0; b < vjps_.size(); ++b) more.bodies[b] = with_zeros(b, extra);
    kept_ = record_call(call_.node.op(), make_attributes(std::move(more)), call_.operands,
                        call_.node.where());
  }

  Body with_zeros(std::size_t b, const std::vector<Tensor>& extra) const {
    const Body& forward = vjps_[b].forward;
    std::vector<BodyInput> inputs;
    for (std::size_t operand : operands_[b]) inputs.push_back(body_input(call_.operands[operand]));
    std::optional<ManualAxes> place = place_of(call_.node);
    TracedBody traced = trace_body(
        inputs,
        [&](std::span<const Tensor> given) {
          std::vector<Tensor> results = inlined(forward, given);
          std::vector<Tensor> all(results.begin(),
                                  results.begin() + static_cast<std::ptrdiff_t>(num_results()));
          std::size_t first = first_kept_[b] - num_results();
          for (std::size_t i = 0; i < extra.size(); ++i) {
            bool own = i >= first && i - first + num_results() < results.size();
            all.push_back(own ? results[num_results() + i - first] : zero_cotangent(extra[i]));
          }
          return all;
        },
        place, call_.node.where());
    return std::move(traced.body);
  }

  // The cotangents of the wanted operands if branch b was taken.
  std::vector<Tensor> back(std::size_t b, const std::vector<std::size_t>& wanted) const {
    const BodyVjp& vjp = vjps_[b];
    std::vector<Tensor> given;
    for (const Tensor& cotangent : call_.cotangents)
      if (cotangent.defined()) given.push_back(cotangent);
    for (const BodyVjp::Residual& residual : vjp.residuals)
      given.push_back(residual.saved ? kept_[first_kept_[b] + residual.index - num_results()]
                                     : call_.operands[operands_[b][residual.index]]);
    given.insert(given.end(), vjp.captured.begin(), vjp.captured.end());
    std::vector<Tensor> cotangents = inlined(vjp.backward, given), results;
    for (std::size_t operand : wanted) {
      std::size_t next = 0, found = cotangents.size();
      for (std::size_t own : operands_[b]) {
        if (!call_.needs(own)) continue;
        if (own == operand) found = next;
        ++next;
      }
      results.push_back(found < cotangents.size() ? cotangents[found]
                                                  : zero_cotangent(call_.operands[operand]));
    }
    return results;
  }

  const VjpCall& call_;
  const SwitchAttributes& attributes_;
  std::vector<std::vector<std::size_t>> operands_;  // operand indices of the node, by branch and
                                                    // parameter
  std::vector<BodyVjp> vjps_;
  std::vector<std::size_t> first_kept_;  // first residual among the extended switch's results, by
                                         // branch
  std::vector<Tensor> kept_;
};

// The index is the same for all members: one branch runs.
void batch_of_one_branch(const BatchCall& call, std::span<Tensor> results) {
  const auto& attributes = call.as<SwitchAttributes>();
  std::size_t arguments = static_cast<std::size_t>(attributes.num_arguments);
  std::vector<std::vector<std::size_t>> taken = operands_of_branches(attributes);
  BatchedValues values(std::vector<bool>(results.size(), false));
  std::vector<BodyToTrace> to_trace;
  for (std::size_t b = 0; b < taken.size(); ++b) {
    std::vector<bool> batched;
    BodyToTrace branch;
    for (std::size_t i = 0; i < taken[b].size(); ++i) {
      const Tensor& operand = call.operands[taken[b][i]];
      batched.push_back(call.batched[taken[b][i]]);
      branch.inputs.push_back(body_input(operand));
      if (i >= arguments) branch.own.push_back(operand);
    }
    branch.function = [&, b, batched](std::span<const Tensor> given) {
      return values.expected(batched_body(call, attributes.bodies[b], given, batched), call.size);
    };
    to_trace.push_back(std::move(branch));
  }
  TracedBodies traced;
  do {
    traced = trace_bodies(call.operands.first(1 + arguments), to_trace, call.node.where());
  } while (values.have_changed());
  SwitchAttributes again = attributes;
  again.bodies = std::move(traced.bodies);
  again.extends = extends_batched(again, attributes.extends);
  std::vector<Tensor> made = record_call(call.node.op(), make_attributes(std::move(again)),
                                         traced.operands, call.node.where());
  std::copy(made.begin(), made.end(), results.begin());
}

// If all members share the index, one branch runs; otherwise all run, and each member selects its
// own.
void switch_batch(const BatchCall& call, std::span<Tensor> results) {
  if (!call.batched[0]) return batch_of_one_branch(call, results);
  const auto& attributes = call.as<SwitchAttributes>();
  std::vector<std::vector<std::size_t>> taken = operands_of_branches(attributes);
  for (std::size_t b = 0; b < taken.size(); ++b) {
    std::vector<Tensor> operands;
    std::vector<bool> batched;
    for (std::size_t at : taken[b]) {
      operands.push_back(call.operands[at]);
      batched.push_back(call.batched[at]);
    }
    BatchedValues all(std::vector<bool>(results.size(), true));
    std::vector<Tensor> made =
        all.expected(batched_body(call, attributes.bodies[b], operands, batched), call.size);
    Tensor is_own = equal(call.operands[0], static_cast<std::int64_t>(b));
    for (std::size_t i = 0; i < made.size(); ++i)
      results[i] = b == 0
                       ? made[i]
                       : where(broadcast_in_dim(is_own, made[i].shape(), {0}), made[i], results[i]);
  }
}

}  // namespace

extern constinit const OpDef switch_case_op = {
    .name = "switch_case",
    .operands = "index, arguments, captured...",
    .doc = "The results of one of several functions, chosen by an index; only that function runs.",
    .example =
        "switch_case(1, {[](Tensor t) { return exp(t); }, [](Tensor t) { return negative(t); }}, "
        "x)",
    .infer = infer_switch,
    .sharding_rule = [](const OpCall& call) { return pass_through_rule(call, {}); },
    .emit = emit_switch,
    .vjp = [](const VjpCall& call, std::span<Tensor> out) { SwitchVjp(call).run(out); },
    .batch = switch_batch,
    .annotate =
        [](const Node& node) {
          const std::vector<Body>& bodies = node.attributes_as<SwitchAttributes>().bodies;
          for (const Body& body : bodies) check_same_shardings(node, bodies[0], body);
          return annotate_by_body(node, bodies[0], bodies[0].num_results());
        },
    .parse_attributes = parse_attributes<SwitchAttributes>,
};

std::vector<Tensor> switch_tensors(In index, std::span<const BodyFunction> branches,
                                   const std::vector<Tensor>& arguments, SourceLocation where) {
  where = effective_source(where);
  Tensor chosen = operand_tensor(switch_case_op, index);
  if (is_inexact(chosen.dtype()) || chosen.rank() != 0)
    throw_invalid(where, "[switch_case] the index must be an integer of rank 0, not ",
                  chosen.type());
  if (branches.empty()) throw_invalid(where, "[switch_case] requires at least one branch");
  {
    SourceScope line(where);
    if (chosen.dtype() == DType::bool_) chosen = astype(chosen, DType::i32);
    chosen = astype(clip(chosen, 0, std::ssize(branches) - 1), DType::i32);
  }
  std::vector<BodyToTrace> to_trace;
  const std::vector<Tensor> passed = passed_arguments(arguments);
  for (const BodyFunction& branch : branches) {
    to_trace.push_back({{}, of_passed_arguments(branch, arguments)});
    for (const Tensor& argument : passed) to_trace.back().inputs.push_back(body_input(argument));
  }
  std::vector<Tensor> given{chosen};
  given.insert(given.end(), passed.begin(), passed.end());
  TracedBodies traced = trace_bodies(given, to_trace, where);
  return with_effects_kept(record_call(switch_case_op,
                                       make_attributes(SwitchAttributes{
                                           std::move(traced.bodies), std::ssize(passed), {}}),
                                       traced.operands, where),
                           where);
}

}  // namespace meshard

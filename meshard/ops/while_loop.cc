#include "meshard/ops/while_loop.h"

#include <algorithm>

#include "meshard/ops/all.h"
#include "meshard/ops/definition/bodies.h"
#include "meshard/ops/definition/define.h"
#include "meshard/ops/internal/collective.h"
#include "meshard/ops/internal/element_writer.h"

namespace meshard {
namespace {

using stablehlo::Typed;
using SsaValue = stablehlo::Value;

constexpr std::size_t kCondition = 0, kBody = 1;

std::size_t carries_of(const OpCall& call) {
  return static_cast<std::size_t>(call.as<WhileAttributes>().num_carries);
}

void infer_while(const OpCall& call, ResultTypes& results) {
  const std::vector<Body>& bodies = call.as<WhileAttributes>().bodies;
  if (bodies.size() != 2)
    call.fail("must have a condition and a body, not ", bodies.size(), " bodies");
  const Body &condition = bodies[kCondition], &body = bodies[kBody];
  std::size_t carries = carries_of(call);
  if (carries == 0) call.fail("takes at least one carry");
  check_parameters(call, condition, "the condition", 0, 0, carries);
  check_parameters(call, body, "the body", 0, 0, carries);
  std::size_t captured = condition.num_parameters() - carries;
  check_parameters(call, condition, "the condition", carries, carries, captured);
  check_parameters(call, body, "the body", carries, carries + captured,
                   body.num_parameters() - carries);
  if (call.operands.size() != captured + body.num_parameters())
    call.fail("has ", call.operands.size(), " operands for ", captured + body.num_parameters(),
              " parameters");
  const TensorType truth{DType::bool_, {}};
  if (condition.num_results() != 1 || condition.result(0) != truth)
    call.fail("the condition returns ",
              condition.num_results() ? cat(condition.result(0)) : std::string("nothing"),
              ", not one bool of rank 0");
  if (body.num_results() != carries)
    call.fail("the body returns ", body.num_results(), " values for ", carries, " carries");
  for (std::size_t i = 0; i < carries; ++i) {
    if (body.result(i) != body.parameter(i))
      call.fail("carry ", i, " enters the body as ", body.parameter(i), ", but is returned as ",
                body.result(i));
    results.push_back(body.result(i));
  }
}

ShardingRule while_rule(const OpCall& call) {
  std::vector<std::pair<std::size_t, std::size_t>> together;
  for (std::size_t i = 0; i < carries_of(call); ++i) together.emplace_back(i, i);
  return pass_through_rule(call, together);
}

// A loop that ends at different turns on different devices, in which all of them run as many turns
// as any: the carries of a device that has ended stay as they are. Whether it goes on is carried.
class LoopByAll {
 public:
  LoopByAll(const OpCall& call, OpEmission& out)
      : out_(out),
        carries_(carries_of(call)),
        tests_(call.as<WhileAttributes>().bodies[kCondition].num_parameters()) {}

  void write() {
    std::vector<SsaValue> start;
    for (const Typed& operand : out_.operands) start.push_back(operand.value);
    std::vector<Typed> given{{goes_on(start, out_.taken), kTruth}}, made, tested, repeated;
    given.insert(given.end(), out_.operands.begin(), out_.operands.end());
    for (std::size_t i = 0; i < given.size(); ++i) {
      bool is_carry = i > 0 && i <= carries_;
      made.push_back(is_carry ? out_.results[i - 1]
                              : Typed(out_.writer.temporary(), *given[i].type));
      tested.emplace_back(out_.writer.block_argument(), *given[i].type);
      repeated.emplace_back(out_.writer.block_argument(), *given[i].type);
    }
    out_.writer.op("stablehlo.while", made, given, out_.location)
        .region(tested,
                [&] {
                  out_.writer.terminate({{of_any(tested[0].value), kTruth}});
                })
        .region(repeated, [&] { write_turn(repeated); })
        .done();
  }

 private:
  static inline const TensorType kTruth{DType::bool_, {}}, kNumber{DType::i32, {}};

  SsaValue goes_on(const std::vector<SsaValue>& values, std::optional<SsaValue> taken) {
    std::vector<SsaValue> given(values.begin(),
                                values.begin() + static_cast<std::ptrdiff_t>(tests_));
    SsaValue own = out_.bodies->write_taken(kCondition, given, taken)[0];
    if (!taken) return own;
    SsaValue both = out_.writer.temporary();
    out_.writer.elementwise("stablehlo.and", both, {own, *taken}, kTruth);
    return both;
  }

  // Whether any device goes on.
  SsaValue of_any(SsaValue own) {
    SsaValue number = out_.writer.temporary(), most = out_.writer.temporary();
    SsaValue any = out_.writer.temporary(), zero = out_.writer.scalar(DType::i32, 0);
    out_.writer.op("stablehlo.convert", {{number, kNumber}}, {{own, kTruth}}).done();
    stablehlo::OpWriter all = out_.writer.op("stablehlo.all_reduce", {{most, kNumber}},
                                             {{number, kNumber}}, out_.location);
    internal::collective::write_groups(all, out_, out_.manual_axes).unit("use_global_device_ids");
    internal::write_reducer(all, out_, internal::kMaximum, DType::i32).done();
    out_.writer.op("stablehlo.compare", {{any, kTruth}}, {{most, kNumber}, {zero, kNumber}})
        .enumeration("comparison_direction", "comparison_direction", "GT")
        .done();
    return any;
  }

  void write_turn(const std::vector<Typed>& now) {
    std::vector<SsaValue> given, after;
    for (std::size_t i = 1; i <= carries_; ++i) given.push_back(now[i].value);
    for (std::size_t i = 1 + tests_; i < now.size(); ++i) given.push_back(now[i].value);
    const std::vector<SsaValue> next = out_.bodies->write_taken(kBody, given, now[0].value);
    std::vector<Typed> returned;
    for (std::size_t i = 1; i < now.size(); ++i) {
      const TensorType& type = *now[i].type;
      after.push_back(now[i].value);
      if (i <= carries_) {
        after.back() = out_.writer.temporary();
        out_.writer
            .op("stablehlo.select", {{after.back(), type}}, {now[0], {next[i - 1], type}, now[i]},
                out_.location)
            .done();
      }
      returned.emplace_back(after.back(), type);
    }
    returned.insert(returned.begin(), Typed(goes_on(after, now[0].value), kTruth));
    out_.writer.terminate(returned);
  }

  OpEmission& out_;
  std::size_t carries_, tests_;
};

// Captured values are carried unchanged.
void emit_while(const OpCall& call, OpEmission& out) {
  if (out.by_all_devices) return LoopByAll(call, out).write();
  std::size_t carries = carries_of(call), all = out.operands.size();
  std::size_t tests = call.as<WhileAttributes>().bodies[kCondition].num_parameters();
  std::vector<Typed> made, tested, repeated;
  for (std::size_t i = 0; i < all; ++i) {
    const TensorType& type = *out.operands[i].type;
    made.push_back(i < carries ? out.results[i] : Typed(out.writer.temporary(), type));
    tested.emplace_back(out.writer.block_argument(), type);
    repeated.emplace_back(out.writer.block_argument(), type);
  }
  auto values = [&](const std::vector<Typed>& arguments, std::size_t from, std::size_t to) {
    std::vector<SsaValue> chosen;
    for (std::size_t i = 0; i < carries; ++i) chosen.push_back(arguments[i].value);
    for (std::size_t i = from; i < to; ++i) chosen.push_back(arguments[i].value);
    return chosen;
  };
  const TensorType truth{DType::bool_, {}};
  out.writer.op("stablehlo.while", made, out.operands, out.location)
      .region(tested,
              [&] {
                SsaValue goes_on = out.bodies->write(kCondition, values(tested, carries, tests))[0];
                out.writer.terminate({{goes_on, truth}});
              })
      .region(repeated,
              [&] {
                std::vector<SsaValue> next = out.bodies->write(kBody, values(repeated, tests, all));
                std::vector<Typed> returned;
                for (std::size_t i = 0; i < all; ++i)
                  returned.emplace_back(i < carries ? next[i] : repeated[i].value,
                                        *out.operands[i].type);
                out.writer.terminate(returned);
              })
      .done();
}

// A loop for all members of a batch. It runs until the last member is done; members that are done
// keep their carries. If the condition is the same for all members, carries that they share stay
// unbatched.
class WhileBatch {
 public:
  explicit WhileBatch(const BatchCall& call)
      : call_(call),
        loop_(call.as<WhileAttributes>()),
        carries_(static_cast<std::size_t>(loop_.num_carries)),
        tests_(loop_.bodies[kCondition].num_parameters()),
        values_(std::vector<bool>(call.batched.begin(),
                                  call.batched.begin() + static_cast<std::ptrdiff_t>(carries_))) {}

  void run(std::span<Tensor> results) {
    std::vector<Tensor> made;
    TracedBodies traced;
    do {
      given_ = values_.all();
      std::vector<Tensor> first;
      for (std::size_t i = 0; i < carries_; ++i)
        first.push_back(values_[i] ? batched_operand(call_, i) : call_.operands[i]);
      BodyToTrace to_trace[2] = {
          to_trace_of(kCondition, first, [&](auto given) { return goes_on(given); }),
          to_trace_of(kBody, first, [&](auto given) { return next(given); })};
      traced = trace_bodies(first, to_trace, call_.node.where());
    } while (values_.have_changed());
    made =
        record_call(call_.node.op(),
                    make_attributes(WhileAttributes{std::move(traced.bodies), loop_.num_carries}),
                    traced.operands, call_.node.where());
    std::copy(made.begin(), made.end(), results.begin());
  }

 private:
  BodyToTrace to_trace_of(std::size_t which, const std::vector<Tensor>& first, BodyFunction f) {
    BodyToTrace to_trace{{}, std::move(f)};
    for (const Tensor& carry : first) to_trace.inputs.push_back(body_input(carry));
    for (std::size_t i = from(which); i < to(which); ++i) {
      to_trace.inputs.push_back(body_input(call_.operands[i]));
      to_trace.own.push_back(call_.operands[i]);
    }
    return to_trace;
  }
  std::size_t from(std::size_t which) const { return which == kCondition ? carries_ : tests_; }
  std::size_t to(std::size_t which) const {
    return which == kCondition ? tests_ : call_.operands.size();
  }

  BatchedResults step(std::size_t which, std::span<const Tensor> given) const {
    std::vector<bool> batched = given_;
    for (std::size_t i = from(which); i < to(which); ++i) batched.push_back(call_.batched[i]);
    return batched_body(call_, loop_.bodies[which], given, batched);
  }

  std::vector<Tensor> goes_on(std::span<const Tensor> given) {
    BatchedResults condition = step(kCondition, given);
    differs_ = condition.batched[0];
    if (differs_) {
      for (std::size_t i = 0; i < carries_; ++i) values_.set(i);
      condition.values[0] = any(condition.values[0]);
    }
    return std::move(condition.values);
  }

  std::vector<Tensor> next(std::span<const Tensor> given) {
    std::vector<Tensor> carries = values_.expected(step(kBody, given), call_.size);
    if (!differs_ || values_.is_changed()) return carries;
    // Evaluates the condition again; its captured values become operands of the body too.
    std::vector<Tensor> tested(given.begin(),
                               given.begin() + static_cast<std::ptrdiff_t>(carries_));
    for (std::size_t i = carries_; i < tests_; ++i) tested.push_back(call_.operands[i]);
    Tensor is_running = step(kCondition, tested).values[0];
    for (std::size_t i = 0; i < carries_; ++i)
      carries[i] =
          where(broadcast_in_dim(is_running, carries[i].shape(), {0}), carries[i], given[i]);
    return carries;
  }

  const BatchCall& call_;
  const WhileAttributes& loop_;
  std::size_t carries_, tests_;
  BatchedValues values_;
  std::vector<bool> given_;  // whether each carry is batched at the start of this recording
  bool differs_ = false;     // whether the condition differs between the members
};

}  // namespace

extern constinit const OpDef while_loop_op = {
    .name = "while_loop",
    .operands = "carries, captured...",
    .doc = "Runs a body that updates carried values while a condition on them is true.",
    .example =
        "while_loop([](Tensor c) { return less(sum(c), 100); }, [](Tensor c) { return add(c, 1); "
        "}, x)",
    .infer = infer_while,
    .sharding_rule = while_rule,
    .emit = emit_while,
    // The number of iterations is unknown, and so is the number of residuals.
    .vjp =
        [](const VjpCall& call, std::span<Tensor>) {
          throw Error(ErrorCode::kUnimplemented,
                      "[grad] while_loop has no derivative, and the result depends on an input "
                      "through it: use scan, or fori_loop with bounds that are numbers",
                      call.node.where());
        },
    .batch = [](const BatchCall& call,
                std::span<Tensor> results) { WhileBatch(call).run(results); },
    .annotate =
        [](const Node& node) {
          const Body& body = node.attributes_as<WhileAttributes>().bodies[kBody];
          return annotate_by_body(node, body, body.num_results());
        },
    .parse_attributes = parse_attributes<WhileAttributes>,
};

std::vector<Tensor> while_tensors(const BodyFunction& condition, const BodyFunction& body,
                                  const std::vector<Tensor>& carries, SourceLocation where) {
  where = effective_source(where);
  BodyToTrace to_trace[2] = {{{}, condition}, {{}, body}};
  for (const Tensor& carry : carries)
    for (BodyToTrace& each : to_trace) each.inputs.push_back(body_input(carry));
  std::vector<Tensor> given = carries;
  TracedBodies traced = trace_loop(given, carries.size(), to_trace, where);
  return with_effects_kept(
      record_call(while_loop_op,
                  make_attributes(WhileAttributes{std::move(traced.bodies), std::ssize(carries)}),
                  traced.operands, where),
      where);
}

}  // namespace meshard

#include "meshard/ops/scan.h"

#include "meshard/graph/body_vjp.h"
#include "meshard/graph/sharding_mark.h"
#include "meshard/graph/superseded.h"
#include "meshard/ops/all.h"
#include "meshard/ops/definition/bodies.h"
#include "meshard/ops/definition/define.h"

namespace meshard {
namespace {

using stablehlo::Typed;
using SsaValue = stablehlo::Value;

std::size_t count_of(std::int64_t number) { return static_cast<std::size_t>(number); }

TensorType stacked_type(const TensorType& slice, std::int64_t length) {
  Dimensions sizes{length};
  for (std::int64_t size : slice.shape) sizes.push_back(size);
  return {slice.dtype, Shape(std::move(sizes))};
}

TensorType slice_type(const TensorType& stacked) {
  Dimensions sizes;
  for (int d = 1; d < stacked.shape.rank(); ++d) sizes.push_back(stacked.shape[d]);
  return {stacked.dtype, Shape(std::move(sizes))};
}

void infer_scan(const OpCall& call, ResultTypes& results) {
  const auto& scan = call.as<ScanAttributes>();
  if (scan.bodies.size() != 1) call.fail("must have one body, not ", scan.bodies.size());
  if (scan.length < 0) call.fail("length = ", scan.length, " is negative");
  if (scan.unroll < 1) call.fail("unroll = ", scan.unroll, ": it must be at least 1");
  const Body& body = scan.bodies[0];
  std::size_t carries = count_of(scan.num_carries), sliced = count_of(scan.num_sliced);
  if (body.num_results() < carries)
    call.fail("the body returns ", body.num_results(), " values for ", carries, " carries");
  check_parameters(call, body, "the body", 0, 0, carries);
  std::size_t first = carries + sliced;
  if (call.operands.size() != body.num_parameters() || first > call.operands.size())
    call.fail("the body has ", body.num_parameters(), " parameters, but the call has ",
              call.operands.size(), " operands");
  for (std::size_t i = carries; i < first; ++i)
    if (call.operand(i) != stacked_type(body.parameter(i), scan.length))
      call.fail("operand ", i, " is ", call.operand(i), ", but ", scan.length, " slices of ",
                body.parameter(i), " are ", stacked_type(body.parameter(i), scan.length));
  check_parameters(call, body, "the body", first, first, call.operands.size() - first);
  for (std::size_t i = 0; i < body.num_results(); ++i) {
    if (i < carries && body.result(i) != body.parameter(i))
      call.fail("carry ", i, " enters the body as ", body.parameter(i), ", but is returned as ",
                body.result(i));
    results.push_back(i < carries ? body.result(i) : stacked_type(body.result(i), scan.length));
  }
  if (results.empty()) call.fail("the body returns nothing");
}

ShardingRule scan_rule(const OpCall& call) {
  std::vector<std::pair<std::size_t, std::size_t>> together;
  for (std::size_t i = 0; i < count_of(call.as<ScanAttributes>().num_carries); ++i)
    together.emplace_back(i, i);
  return pass_through_rule(call, together);
}

// Writes a scan as a while loop over the step number, the operands and the stacked results. With
// unroll > 1, the steps that do not fill an iteration follow the loop; a single iteration is
// written without a loop.
class ScanWriter {
 public:
  ScanWriter(const OpCall& call, OpEmission& out)
      : out_(out),
        writer_(out.writer),
        scan_(call.as<ScanAttributes>()),
        carries_(count_of(scan_.num_carries)),
        sliced_(count_of(scan_.num_sliced)) {}

  void write() {
    std::int64_t turns = scan_.length / scan_.unroll;
    std::int64_t looped = turns > 1 || scan_.unroll == 1 ? turns * scan_.unroll : 0;
    std::vector<Typed> now = given();
    if (looped > 0) now = write_loop(now, looped);
    if (looped == scan_.length) return;
    for (std::int64_t step = looped; step < scan_.length; ++step)
      now = after_step(now, index(scan_.reverse ? scan_.length - 1 - step : step));
    for (std::size_t i = 0; i < out_.results.size(); ++i)
      writer_.op("stablehlo.reshape", {out_.results[i]}, {now[place_of_result(i)]}, out_.location)
          .done();
  }

  // For a scan of length 0: there are no slices.
  void write_nothing() {
    for (std::size_t i = 0; i < out_.results.size(); ++i) {
      const Typed& result = out_.results[i];
      if (i < carries_)
        writer_.op("stablehlo.reshape", {result}, {out_.operands[i]}, out_.location).done();
      else
        writer_.splat(result.value, *result.type, 0, out_.location);
    }
  }

 private:
  static inline const TensorType kIndex{DType::i32, {}};
  static inline const TensorType kBool{DType::bool_, {}};

  SsaValue index(std::int64_t number) {
    return writer_.scalar(DType::i32, static_cast<double>(number));
  }
  std::size_t place_of_result(std::size_t i) const {
    return i < carries_ ? i : out_.operands.size() + i - carries_;
  }

  // The loop's values: the operands, and the stacked results.
  std::vector<Typed> given() {
    std::vector<Typed> all(out_.operands.begin(), out_.operands.end());
    for (std::size_t i = carries_; i < out_.results.size(); ++i) {
      SsaValue zeros = writer_.temporary();
      writer_.splat(zeros, *out_.results[i].type, 0, out_.location);
      all.emplace_back(zeros, *out_.results[i].type);
    }
    return all;
  }

  // Writes the loop and returns the values after it. If the loop is the whole scan, it writes to
  // the scan's results directly.
  std::vector<Typed> write_loop(const std::vector<Typed>& values, std::int64_t steps) {
    std::vector<Typed> given{{index(0), kIndex}}, made{{writer_.temporary(), kIndex}};
    for (const Typed& value : values) {
      given.push_back(value);
      made.emplace_back(writer_.temporary(), *value.type);
    }
    if (steps == scan_.length)
      for (std::size_t i = 0; i < out_.results.size(); ++i)
        made[1 + place_of_result(i)] = out_.results[i];
    std::vector<Typed> tested = block_arguments(given), repeated = block_arguments(given);
    writer_.op("stablehlo.while", made, given, out_.location)
        .region(tested, [&] { write_condition(tested[0].value, steps); })
        .region(repeated, [&] { write_turn(repeated); })
        .done();
    return {made.begin() + 1, made.end()};
  }

  std::vector<Typed> block_arguments(const std::vector<Typed>& like) {
    std::vector<Typed> arguments;
    for (const Typed& each : like) arguments.emplace_back(writer_.block_argument(), *each.type);
    return arguments;
  }

  void write_condition(SsaValue step, std::int64_t steps) {
    SsaValue length = index(steps);
    SsaValue goes_on = writer_.temporary();
    writer_
        .op("stablehlo.compare", {{goes_on, kBool}}, {{step, kIndex}, {length, kIndex}},
            out_.location)
        .enumeration("comparison_direction", "comparison_direction", "LT")
        .done();
    writer_.terminate({{goes_on, kBool}});
  }

  SsaValue binary(std::string_view mnemonic, SsaValue a, SsaValue b) {
    SsaValue result = writer_.temporary();
    writer_.elementwise(mnemonic, result, {a, b}, kIndex, out_.location);
    return result;
  }

  void write_turn(const std::vector<Typed>& arguments) {
    SsaValue step = arguments[0].value;
    std::vector<Typed> now(arguments.begin() + 1, arguments.end());
    for (std::int64_t i = 0; i < scan_.unroll; ++i) {
      SsaValue at = step;
      if (scan_.reverse) at = binary("stablehlo.subtract", index(scan_.length - 1), step);
      now = after_step(now, at);
      step = binary("stablehlo.add", step, index(1));
    }
    now.insert(now.begin(), Typed(step, kIndex));
    writer_.terminate(now);
  }

  // Writes one step with the slices at index `at`.
  std::vector<Typed> after_step(const std::vector<Typed>& now, SsaValue at) {
    SsaValue zero = index(0);
    std::size_t operands = out_.operands.size();
    std::vector<SsaValue> values;
    for (std::size_t i = 0; i < operands; ++i) {
      bool is_sliced = i >= carries_ && i < carries_ + sliced_;
      values.push_back(is_sliced ? slice(now[i], at, zero) : now[i].value);
    }
    std::vector<SsaValue> results = out_.bodies->write(0, values);
    std::vector<Typed> next = now;
    for (std::size_t i = 0; i < results.size(); ++i) {
      Typed& place = next[place_of_result(i)];
      place = Typed(i < carries_ ? results[i] : updated(place, results[i], at, zero), *place.type);
    }
    return next;
  }

  std::vector<Typed> starts(const TensorType& type, SsaValue at, SsaValue zero) {
    std::vector<Typed> all;
    for (int d = 0; d < type.shape.rank(); ++d) all.emplace_back(d == 0 ? at : zero, kIndex);
    return all;
  }

  static TensorType row_type(const TensorType& stacked) {
    TensorType row = stacked;
    Dimensions sizes = stacked.shape.sizes();
    sizes[0] = 1;
    row.shape = Shape(std::move(sizes));
    return row;
  }

  SsaValue slice(const Typed& stacked, SsaValue at, SsaValue zero) {
    TensorType row = row_type(*stacked.type), type = slice_type(*stacked.type);
    SsaValue cut = writer_.temporary(), value = writer_.temporary();
    std::vector<Typed> operands{stacked};
    for (const Typed& start : starts(*stacked.type, at, zero)) operands.push_back(start);
    writer_.op("stablehlo.dynamic_slice", {{cut, row}}, operands, out_.location)
        .i64_array("slice_sizes", row.shape)
        .done();
    writer_.op("stablehlo.reshape", {{value, type}}, {{cut, row}}, out_.location).done();
    return value;
  }

  SsaValue updated(const Typed& stack, SsaValue value, SsaValue at, SsaValue zero) {
    TensorType row = row_type(*stack.type), type = slice_type(*stack.type);
    SsaValue reshaped = writer_.temporary(), result = writer_.temporary();
    writer_.op("stablehlo.reshape", {{reshaped, row}}, {{value, type}}, out_.location).done();
    std::vector<Typed> operands{stack, {reshaped, row}};
    for (const Typed& start : starts(*stack.type, at, zero)) operands.push_back(start);
    writer_.op("stablehlo.dynamic_update_slice", {{result, *stack.type}}, operands, out_.location)
        .done();
    return result;
  }

  OpEmission& out_;
  stablehlo::ModuleWriter& writer_;
  const ScanAttributes& scan_;
  std::size_t carries_, sliced_;
};

// The derivative of a scan. It consists of the loop with the residuals as further results, and a
// loop in the opposite direction that carries the cotangents of the carries and the sums of the
// cotangents of captured values.
class ScanVjp {
 public:
  explicit ScanVjp(const VjpCall& call)
      : call_(call),
        scan_(call.as<ScanAttributes>()),
        body_(scan_.bodies[0]),
        carries_(count_of(scan_.num_carries)),
        captures_(carries_ + count_of(scan_.num_sliced)) {}

  void run(std::span<Tensor> out) {
    differentiate();
    keep();
    ScanCall back{{}, {}, scan_.length, !scan_.reverse, scan_.unroll};
    for (std::size_t i : carried_) {
      const Tensor& cotangent = call_.cotangents[i];
      back.carries.push_back(cotangent.defined() ? cotangent : zero_cotangent(call_.results[i]));
    }
    for (std::size_t i : summed_) back.carries.push_back(zero_cotangent(call_.operands[i]));
    for (std::size_t i = carries_; i < has_cotangent_.size(); ++i)
      if (has_cotangent_[i]) back.sliced.push_back(call_.cotangents[i]);
    num_cotangents_ = back.sliced.size();
    for (const BodyVjp::Residual& residual : vjp_.residuals)
      if (residual.saved)
        back.sliced.push_back(kept_[residual.index]);
      else if (residual.index < captures_)
        back.sliced.push_back(call_.operands[residual.index]);
    std::vector<Tensor> results = scan_tensors(
        back, [&](std::span<const Tensor> given) { return step(given); }, call_.node.where());
    for (std::size_t i = 0; i < carried_.size(); ++i) out[carried_[i]] = results[i];
    std::size_t next = carried_.size();
    for (std::size_t i : summed_) out[i] = results[next++];
    for (std::size_t i : stacked_) out[i] = results[next++];
  }

 private:
  void differentiate() {
    std::vector<bool> wanted;
    std::vector<InBackward> back;
    for (std::size_t i = 0; i < body_.num_parameters(); ++i) {
      bool carry = i < carries_;
      wanted.push_back(is_inexact(body_.parameter(i).dtype) && (carry || call_.needs(i)));
      if (wanted.back()) (carry ? carried_ : i < captures_ ? stacked_ : summed_).push_back(i);
      back.push_back(carry           ? InBackward::kUnavailable
                     : i < captures_ ? InBackward::kAvailable
                                     : InBackward::kInvariant);
    }
    for (std::size_t i = 0; i < body_.num_results(); ++i)
      has_cotangent_.push_back(i < carries_ ? is_inexact(body_.result(i).dtype)
                                            : call_.cotangents[i].defined());
    vjp_ = call_.bodies->differentiate(body_, has_cotangent_, wanted, back, {}, call_.node.where());
  }

  // Records the loop with the residuals as further results.
  void keep() {
    if (vjp_.forward.num_results() == body_.num_results()) return;
    ScanAttributes more = scan_;
    more.bodies = {vjp_.forward};
    more.extends = extension_key(*call_.node.attributes(), body_.num_results());
    internal::InheritSource forward_pass(call_.node.where());
    kept_ = record_call(call_.node.op(), make_attributes(std::move(more)), call_.operands,
                        call_.node.where());
  }

  // One backward step, from the cotangents of the carries, sums, cotangents of slices, and
  // residuals.
  std::vector<Tensor> step(std::span<const Tensor> given) {
    std::span<const Tensor> sums = given.subspan(carried_.size(), summed_.size());
    std::span<const Tensor> rest = given.subspan(carried_.size() + summed_.size());
    std::vector<Tensor> arguments(given.begin(),
                                  given.begin() + static_cast<std::ptrdiff_t>(carried_.size()));
    std::size_t next = 0;
    while (next < num_cotangents_) arguments.push_back(rest[next++]);
    for (const BodyVjp::Residual& residual : vjp_.residuals)
      arguments.push_back(residual.saved || residual.index < captures_
                              ? rest[next++]
                              : call_.operands[residual.index]);
    arguments.insert(arguments.end(), vjp_.captured.begin(), vjp_.captured.end());
    // In the order of the parameters: carries, slices, captured values.
    std::vector<Tensor> cotangents = inlined(vjp_.backward, arguments), results;
    std::size_t slices = carried_.size() + stacked_.size();
    for (std::size_t i = 0; i < carried_.size(); ++i) results.push_back(cotangents[i]);
    for (std::size_t i = 0; i < summed_.size(); ++i)
      results.push_back(add(sums[i], cotangents[slices + i]));
    for (std::size_t i = 0; i < stacked_.size(); ++i)
      results.push_back(cotangents[carried_.size() + i]);
    return results;
  }

  const VjpCall& call_;
  const ScanAttributes& scan_;
  const Body& body_;
  std::size_t carries_, captures_;                       // first operand after carries / slices
  std::vector<std::size_t> carried_, summed_, stacked_;  // operands with a cotangent
  std::vector<bool> has_cotangent_;
  std::size_t num_cotangents_ = 0;  // of stacked results
  BodyVjp vjp_;
  std::vector<Tensor> kept_;
};

// The body's input for a sliced operand.
BodyInput slice_input(const Tensor& sliced) {
  BodyInput input{slice_type(sliced.type()), std::nullopt, sliced.where()};
  if (std::optional<Sharding> sharding = specified_sharding(sliced))
    input.sharding = slice_sharding(*sharding);
  return input;
}

// Exchanges the batch with the slices' dimension.
Tensor with_first_two_exchanged(const Tensor& x) {
  Dimensions order{1, 0};
  for (std::int64_t d = 2; d < x.rank(); ++d) order.push_back(d);
  return permute_dims(x, order);
}

// A carry is batched if the members' initial values differ, or if a step makes it batched.
void scan_batch(const BatchCall& call, std::span<Tensor> results) {
  const auto& scan = call.as<ScanAttributes>();
  const Body& body = scan.bodies[0];
  std::size_t carries = count_of(scan.num_carries), first = carries + count_of(scan.num_sliced);
  std::vector<bool> begin(results.size(), false);
  for (std::size_t i = 0; i < carries; ++i) begin[i] = call.batched[i];
  BatchedValues values(std::move(begin));
  TracedBodies traced;
  do {
    std::vector<bool> batched(call.batched.begin(), call.batched.end());
    BodyToTrace to_trace{{}, [&](std::span<const Tensor> given) {
                           return values.expected(batched_body(call, body, given, batched),
                                                  call.size);
                         }};
    std::vector<Tensor> operands;
    for (std::size_t i = 0; i < call.operands.size(); ++i) {
      if (i < carries) batched[i] = values[i];
      bool is_sliced = i >= carries && i < first;
      Tensor operand = i < carries && batched[i] ? batched_operand(call, i) : call.operands[i];
      if (is_sliced && batched[i]) operand = with_first_two_exchanged(operand);
      to_trace.inputs.push_back(body_input(operand));
      if (is_sliced) to_trace.inputs.back() = slice_input(operand);
      operands.push_back(std::move(operand));
    }
    traced = trace_bodies(operands, {&to_trace, 1}, call.node.where());
  } while (values.have_changed());
  ScanAttributes attributes = scan;
  attributes.bodies = std::move(traced.bodies);
  attributes.extends = extends_batched(attributes, scan.extends);
  std::vector<Tensor> made = record_call(call.node.op(), make_attributes(std::move(attributes)),
                                         traced.operands, call.node.where());
  for (std::size_t i = 0; i < results.size(); ++i)
    results[i] = i < carries || !values[i] ? made[i] : with_first_two_exchanged(made[i]);
}

}  // namespace

extern constinit const OpDef scan_op = {
    .name = "scan",
    .operands = "carries, sliced, captured...",
    .doc =
        "Runs a body once per slice of arrays and updates carried values; the results are the last "
        "carried values and the body's other results, stacked.",
    .example =
        "scan([](Tensor c, Tensor row) { return std::pair(add(c, row), c); }, zeros({3}), x).first",
    .infer = infer_scan,
    .sharding_rule = scan_rule,
    .emit =
        [](const OpCall& call, OpEmission& out) {
          ScanWriter writer(call, out);
          call.as<ScanAttributes>().length == 0 ? writer.write_nothing() : writer.write();
        },
    .vjp = [](const VjpCall& call, std::span<Tensor> out) { ScanVjp(call).run(out); },
    .batch = scan_batch,
    .annotate =
        [](const Node& node) {
          const auto& scan = node.attributes_as<ScanAttributes>();
          return annotate_by_body(node, scan.bodies[0], count_of(scan.num_carries));
        },
    .parse_attributes = parse_attributes<ScanAttributes>,
};

std::vector<Tensor> scan_tensors(const ScanCall& call, const BodyFunction& body,
                                 SourceLocation where) {
  where = effective_source(where);
  std::vector<Tensor> given = call.carries;
  BodyToTrace to_trace{{}, body};
  for (const Tensor& carry : call.carries) to_trace.inputs.push_back(body_input(carry));
  for (const Tensor& sliced : call.sliced) {
    const TensorType& type = sliced.type(where);
    if (type.shape.rank() == 0 || type.shape[0] != call.length)
      throw_invalid(where, "[scan] ", type, " made at ", sliced.where(), " does not have ",
                    call.length, " slices along its first dimension");
    to_trace.inputs.push_back(slice_input(sliced));
    given.push_back(sliced);
  }
  TracedBodies traced = trace_loop(given, call.carries.size(), {&to_trace, 1}, where);
  ScanAttributes attributes{.bodies = std::move(traced.bodies),
                            .length = call.length,
                            .num_carries = std::ssize(call.carries),
                            .num_sliced = std::ssize(call.sliced),
                            .reverse = call.reverse,
                            .unroll = call.unroll,
                            .extends = {}};
  return with_effects_kept(
      record_call(scan_op, make_attributes(std::move(attributes)), traced.operands, where), where);
}

}  // namespace meshard

// Compares an op's vjp with finite differences, both computed by the interpreter.
#pragma once
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <vector>

#include "meshard/graph/leaf.h"
#include "meshard/graph/op_def.h"
#include "tests/support/interpreter.h"
#include "tests/support/op_samples/op_samples.h"

namespace meshard {

/// The cotangents of `result`'s node for `cotangent`, one per operand; undefined means zero. Those
/// of the operands before `first` are not requested.
inline std::vector<Tensor> recorded_vjp(const Tensor& result, const Tensor& cotangent,
                                        std::size_t first = 0) {
  const Node& node = *result.value().node();
  std::vector<Tensor> operands, out(node.operands().size());
  for (const Value& operand : node.operands()) operands.emplace_back(operand);
  std::unique_ptr<bool[]> needed(new bool[operands.size() + 1]);
  for (std::size_t i = 0; i < operands.size(); ++i)
    needed[i] = i >= first && is_floating(operands[i].dtype());
  VjpCall call{.node = node,
               .operands = operands,
               .results = {&result, 1},
               .cotangents = {&cotangent, 1},
               .needed = {needed.get(), operands.size()}};
  node.op().vjp(call, out);
  for (std::size_t i = 0; i < out.size(); ++i)
    if (out[i].defined() && needed[i]) {
      EXPECT_EQ(out[i].type(), operands[i].type()) << node.op().name << " operand " << i;
    }
  return out;
}

/// Checks each f64 sample of `op` that requests it: every element of every cotangent against a
/// central difference. The sample's call must record `op` itself last, possibly after broadcasts.
/// Operands before `first` have no derivative.
inline void check_vjp(const OpDef& op, std::size_t first = 0) {
  SampleSource source(1);
  int checked = 0;
  for (const OpSample& sample : samples_of(op, source)) {
    bool all_f64 = !sample.inputs.empty();
    bool any_f64 = false;
    for (const HostArray& input : sample.inputs) {
      all_f64 &= !is_floating(input.dtype()) || input.dtype() == DType::f64;
      any_f64 |= input.dtype() == DType::f64;
    }
    if (!sample.check_vjp || !all_f64 || !any_f64) continue;
    SCOPED_TRACE(std::string(op.name) + ", sample " + sample.name);
    std::vector<Tensor> inputs;
    for (const HostArray& input : sample.inputs) inputs.push_back(from_host(input));
    Tensor result = sample.call(inputs);
    ASSERT_EQ(result.value()->op().name, op.name);
    // Finite differences of the op's own operands, because broadcasts have their own vjp.
    std::vector<HostArray> at;
    for (const Value& operand : result.value()->operands())
      at.push_back(interpret(Tensor(operand)));
    HostArray weights = source.uniform(DType::f64, result.shape(), 0.5, 1.5);
    std::vector<Tensor> cotangents = recorded_vjp(result, from_host(weights), first);
    auto loss = [&](std::vector<HostArray> operands) {
      std::vector<Tensor> tensors;
      for (HostArray& operand : operands) tensors.push_back(from_host(operand));
      Node* node = Node::make(op, nullptr, 0, {});
      Value value(node);
      for (const Tensor& tensor : tensors) node->add_operand(tensor.value());
      node->add_output(result.type());
      HostArray out = interpret(Tensor(value));
      double sum = 0;
      for (std::int64_t i = 0; i < out.size(); ++i)
        sum += out.data<double>()[static_cast<std::size_t>(i)] *
               weights.data<double>()[static_cast<std::size_t>(i)];
      return sum;
    };
    for (std::size_t k = first; k < at.size(); ++k) {
      if (!is_floating(at[k].dtype())) continue;
      std::vector<double> values = at[k].to_vector<double>();
      std::vector<double> got(values.size(), 0.0);
      if (cotangents[k].defined()) got = interpret(cotangents[k]).to_vector<double>();
      for (std::size_t i = 0; i < values.size(); ++i) {
        constexpr double kStep = 1e-6;
        auto moved = [&](double by) {
          std::vector<double> copy = values;
          copy[i] += by;
          std::vector<HostArray> operands = at;
          operands[k] = HostArray::from_vector(std::move(copy), at[k].shape());
          return loss(std::move(operands));
        };
        double expected = (moved(kStep) - moved(-kStep)) / (2 * kStep);
        EXPECT_NEAR(got[i], expected, 1e-6 * (1 + std::abs(expected)))
            << "operand " << k << " element " << i << " = " << values[i];
        ++checked;
      }
    }
  }
  EXPECT_GT(checked, 0) << op.name << " has no f64 sample";
}

}  // namespace meshard

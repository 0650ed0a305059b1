#include "meshard/nn/recurrent.h"

#include <gmock/gmock.h>

#include <cmath>

#include "meshard/autodiff/grad.h"
#include "meshard/nn/nn_testutil.h"
#include "tests/support/matchers.h"

namespace meshard::nn {
namespace {

using Cells = OnPlugin;

constexpr int kIn = 3, kFeatures = 2, kBatch = 2, kTime = 4;

double logistic_of(double x) { return 1 / (1 + std::exp(-x)); }

// x weight[:, gate] + bias for one row, feature k.
double input_part(const Numbers& weight, const Numbers& bias, const Numbers& xs, int b, int t,
                  int gate, int k) {
  double total = bias({gate, k});
  for (int i = 0; i < kIn; ++i) total += xs({b, t, i}) * weight({i, gate, k});
  return total;
}
double state_part(const Numbers& weight, const std::vector<double>& state, int gate, int k) {
  double total = 0;
  for (int i = 0; i < kFeatures; ++i)
    total += state[static_cast<std::size_t>(i)] * weight({i, gate, k});
  return total;
}

LstmCell varied_lstm() {
  return {varied({kIn, 4, kFeatures}), varied({kFeatures, 4, kFeatures}, 1, 5),
          varied({4, kFeatures}, 1, 8)};
}
GruCell varied_gru() {
  return {varied({kIn, 3, kFeatures}), varied({kFeatures, 3, kFeatures}, 1, 5),
          varied({3, kFeatures}, 1, 8), varied({kFeatures}, 1, 2)};
}

TEST_F(Cells, AreTheirFormulas) {
  LstmCell lstm = varied_lstm();
  GruCell gru = varied_gru();
  SimpleCell simple{varied({kIn, kFeatures}), varied({kFeatures, kFeatures}, 1, 5),
                    varied({kFeatures}, 1, 8)};
  Tensor xs = varied({kBatch, kTime, kIn}, 2, 3);
  Numbers in(xs), lstm_in(lstm.input), lstm_own(lstm.recurrent), lstm_bias(lstm.bias);
  Numbers gru_in(gru.input), gru_own(gru.recurrent), gru_bias(gru.bias), gru_new(gru.new_bias);
  Numbers simple_in(reshape(simple.input, {kIn, 1, kFeatures}));
  Numbers simple_own(reshape(simple.recurrent, {kFeatures, 1, kFeatures}));
  Numbers simple_bias(reshape(simple.bias, {1, kFeatures}));
  std::vector<double> of_lstm, of_gru, of_simple, cells;
  for (int b = 0; b < kBatch; ++b) {
    std::vector<double> c(kFeatures), h(kFeatures), g(kFeatures), s(kFeatures);
    for (int t = 0; t < kTime; ++t) {
      std::vector<double> next_h(kFeatures), next_g(kFeatures), next_s(kFeatures);
      for (int k = 0; k < kFeatures; ++k) {
        auto at = static_cast<std::size_t>(k);
        double gates[4];
        for (int i = 0; i < 4; ++i)
          gates[i] = input_part(lstm_in, lstm_bias, in, b, t, i, k) + state_part(lstm_own, h, i, k);
        c[at] = logistic_of(gates[1]) * c[at] + logistic_of(gates[0]) * std::tanh(gates[2]);
        next_h[at] = logistic_of(gates[3]) * std::tanh(c[at]);
        double own[3], given[3];
        for (int i = 0; i < 3; ++i) {
          given[i] = input_part(gru_in, gru_bias, in, b, t, i, k);
          own[i] = state_part(gru_own, g, i, k);
        }
        double z = logistic_of(given[1] + own[1]);
        double n = std::tanh(given[2] + logistic_of(given[0] + own[0]) * (own[2] + gru_new({k})));
        next_g[at] = (1 - z) * n + z * g[at];
        next_s[at] = std::tanh(input_part(simple_in, simple_bias, in, b, t, 0, k) +
                               state_part(simple_own, s, 0, k));
      }
      h = next_h, g = next_g, s = next_s;
      of_lstm.insert(of_lstm.end(), h.begin(), h.end());
      of_gru.insert(of_gru.end(), g.begin(), g.end());
      of_simple.insert(of_simple.end(), s.begin(), s.end());
    }
    cells.insert(cells.end(), c.begin(), c.end());
  }
  auto [lstm_out, lstm_last] = rnn(lstm, xs);
  expect_near(lstm_out, of_lstm);
  expect_near(lstm_last.cell, cells);
  expect_same(lstm_last.hidden, index(lstm_out, {whole, -1}));
  auto [gru_out, gru_last] = rnn(gru, xs);
  expect_near(gru_out, of_gru);
  expect_same(gru_last, index(gru_out, {whole, -1}));
  expect_near(rnn(simple, xs).first, of_simple);
  // The steps one by one, and other batch dimensions.
  Tensor state = zeros({kBatch, kFeatures});
  for (int t = 0; t < kTime; ++t) state = gru_cell(gru, state, index(xs, {whole, t}));
  expect_same(state, gru_last);
  expect_near(rnn(gru, reshape(xs, {1, kBatch, 1, kTime, kIn})).first, of_gru);
  expect_same(rnn(simple, index(xs, {1})).first, index(rnn(simple, xs).first, {1}));
}

// A sequence with padding, in either direction, is that of the sequence without it.
TEST_F(Cells, KeepTheirStateAtPadding) {
  LstmCell cell = varied_lstm();
  Tensor xs = varied({kBatch, kTime, kIn}, 2, 3);
  Tensor lengths = from_host(std::vector<std::int32_t>{2, kTime}, {kBatch});
  Tensor padded =
      where(reshape(arange(kTime), {1, kTime, 1}) < reshape(lengths, {kBatch, 1, 1}), xs, 1e30);
  LstmState initial{varied({kBatch, kFeatures}, 1, 7), varied({kBatch, kFeatures}, 1, 8)};
  for (bool reverse : {false, true}) {
    auto [outputs, last] = rnn(cell, padded, initial, {.reverse = reverse, .lengths = lengths});
    LstmState first{index(initial.cell, {range(0, 1)}), index(initial.hidden, {range(0, 1)})};
    auto [short_outputs, short_last] =
        rnn(cell, index(xs, {range(0, 1), range(0, 2)}), first, {.reverse = reverse});
    expect_same(index(outputs, {range(0, 1), range(0, 2)}), short_outputs);
    expect_same(index(last.cell, {range(0, 1)}), short_last.cell);
    expect_near(index(outputs, {0, range(2, none)}), std::vector<double>(2 * kFeatures, 0));
    auto [whole_outputs, whole_last] = rnn(cell, xs, initial, {.reverse = reverse});
    expect_same(index(outputs, {1}), index(whole_outputs, {1}));
    expect_same(index(last.hidden, {1}), index(whole_last.hidden, {1}));
    if (reverse) expect_same(index(last.hidden, {1}), index(outputs, {1, 0}));
  }
}

TEST_F(Cells, ShardedAreTheSame) {
  AxisRules rules(Mesh({{"data", 2}, {"model", 4}}), {{"batch", "data"}, {"hidden", "model"}});
  auto made = [](Maker& make) {
    return std::tuple(make_lstm_cell(make, kIn, 8), make_gru_cell(make, 8, 8),
                      make_simple_cell(make, 8, 8));
  };
  auto one = create({}, 3, made), eight = create(rules, 3, made);
  EXPECT_EQ(std::get<0>(eight).recurrent.sharding()->spec(), P(none, none, "model"));
  EXPECT_EQ(std::get<1>(eight).new_bias.sharding()->spec(), P("model"));
  // Each gate's matrix is orthogonal by itself.
  for (int i = 0; i < 4; ++i) {
    Tensor matrix = index(std::get<0>(one).recurrent, {whole, i});
    expect_same(matmul(matrix_transpose(matrix), matrix), eye(8), 1e-5);
  }
  auto loss = [](const decltype(one)& cells, const Tensor& xs) {
    Tensor x = rnn(std::get<0>(cells), xs).first;
    x = rnn(std::get<1>(cells), x, {}, {.reverse = true}).first;
    return sum(square(rnn(std::get<2>(cells), x).first));
  };
  // An uneven batch.
  Tensor xs = varied({3, kTime, kIn});
  auto both = jit(value_and_grad<0, 1>(loss));
  auto [value, gradients] = both(one, xs);
  auto [same_value, same_gradients] = both(eight, rules.mark(xs, P("batch")));
  EXPECT_NEAR(value.item<float>(), same_value.item<float>(), 1e-5);
  expect_same(std::get<0>(std::get<0>(same_gradients)).recurrent,
              std::get<0>(std::get<0>(gradients)).recurrent, 1e-5);
  expect_same(std::get<1>(same_gradients), std::get<1>(gradients), 1e-5);
}

TEST_F(Cells, RefuseWhatDoesNotFit) {
  GruCell gru = varied_gru();
  auto refused = [&](const Tensor& xs, const std::optional<Tensor>& initial, const Tensor& lengths,
                     const std::vector<std::string>& words) {
    return throws_error([&] { rnn(gru, xs, initial, {.lengths = lengths}); },
                        ErrorCode::kInvalidArgument, words);
  };
  EXPECT_TRUE(refused(ones({3}), {}, {}, {"recurrent_test.cc:", "f32[3]"}));
  EXPECT_TRUE(refused(ones({2, 4, 5}), {}, {}, {"f32[2,4,5]", "f32[3,3,2]"}));
  EXPECT_TRUE(refused(ones({2, 4, 3}), ones({2, 4}), {}, {"state f32[2,4]", "[2, 2]"}));
  EXPECT_TRUE(refused(ones({2, 4, 3}), {}, ones({2}), {"lengths are f32[2]", "[2]"}));
  EXPECT_TRUE(refused(ones({2, 4, 3}), {}, full({3}, 1, DType::i32), {"lengths are i32[3]"}));
  Maker make{AxisRules()};
  EXPECT_TRUE(throws_error([&] { make_lstm_cell(make, 0, 4); }, ErrorCode::kInvalidArgument,
                           {"0 inputs", "4 features"}));
}

}  // namespace
}  // namespace meshard::nn

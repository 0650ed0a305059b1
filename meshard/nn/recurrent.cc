#include "meshard/nn/recurrent.h"

#include <vector>

#include "meshard/base/error.h"
#include "meshard/graph/record.h"
#include "meshard/nn/linear.h"
#include "meshard/ops/all.h"

namespace meshard::nn {
namespace {

// An initializer of [in, gates, out] from one of matrices.
Initializer of_each_gate(const Initializer& of_matrix, std::int64_t gates) {
  return [of_matrix, gates](const Tensor& key, const Shape& shape, const Fans& fans, DType dtype) {
    std::vector<Tensor> each;
    for (const Tensor& own : random::split(key, gates))
      each.push_back(of_matrix(own, Shape{shape[0], shape[2]}, fans, dtype));
    return stack(each, 1);
  };
}

struct Weights {
  Tensor input, recurrent, bias;
};

Weights made_weights(Maker& make, const char* name, std::int64_t in, std::int64_t features,
                     std::int64_t gates, const CellOptions& options) {
  if (in < 1 || features < 1)
    throw_invalid(SourceLocation{}, "[nn.", name, "] ", in, " inputs and ", features,
                  " features must be positive");
  Weights made;
  made.input = make({in, gates, features}, P(options.in, none, options.out),
                    of_each_gate(options.input, gates), {in, features});
  made.recurrent = make({features, gates, features}, P(none, none, options.out),
                        of_each_gate(options.recurrent, gates), {features, features});
  made.bias = make({gates, features}, P(none, options.out), init::zeros());
  return made;
}

// x [..., n] by weight [n, ...].
Tensor product(const Tensor& x, const Tensor& weight) {
  return tensordot(x, match_dtype(weight, x), {x.rank() - 1}, {0});
}
template <class Cell>
Tensor of_input(const Cell& cell, const Tensor& x) {
  return product(x, cell.input) + match_dtype(cell.bias, x);
}

// [..., gates, features] without the gates.
Tensor gate(const Tensor& all, int i) { return index(all, {ellipsis, i, whole}); }

// The steps, from what of_input() gives.
Tensor step(const SimpleCell& cell, const Tensor& state, const Tensor& given) {
  return tanh(given + product(state, cell.recurrent));
}
LstmState step(const LstmCell& cell, const LstmState& state, const Tensor& given) {
  Tensor gates = given + product(state.hidden, cell.recurrent);
  Tensor next =
      logistic(gate(gates, 1)) * state.cell + logistic(gate(gates, 0)) * tanh(gate(gates, 2));
  return {next, logistic(gate(gates, 3)) * tanh(next)};
}
Tensor step(const GruCell& cell, const Tensor& state, const Tensor& given) {
  Tensor own = product(state, cell.recurrent);
  Tensor reset = logistic(gate(given, 0) + gate(own, 0));
  Tensor update = logistic(gate(given, 1) + gate(own, 1));
  Tensor fresh = tanh(gate(given, 2) + reset * (gate(own, 2) + match_dtype(cell.new_bias, own)));
  return (1 - update) * fresh + update * state;
}

const Tensor& output_of(const Tensor& state) { return state; }
const Tensor& output_of(const LstmState& state) { return state.hidden; }

Dimensions without_last(const Shape& shape, int count) {
  Dimensions sizes;
  for (int d = 0; d < shape.rank() - count; ++d) sizes.push_back(shape[d]);
  return sizes;
}

template <class Cell>
std::int64_t features_of(const Cell& cell) {
  return cell.recurrent.dim(-1);
}

template <class Cell>
void check_input(std::string_view name, const Cell& cell, const Tensor& x, int least_rank) {
  if (x.rank() < least_rank || x.dim(-1) != cell.input.dim(0))
    throw_invalid(x.where(), "[nn.", name, "] takes [", "batch..., ",
                  least_rank == 2 ? "time, " : "", cell.input.dim(0),
                  "] for a cell whose input weight is ", cell.input.type(), ", not ", x.type());
}

template <class State>
void check_state(std::string_view name, const State& state, const Dimensions& batch,
                 std::int64_t features) {
  Dimensions sizes = batch;
  sizes.push_back(features);
  Shape wanted(std::move(sizes));
  for (const Tensor& each : structure::tensors(state))
    if (each.shape() != wanted)
      throw_invalid(each.where(), "[nn.", name, "] the state ", each.type(),
                    " does not have the shape [batch..., features] = ", wanted);
}

// True at positions that are not padding: [time, batch..., 1].
Tensor counted(const Tensor& lengths, std::int64_t time, const Dimensions& batch) {
  if (lengths.shape() != Shape(batch) || !is_integer(lengths.dtype()))
    throw_invalid(lengths.where(), "[nn.rnn] lengths are ", lengths.type(),
                  ", not one integer for each sequence, ", Shape(batch));
  Dimensions along(batch.size() + 1, 1);
  along[0] = time;
  Tensor place = reshape(arange(time), Shape(std::move(along)));
  return expand_dims(place < expand_dims(lengths, 0), -1);
}

template <class State, class Cell>
std::pair<Tensor, State> over_time(const Cell& cell, const Tensor& xs, const State& first,
                                   const RnnOptions& options) {
  int batch_rank = xs.rank() - 2;
  std::vector<Tensor> slices{moveaxis(of_input(cell, xs), batch_rank, 0)};
  if (options.lengths.defined())
    slices.push_back(counted(options.lengths, xs.dim(-2), without_last(xs.shape(), 2)));
  auto body = [&](const State& state, const std::vector<Tensor>& now) {
    State next = step(cell, state, now[0]);
    if (now.size() == 1) return std::pair(next, Tensor(output_of(next)));
    std::vector<Tensor> kept = structure::tensors(next), before = structure::tensors(state);
    for (std::size_t i = 0; i < kept.size(); ++i)
      kept[i] = meshard::where(now[1], kept[i], before[i]);
    Tensor output = meshard::where(now[1], output_of(next), 0);
    return std::pair(structure::with_tensors(next, kept), output);
  };
  auto [last, outputs] =
      scan(body, first, slices, {.reverse = options.reverse, .unroll = options.unroll});
  return {moveaxis(outputs, 0, batch_rank), last};
}

template <class Cell>
Tensor zero_state(const Cell& cell, const Tensor& xs, int dimensions_of_x) {
  Dimensions sizes = without_last(xs.shape(), dimensions_of_x);
  sizes.push_back(features_of(cell));
  return zeros(Shape(std::move(sizes)), xs.dtype());
}

template <class Cell>
std::pair<Tensor, Tensor> rnn_of_tensor(const Cell& cell, const Tensor& xs,
                                        const std::optional<Tensor>& initial,
                                        const RnnOptions& options) {
  check_input("rnn", cell, xs, 2);
  Tensor first = initial ? match_dtype(*initial, xs) : zero_state(cell, xs, 2);
  check_state("rnn", first, without_last(xs.shape(), 2), features_of(cell));
  return over_time(cell, xs, first, options);
}

template <class Cell>
Tensor one_step(std::string_view name, const Cell& cell, const Tensor& state, const Tensor& x) {
  check_input(name, cell, x, 1);
  check_state(name, state, without_last(x.shape(), 1), features_of(cell));
  return step(cell, match_dtype(state, x), of_input(cell, x));
}

}  // namespace

SimpleCell make_simple_cell(Maker& make, std::int64_t in, std::int64_t features,
                            const CellOptions& options, SourceLocation where) {
  CallScope line(where, "in nn::make_simple_cell");
  if (in < 1 || features < 1)
    throw_invalid(SourceLocation{}, "[nn.make_simple_cell] ", in, " inputs and ", features,
                  " features must be positive");
  SimpleCell cell;
  cell.input = make({in, features}, P(options.in, options.out), options.input, {in, features});
  cell.recurrent =
      make({features, features}, P(none, options.out), options.recurrent, {features, features});
  cell.bias = make({features}, P(options.out), init::zeros());
  return cell;
}

Tensor simple_cell(const SimpleCell& params, const Tensor& state, const Tensor& x,
                   SourceLocation where) {
  CallScope line(where, "in nn::simple_cell");
  return one_step("simple_cell", params, state, x);
}

LstmCell make_lstm_cell(Maker& make, std::int64_t in, std::int64_t features,
                        const CellOptions& options, SourceLocation where) {
  CallScope line(where, "in nn::make_lstm_cell");
  Weights made = made_weights(make, "make_lstm_cell", in, features, 4, options);
  return {made.input, made.recurrent, made.bias};
}

LstmState lstm_cell(const LstmCell& params, const LstmState& state, const Tensor& x,
                    SourceLocation where) {
  CallScope line(where, "in nn::lstm_cell");
  check_input("lstm_cell", params, x, 1);
  check_state("lstm_cell", state, without_last(x.shape(), 1), features_of(params));
  return step(params, {match_dtype(state.cell, x), match_dtype(state.hidden, x)},
              of_input(params, x));
}

GruCell make_gru_cell(Maker& make, std::int64_t in, std::int64_t features,
                      const CellOptions& options, SourceLocation where) {
  CallScope line(where, "in nn::make_gru_cell");
  Weights made = made_weights(make, "make_gru_cell", in, features, 3, options);
  return {made.input, made.recurrent, made.bias, make({features}, P(options.out), init::zeros())};
}

Tensor gru_cell(const GruCell& params, const Tensor& state, const Tensor& x, SourceLocation where) {
  CallScope line(where, "in nn::gru_cell");
  return one_step("gru_cell", params, state, x);
}

std::pair<Tensor, Tensor> rnn(const SimpleCell& cell, const Tensor& xs,
                              const std::optional<Tensor>& initial, const RnnOptions& options,
                              SourceLocation where) {
  CallScope line(where, "in nn::rnn");
  return rnn_of_tensor(cell, xs, initial, options);
}

std::pair<Tensor, LstmState> rnn(const LstmCell& cell, const Tensor& xs,
                                 const std::optional<LstmState>& initial, const RnnOptions& options,
                                 SourceLocation where) {
  CallScope line(where, "in nn::rnn");
  check_input("rnn", cell, xs, 2);
  LstmState first{zero_state(cell, xs, 2), zero_state(cell, xs, 2)};
  if (initial) first = {match_dtype(initial->cell, xs), match_dtype(initial->hidden, xs)};
  check_state("rnn", first, without_last(xs.shape(), 2), features_of(cell));
  return over_time(cell, xs, first, options);
}

std::pair<Tensor, Tensor> rnn(const GruCell& cell, const Tensor& xs,
                              const std::optional<Tensor>& initial, const RnnOptions& options,
                              SourceLocation where) {
  CallScope line(where, "in nn::rnn");
  return rnn_of_tensor(cell, xs, initial, options);
}

}  // namespace meshard::nn

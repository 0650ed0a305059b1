// Recurrent cells, and their loop over time.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "meshard/base/fields.h"
#include "meshard/nn/maker.h"

namespace meshard::nn {

/// Options of the functions that make recurrent cells.
struct CellOptions {
  /// The names of the input's dimension and of the features, for AxisRules.
  std::string in = "embed", out = "hidden";
  /// Initializers of the weights of the input and of the state; of each gate with a key of its own,
  /// as a matrix.
  Initializer input = init::lecun_normal(), recurrent = init::orthogonal();
};

/// The parameters of a simple (Elman) cell: input [in, features], recurrent [features, features],
/// bias [features].
struct SimpleCell {
  Tensor input, recurrent, bias;
  MESHARD_FIELDS(input, recurrent, bias)
};
SimpleCell make_simple_cell(Maker& make, std::int64_t in, std::int64_t features,
                            const CellOptions& options = {},
                            SourceLocation where = SourceLocation::current());
/// The next state: tanh(x input + bias + state recurrent). x is [batch..., in], the state
/// [batch..., features].
Tensor simple_cell(const SimpleCell& params, const Tensor& state, const Tensor& x,
                   SourceLocation where = SourceLocation::current());

/// The parameters of an LSTM cell (Hochreiter and Schmidhuber: Long Short-Term Memory, 1997): input
/// [in, 4, features], recurrent [features, 4, features], bias [4, features]. The gates are input,
/// forget, cell, output.
struct LstmCell {
  Tensor input, recurrent, bias;
  MESHARD_FIELDS(input, recurrent, bias)
};
/// The state of an LSTM cell: [batch..., features] each. `hidden` is its output.
struct LstmState {
  Tensor cell, hidden;
  MESHARD_FIELDS(cell, hidden)
};
LstmCell make_lstm_cell(Maker& make, std::int64_t in, std::int64_t features,
                        const CellOptions& options = {},
                        SourceLocation where = SourceLocation::current());
/// The next state: cell' = f cell + i g, hidden' = o tanh(cell'), where i, f and o are logistic and
/// g is tanh of x input + bias + hidden recurrent.
LstmState lstm_cell(const LstmCell& params, const LstmState& state, const Tensor& x,
                    SourceLocation where = SourceLocation::current());

/// The parameters of a GRU cell (Cho et al., 2014): input [in, 3, features], recurrent [features,
/// 3, features], bias [3, features], new_bias [features]. The gates are reset, update, new.
struct GruCell {
  Tensor input, recurrent, bias, new_bias;
  MESHARD_FIELDS(input, recurrent, bias, new_bias)
};
GruCell make_gru_cell(Maker& make, std::int64_t in, std::int64_t features,
                      const CellOptions& options = {},
                      SourceLocation where = SourceLocation::current());
/// The next state: (1 - z) n + z state. r and z are logistic of x input + bias + state recurrent,
/// and n is tanh(x input + bias + r (state recurrent + new_bias)).
Tensor gru_cell(const GruCell& params, const Tensor& state, const Tensor& x,
                SourceLocation where = SourceLocation::current());

/// Options of rnn().
struct RnnOptions {
  /// Runs from the last position to the first. The results are in the order of time anyway.
  bool reverse = false;
  /// The number of positions of each sequence, integers [batch...]; the others are padding.
  /// Default (undefined): all positions.
  Tensor lengths = {};
  /// Steps per iteration of the compiled loop, as ScanOptions::unroll.
  std::int64_t unroll = 1;
};

/// A cell applied to each position of xs [batch..., time, in], as one loop of the program. Returns
/// the outputs [batch..., time, features], and the last state. `initial` is the first state; by
/// default zeros. The products with the inputs of all positions are computed before the loop.
///
/// At positions that are padding the state is kept and the output is 0, so that the last state is
/// that of the sequence's last position, or with `reverse` its first.
///
/// @code
/// auto make_cell = [](nn::Maker& make) { return nn::make_lstm_cell(make, 3, 8); };
/// nn::LstmCell cell = nn::create({}, 1, make_cell);
/// auto [outputs, state] = nn::rnn(cell, ones({2, 5, 3}));
/// outputs.shape();  // [2,5,8]
/// @endcode
/// @error invalid argument: xs of rank below 2, or of another width than the cell's input; a state
/// or lengths of another shape
std::pair<Tensor, Tensor> rnn(const SimpleCell& cell, const Tensor& xs,
                              const std::optional<Tensor>& initial = std::nullopt,
                              const RnnOptions& options = {},
                              SourceLocation where = SourceLocation::current());
std::pair<Tensor, LstmState> rnn(const LstmCell& cell, const Tensor& xs,
                                 const std::optional<LstmState>& initial = std::nullopt,
                                 const RnnOptions& options = {},
                                 SourceLocation where = SourceLocation::current());
std::pair<Tensor, Tensor> rnn(const GruCell& cell, const Tensor& xs,
                              const std::optional<Tensor>& initial = std::nullopt,
                              const RnnOptions& options = {},
                              SourceLocation where = SourceLocation::current());

}  // namespace meshard::nn

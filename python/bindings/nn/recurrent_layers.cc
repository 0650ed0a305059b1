// Recurrent cells, and adapters of weights. The classes are in python/meshard/nn/_recurrent.py and
// _lora.py.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>

#include <utility>

#include "meshard/core.h"
#include "python/bindings/arrays/tensor_argument.h"
#include "python/bindings/arrays/tensors.h"
#include "python/bindings/nn/nn.h"
#include "python/bindings/ops/op_arguments.h"

namespace nb = nanobind;

namespace meshard::python {
namespace {

template <class Cell>
void bind_cell_maker(nb::module_& nn_module, const char* name,
                     Cell (*make_cell)(nn::Maker&, std::int64_t, std::int64_t,
                                       const nn::CellOptions&, SourceLocation)) {
  nn_module.def(name, [make_cell](nn::Maker& make, std::int64_t in, std::int64_t features,
                                  std::string in_name, std::string out_name, nb::object input,
                                  nb::object recurrent) {
    nn::CellOptions options{.in = std::move(in_name),
                            .out = std::move(out_name),
                            .input = initializer_of(std::move(input)),
                            .recurrent = initializer_of(std::move(recurrent))};
    return made_unlocked(
        [&] { return make_cell(make, in, features, options, SourceLocation::current()); });
  });
}

nn::RnnOptions rnn_options(bool reverse, const OptionalOperand& lengths, std::int64_t unroll) {
  return {.reverse = reverse, .lengths = lengths.tensor(), .unroll = unroll};
}

// A cell whose state is one tensor.
template <class Cell>
void bind_cell(nb::module_& nn_module, const char* name, const char* loop,
               Tensor (*cell)(const Cell&, const Tensor&, const Tensor&, SourceLocation)) {
  nn_module.def(name, [cell](const Cell& params, const Operand& state, const Operand& x) {
    CallerLine line;
    return tensor_object(cell(params, tensor_argument(state), tensor_argument(x), line.where()));
  });
  nn_module.def(
      loop,
      [](const Cell& params, const Operand& xs, const OptionalOperand& initial, bool reverse,
         const OptionalOperand& lengths, std::int64_t unroll) {
        CallerLine line;
        std::optional<Tensor> first;
        if (initial.given) first = initial.tensor();
        auto [outputs, last] = nn::rnn(params, tensor_argument(xs), first,
                                       rnn_options(reverse, lengths, unroll), line.where());
        return nb::make_tuple(tensor_object(outputs), tensor_object(last));
      },
      nb::arg("params"), nb::arg("xs"), nb::arg("initial").none(), nb::arg("reverse"),
      nb::arg("lengths").none(), nb::arg("unroll"));
}

}  // namespace

void bind_recurrent_layers(nb::module_& nn_module) {
  bind_cell_maker(nn_module, "make_simple_cell", nn::make_simple_cell);
  bind_cell_maker(nn_module, "make_lstm_cell", nn::make_lstm_cell);
  bind_cell_maker(nn_module, "make_gru_cell", nn::make_gru_cell);
  bind_cell(nn_module, "simple_cell", "rnn_of_simple_cell", nn::simple_cell);
  bind_cell(nn_module, "gru_cell", "rnn_of_gru_cell", nn::gru_cell);
  nn_module.def("lstm_cell",
                [](const nn::LstmCell& params, const nn::LstmState& state, const Operand& x) {
                  CallerLine line;
                  return nn::lstm_cell(params, state, tensor_argument(x), line.where());
                });
  nn_module.def(
      "rnn_of_lstm_cell",
      [](const nn::LstmCell& params, const Operand& xs, const std::optional<nn::LstmState>& initial,
         bool reverse, const OptionalOperand& lengths, std::int64_t unroll) {
        CallerLine line;
        auto [outputs, last] = nn::rnn(params, tensor_argument(xs), initial,
                                       rnn_options(reverse, lengths, unroll), line.where());
        return nb::make_tuple(tensor_object(outputs), last);
      },
      nb::arg("params"), nb::arg("xs"), nb::arg("initial").none(), nb::arg("reverse"),
      nb::arg("lengths").none(), nb::arg("unroll"));
  nn_module.def("make_lora",
                [](nn::Maker& make, std::int64_t in, std::int64_t out, std::int64_t rank,
                   std::string in_name, std::string out_name, nb::object down, nb::object up) {
                  nn::LoraOptions options{.in = std::move(in_name),
                                          .out = std::move(out_name),
                                          .down = initializer_of(std::move(down)),
                                          .up = initializer_of(std::move(up))};
                  return made_unlocked([&] { return nn::make_lora(make, in, out, rank, options); });
                });
  nn_module.def("lora", [](const nn::Lora& params, const Operand& x, double scale) {
    CallerLine line;
    return tensor_object(nn::lora(params, tensor_argument(x), scale));
  });
  nn_module.def("with_lora", [](const Operand& weight, const nn::Lora& params, double scale) {
    CallerLine line;
    return tensor_object(nn::with_lora(tensor_argument(weight), params, scale));
  });
}

}  // namespace meshard::python

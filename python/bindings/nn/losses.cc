// Losses. Their signatures are in python/meshard/nn/_losses.py.
#include "meshard/nn/losses.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>

#include "op_enums.h"
#include "python/bindings/arrays/tensors.h"
#include "python/bindings/nn/nn.h"
#include "python/bindings/ops/op_arguments.h"

namespace nb = nanobind;

namespace meshard::python {

void bind_losses(nb::module_& nn_module) {
  nn_module.def("huber_loss", [](const Operand& predictions, const Operand& targets, double delta,
                                 LossReduction reduction) {
    CallerLine line;
    settle({&predictions, &targets});
    return tensor_object(nn::huber_loss(predictions.in(), targets.in(), delta, reduction));
  });
  nn_module.def(
      "kl_divergence", [](const Operand& log_predictions, const Operand& targets,
                          std::int64_t dimension, bool log_targets, LossReduction reduction) {
        CallerLine line;
        settle({&log_predictions, &targets});
        return tensor_object(nn::kl_divergence(
            log_predictions.in(), targets.in(),
            {.dimension = dimension, .log_targets = log_targets, .reduction = reduction}));
      });
  nn_module.def(
      "focal_loss",
      [](const Operand& logits, const Operand& targets, double gamma, std::optional<double> alpha,
         LossReduction reduction) {
        CallerLine line;
        settle({&logits, &targets});
        return tensor_object(nn::focal_loss(
            logits.in(), targets.in(), {.gamma = gamma, .alpha = alpha, .reduction = reduction}));
      },
      nb::arg("logits"), nb::arg("targets"), nb::arg("gamma"), nb::arg("alpha").none(),
      nb::arg("reduction"));
  nn_module.def("z_loss", [](const Operand& logits, double weight, std::int64_t dimension,
                             LossReduction reduction) {
    CallerLine line;
    settle({&logits});
    return tensor_object(nn::z_loss(logits.in(), weight, dimension, reduction));
  });
  nn_module.def(
      "ctc_loss",
      [](const Operand& logits, const Operand& labels, const OptionalOperand& logit_lengths,
         const OptionalOperand& label_lengths, std::int64_t blank, LossReduction reduction) {
        CallerLine line;
        settle({&logits, &labels});
        return tensor_object(nn::ctc_loss(logits.in(), labels.in(),
                                          {.logit_lengths = logit_lengths.tensor(),
                                           .label_lengths = label_lengths.tensor(),
                                           .blank = blank,
                                           .reduction = reduction}));
      },
      nb::arg("logits"), nb::arg("labels"), nb::arg("logit_lengths").none(),
      nb::arg("label_lengths").none(), nb::arg("blank"), nb::arg("reduction"));
}

}  // namespace meshard::python

#include "meshard/nn/mlp.h"

#include <cmath>

#include "meshard/base/error.h"
#include "meshard/graph/record.h"
#include "meshard/ops/all.h"

namespace meshard::nn {

namespace activation {
Tensor gelu(const Tensor& x) { return meshard::gelu(x); }
Tensor silu(const Tensor& x) { return meshard::silu(x); }
Tensor relu(const Tensor& x) { return meshard::relu(x); }
}  // namespace activation

namespace {

Linear make_up(Maker& make, std::int64_t width, std::int64_t hidden, const MlpOptions& options) {
  return make_linear(make, width, hidden,
                     {.in = "embed", .out = "hidden", .bias = options.bias, .weight = options.up});
}

Linear make_down(Maker& make, std::int64_t width, std::int64_t hidden, const MlpOptions& options) {
  return make_linear(
      make, hidden, width,
      {.in = "hidden", .out = "embed", .bias = options.bias, .weight = options.down});
}

}  // namespace

Mlp make_mlp(Maker& make, std::int64_t width, std::int64_t hidden, const MlpOptions& options,
             SourceLocation where) {
  CallScope line(where, "in nn::make_mlp");
  Linear up = make_up(make, width, hidden, options);
  return {up, make_down(make, width, hidden, options)};
}

Tensor mlp(const Mlp& params, const Tensor& x, const Activation& activation, SourceLocation where) {
  CallScope line(where, "in nn::mlp");
  return linear(params.down, activation(linear(params.up, x)));
}

GatedMlp make_gated_mlp(Maker& make, std::int64_t width, std::int64_t hidden,
                        const MlpOptions& options, SourceLocation where) {
  CallScope line(where, "in nn::make_gated_mlp");
  Linear gate = make_up(make, width, hidden, options), up = make_up(make, width, hidden, options);
  return {gate, up, make_down(make, width, hidden, options)};
}

Tensor gated_mlp(const GatedMlp& params, const Tensor& x, const Activation& activation,
                 SourceLocation where) {
  CallScope line(where, "in nn::gated_mlp");
  return linear(params.down, activation(linear(params.gate, x)) * linear(params.up, x));
}

namespace {

// The routing of tokens. `combine` is f32 [batch, time, experts, places]: the weight with which a
// token uses the result at a place of an expert. Also the balance loss.
struct Routes {
  Tensor combine, balance_loss;
};

Routes routes_of(const Tensor& router, const Tensor& x, std::int64_t used, std::int64_t places) {
  std::int64_t experts = router.dim(1);
  Tensor chances = softmax(matmul(astype(x, DType::f32), astype(router, DType::f32)), -1);
  TopK best = top_k(chances, used, -1);
  // A single choice keeps its probability: normalized it would be 1, and the router would get no
  // gradient from the value.
  Tensor weights = used == 1 ? best.values : best.values / sum(best.values, {-1}, true);
  Routes out;
  Tensor taken = zeros({x.dim(0), 1, experts});  // number of places already taken, per expert
  for (std::int64_t choice = 0; choice < used; ++choice) {
    Tensor expert = one_hot(index(best.indices, {ellipsis, choice}), experts);  // [b, t, e]
    Tensor place = cumulative_sum(expert, 1) - expert + taken;
    taken = taken + sum(expert, {1}, true);
    if (choice == 0) out.balance_loss = sum(mean(expert, {0, 1}) * mean(chances, {0, 1})) * experts;
    // A place beyond the expert's capacity is out of one_hot's range: the token skips the expert.
    Tensor at = one_hot(astype(place, DType::i32), places) * expand_dims(expert, -1);
    Tensor weight = reshape(index(weights, {ellipsis, choice}), {x.dim(0), x.dim(1), 1, 1});
    out.combine = choice == 0 ? at * weight : out.combine + at * weight;
  }
  return out;
}

}  // namespace

Mixture make_mixture(Maker& make, std::int64_t width, std::int64_t hidden, std::int64_t experts,
                     const Initializer& weight, SourceLocation where) {
  CallScope line(where, "in nn::make_mixture");
  Mixture params;
  params.router = make({width, experts}, P("embed", none), weight, {width, experts});
  params.up =
      make({experts, width, hidden}, P("expert", "embed", "hidden"), weight, {width, hidden});
  params.down =
      make({experts, hidden, width}, P("expert", "hidden", "embed"), weight, {hidden, width});
  return params;
}

MixtureResult mixture(const Mixture& params, const Tensor& x, const MixtureOptions& options,
                      SourceLocation where) {
  CallScope line(where, "in nn::mixture");
  if (is_complex(x.dtype()))
    throw_invalid(x.where(), "[nn.mixture] takes real numbers, not ", x.type());
  for (const Tensor* each : {&params.router, &params.up, &params.down})
    if (is_complex(each->dtype()))
      throw_invalid(each->where(), "[nn.mixture] takes real parameters, not ", each->type());
  std::int64_t experts = params.router.dim(1);
  if (options.used < 1 || options.used > experts)
    throw_invalid(x.where(), "[nn.mixture] a token cannot use ", options.used, " of ", experts,
                  " experts");
  double even = static_cast<double>(x.dim(1) * options.used) / static_cast<double>(experts);
  auto places = static_cast<std::int64_t>(std::ceil(options.capacity * even));
  Routes routes = routes_of(params.router, x, options.used, places);
  Tensor combine = astype(routes.combine, x.dtype());
  Tensor dispatch = astype(routes.combine > 0, x.dtype());
  // With rows sharded along the experts' axis, tokens are moved to the experts' devices here, and
  // back below.
  auto at_experts = [&](const Tensor& tokens) {
    return options.rules.mark(tokens, P("expert", "batch", none, none));
  };
  Tensor given = at_experts(einsum("btec,btd->ebcd", {dispatch, x}));
  Tensor hidden = options.activation(einsum("ebcd,edh->ebch", {given, match_dtype(params.up, x)}));
  Tensor answers = at_experts(einsum("ebch,ehd->ebcd", {hidden, match_dtype(params.down, x)}));
  return {einsum("btec,ebcd->btd", {combine, answers}), routes.balance_loss};
}

}  // namespace meshard::nn

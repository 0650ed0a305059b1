#include "tests/conformance/jax_programs.h"

#include <cmath>
#include <map>

#include "meshard/meshard.h"

namespace meshard::conformance {
namespace {

using Tensors = std::vector<Tensor>;
using Inputs = std::span<const Tensor>;
using Programs = std::map<std::string, Body, std::less<>>;

Body one(Tensor (*op)(In)) {
  return [op](Inputs x) { return Tensors{op(x[0])}; };
}
Body two(Tensor (*op)(In, In)) {
  return [op](Inputs x) { return Tensors{op(x[0], x[1])}; };
}
// A program of one result.
template <class F>
Body single(F f) {
  return [f](Inputs x) { return Tensors{f(x)}; };
}

const Programs& element_wise_programs() {
  static const Programs programs{
      {"ew_abs", one(abs)},
      {"ew_sign", one(sign)},
      {"ew_floor", one(floor)},
      {"ew_ceil", one(ceil)},
      {"ew_round_even", one(round)},
      {"ew_exp", one(exp)},
      {"ew_expm1", one(expm1)},
      {"ew_log", one(log)},
      {"ew_log1p", one(log1p)},
      {"ew_tanh", one(tanh)},
      {"ew_logistic", one(logistic)},
      {"ew_sin", one(sin)},
      {"ew_cos", one(cos)},
      {"ew_tan", one(tan)},
      {"ew_sqrt", one(sqrt)},
      {"ew_rsqrt", one(rsqrt)},
      {"ew_cbrt", one(cbrt)},
      {"ew_neg", one(negative)},
      {"ew_erf", one(erf)},
      {"ew_erf_inv", one(erf_inv)},
      {"ew_square", one(square)},
      {"ew_reciprocal", single([](Inputs x) { return 1 / x[0]; })},
      {"ew_integer_pow3", single([](Inputs x) { return pow(x[0], 3); })},
      {"ew_is_finite", one(isfinite)},
      {"bin_add", two(add)},
      {"bin_sub", two(subtract)},
      {"bin_mul", two(multiply)},
      {"bin_div", two(divide)},
      {"bin_max", two(maximum)},
      {"bin_min", two(minimum)},
      {"bin_atan2", two(atan2)},
      {"bin_pow", two(pow)},
      {"bin_broadcast_row", two(add)},
      {"bin_broadcast_outer", two(multiply)},
      {"bin_broadcast_scalar", two(divide)},
      {"bin_broadcast_3d", two(subtract)},
      {"where", single([](Inputs x) { return where(x[0] > 0, x[1], x[2]); })},
      {"compare_all",
       [](Inputs x) {
         return Tensors{equal(x[0], x[1]),      not_equal(x[0], x[1]), less(x[0], x[1]),
                        less_equal(x[0], x[1]), greater(x[0], x[1]),   greater_equal(x[0], x[1])};
       }},
      {"int_overflow",
       [](Inputs x) {
         return Tensors{x[0] + x[1], x[0] * x[1]};
       }},
      {"convert_f32_bf16_f32",
       single([](Inputs x) { return astype(astype(x[0], DType::bf16), DType::f32); })},
      {"convert_bool",
       [](Inputs x) {
         return Tensors{astype(x[0], DType::bool_), astype(x[0] > 0, DType::f32),
                        astype(x[0] > 0, DType::i32)};
       }},
      {"stop_gradient", single([](Inputs x) { return x[0] * stop_gradient(x[0]); })},
  };
  return programs;
}

// The elements of a vector of two indices. They outlive the call that they are given to.
std::vector<In> starts_of(const Tensor& vector) {
  static thread_local Tensor first, second;
  first = index(vector, {0});
  second = index(vector, {1});
  return {first, second};
}

// NOLINTNEXTLINE(readability-function-size): a table
const Programs& structural_programs() {
  static const Programs programs{
      {"reshape", single([](Inputs x) {
         return reshape(x[0], {4, 6});
       })},
      {"broadcast_in_dim", single([](Inputs x) {
         return broadcast_in_dim(x[0], {2, 3, 4}, {1});
       })},
      {"stack", single([](Inputs x) {
         return stack({x[0], x[1]}, 1);
       })},
      {"concat", single([](Inputs x) {
         return concat({x[0], x[1]}, 1);
       })},
      {"slice_stride", single([](Inputs x) {
         return slice(x[0], {0, 1}, {5, 4}, {2, 1});
       })},
      {"rev", single([](Inputs x) { return flip(x[0]); })},
      {"tile", single([](Inputs x) {
         return tile(x[0], {2, 3});
       })},
      {"repeat", single([](Inputs x) { return repeat(x[0], 3, 0); })},
      {"pad_edges", single([](Inputs x) {
         return pad(x[0], 1.5, {1, 0}, {2, 1});
       })},
      {"pad_interior", single([](Inputs x) {
         return pad(x[0], 0, {0, 1}, {0, 0}, {1, 2});
       })},
      {"pad_negative", single([](Inputs x) {
         return pad(x[0], 0, {-1, 0}, {1, -2});
       })},
      {"tril_triu",
       [](Inputs x) {
         return Tensors{tril(x[0], -1), triu(x[0], 1)};
       }},
      {"iota", single([](Inputs) {
         return iota(DType::i32, {2, 4}, 1);
       })},
      {"one_hot", single([](Inputs x) { return one_hot(x[0], 5); })},
      {"take_oob_clip", single([](Inputs x) { return take(x[0], x[1]); })},
      {"take_along_axis", single([](Inputs x) { return take_along_axis(x[0], x[1], 1); })},
      {"index_negative", single([](Inputs x) { return index(x[0], {-1}); })},
      {"index_pairs", single([](Inputs x) {
         return gather(
             x[0], stack({x[1], x[2]}, 1),
             {.collapsed_slice_dims = {0, 1}, .start_index_map = {0, 1}, .index_vector_dim = 1},
             {1, 1});
       })},
      {"embedding_grad", single([](Inputs x) { return take(x[0], x[1]); })},
      {"scatter_add", single([](Inputs x) {
         return scatter_add(x[0], x[1], x[2],
                            {.update_window_dims = {1},
                             .inserted_window_dims = {0},
                             .scatter_dims_to_operand_dims = {0},
                             .index_vector_dim = 1});
       })},
      {"scatter_2d", single([](Inputs x) {
         return scatter_add(x[0], stack({x[1], x[2]}, 1), x[3],
                            {.inserted_window_dims = {0, 1},
                             .scatter_dims_to_operand_dims = {0, 1},
                             .index_vector_dim = 1});
       })},
      {"segment_sum", single([](Inputs x) { return segment_sum(x[0], x[1], 4); })},
      {"dynamic_slice", single([](Inputs x) {
         return dynamic_slice(x[0], starts_of(x[1]), {2, 2});
       })},
      // JAX counts negative starts from the end first; meshard's are StableHLO's.
      {"dynamic_slice_clamped", single([](Inputs x) {
         Tensor sizes = constant(HostArray::from_vector<std::int32_t>({4, 5}));
         return dynamic_slice(x[0], starts_of(where(x[1] < 0, x[1] + sizes, x[1])), {2, 2});
       })},
      {"dynamic_update_slice",
       single([](Inputs x) { return dynamic_update_slice(x[0], x[1], starts_of(x[2])); })},
      {"cumsum_reverse",
       single([](Inputs x) { return flip(cumulative_sum(flip(x[0], 0), 0), 0); })},
      {"sort", single([](Inputs x) { return sort(x[0], 1); })},
      {"sort_nan", single([](Inputs x) { return sort(x[0]); })},
      {"argsort_stable", single([](Inputs x) { return argsort(x[0]); })},
      {"sort_by_key",
       [](Inputs x) {
         return sort({x[0], x[1]}, 0);
       }},
      {"top_k_ties",
       [](Inputs x) {
         auto [values, indices] = top_k(x[0], 2);
         return Tensors{values, indices};
       }},
      {"vmap_matvec", single([](Inputs x) {
         return einsum("bij,bj->bi", {x[0], x[1]});
       })},
      {"jvp_dot", single([](Inputs x) {
         Tensor w = x[1];
         return jvp([w](Tensor t) { return matmul(t, w); }, x[0], x[2]).second;
       })},
      {"dot_int8_int32", single([](Inputs x) {
         return dot_general(x[0], x[1], {.lhs_contracting = {1}, .rhs_contracting = {0}},
                            DType::i32);
       })},
  };
  return programs;
}

const Programs& network_programs() {
  static const Programs programs{
      {"nn_softmax", single([](Inputs x) { return softmax(x[0]); })},
      {"nn_softmax_large", single([](Inputs x) { return softmax(x[0]); })},
      {"nn_softmax_axis0", single([](Inputs x) { return softmax(x[0], 0); })},
      {"nn_log_softmax", single([](Inputs x) { return log_softmax(x[0]); })},
      {"nn_gelu_tanh", single([](Inputs x) { return gelu(x[0]); })},
      {"nn_gelu_erf", single([](Inputs x) { return gelu(x[0], GeluForm::kErf); })},
      {"nn_relu", one(relu)},
      {"nn_relu_zero", one(relu)},
      {"nn_silu", one(silu)},
      {"nn_softplus", one(softplus)},
      {"nn_leaky_relu", single([](Inputs x) { return leaky_relu(x[0], 0.1); })},
      {"nn_elu", single([](Inputs x) { return elu(x[0]); })},
      {"nn_log_sigmoid", one(log_sigmoid)},
      {"nn_hard_tanh", one(hard_tanh)},
      {"nn_layernorm", single([](Inputs x) { return layer_norm(x[0], x[1], x[2]); })},
      {"nn_rmsnorm", single([](Inputs x) { return rms_norm(x[0], x[1]); })},
      {"nn_xent", single([](Inputs x) { return cross_entropy(x[0], x[1]); })},
      {"nn_mse", single([](Inputs x) { return mean(square(x[0] - x[1])); })},
      {"nn_attention_causal",
       single([](Inputs x) { return dot_product_attention(x[0], x[1], x[2], {.causal = true}); })},
  };
  return programs;
}

const Programs& control_programs() {
  static const Programs programs{
      {"while", single([](Inputs x) {
         return while_loop([x](Tensor y) { return greater_equal(abs(y * y - x[0]), 1e-4); },
                           [x](Tensor y) { return (y + x[0] / y) * 0.5; }, x[0]);
       })},
      {"fori", single([](Inputs x) {
         auto step = [x](Tensor i, Tensor c) { return c * x[1] + astype(i, c.dtype()); };
         return fori_loop(0, 5, step, x[0]);
       })},
      {"cond_false", single([](Inputs x) {
         return cond(
             x[0] > 0, [](Tensor t) { return sin(t); }, [](Tensor t) { return cos(t); }, x[1]);
       })},
      {"switch", single([](Inputs x) {
         return switch_case(x[0],
                            {[](Tensor t) { return sin(t); }, [](Tensor t) { return cos(t); },
                             [](Tensor t) { return tanh(t); }},
                            x[1]);
       })},
      {"scan_remat", single([](Inputs x) {
         auto layer = checkpoint([](Tensor w, Tensor h) { return tanh(matmul(h, w)); });
         return repeat(x[1], x[0], layer);
       })},
  };
  return programs;
}

DimensionList dimensions_of(const Json& axes) {
  if (axes.is_null()) return {};
  Dimensions list;
  for (const Json& axis : axes) list.push_back(axis.get<std::int64_t>());
  return DimensionList(list);
}

Dimensions dimensions_at(const Json& pair, std::size_t i) {
  Dimensions list;
  for (const Json& d : pair.at(i)) list.push_back(d.get<std::int64_t>());
  return list;
}

std::optional<Body> reduction_program(const std::string& id, const Json& test) {
  static const Programs special{
      {"red_max_ties", single([](Inputs x) { return max(x[0], 1); })},
      {"red_max_nan", single([](Inputs x) { return max(x[0]); })},
      {"red_argmax",
       [](Inputs x) {
         return Tensors{argmax(x[0], 1), argmin(x[0], 1)};
       }},
      {"red_empty",
       [](Inputs x) {
         return Tensors{sum(x[0], 0), prod(x[0], 0)};
       }},
      {"red_int_sum", single([](Inputs x) { return sum(x[0], 0); })},
      {"red_any_all",
       [](Inputs x) {
         return Tensors{any(x[0], 1), all(x[0], 1)};
       }},
  };
  if (auto found = special.find(id); found != special.end()) return found->second;
  if (!test.at("params").contains("axes")) return std::nullopt;
  DimensionList over = dimensions_of(test.at("params").at("axes"));
  std::string kind = id.substr(4, id.find('_', 4) - 4);
  using Reduction = Tensor (*)(In, DimensionList, bool);
  static const std::map<std::string, Reduction> simple{
      {"sum", sum}, {"prod", prod}, {"max", max},
      {"min", min}, {"mean", mean}, {"logsumexp", logsumexp},
  };
  if (auto found = simple.find(kind); found != simple.end())
    return single([over, reduce = found->second](Inputs x) { return reduce(x[0], over, false); });
  if (kind == "var") return single([over](Inputs x) { return var(x[0], over); });
  if (kind == "std") return single([over](Inputs x) { return std_dev(x[0], over); });
  return std::nullopt;
}

}  // namespace

std::optional<Body> jax_program(const Json& test) {
  const std::string id = test.at("id");
  for (const Programs* programs :
       {&element_wise_programs(), &structural_programs(), &network_programs(), &control_programs()})
    if (auto found = programs->find(id); found != programs->end()) return found->second;
  if (id.starts_with("red_")) return reduction_program(id, test);
  const Json& params = test.at("params");
  if (params.contains("contract")) {
    DotDimensions dims{dimensions_at(params.at("contract"), 0),
                       dimensions_at(params.at("contract"), 1),
                       dimensions_at(params.at("batch"), 0), dimensions_at(params.at("batch"), 1)};
    return single([dims](Inputs x) { return dot_general(x[0], x[1], dims); });
  }
  if (params.contains("equation")) {
    std::string equation = params.at("equation");
    return single([equation](Inputs x) { return einsum(equation, Tensors(x.begin(), x.end())); });
  }
  return std::nullopt;
}

}  // namespace meshard::conformance

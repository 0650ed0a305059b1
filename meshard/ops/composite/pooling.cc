#include "meshard/ops/composite/pooling.h"

#include "meshard/ops/arithmetic.h"
#include "meshard/ops/cast.h"
#include "meshard/ops/composite/create.h"
#include "meshard/ops/composite/internal/float_computation.h"
#include "meshard/ops/definition/operand.h"
#include "meshard/ops/internal/window.h"
#include "meshard/ops/reduce_window.h"

namespace meshard {
using namespace internal;
namespace {

// A window over all dimensions, including batch and features.
struct Pool {
  Dimensions window;
  WindowOptions options;
};

Pool pool_over(std::string_view name, const Tensor& x, Dimensions& window, PoolOptions given,
               SourceLocation where) {
  int rank = x.shape().rank();
  Dimensions spatial;
  if (!given.layout.empty() && given.layout.size() != static_cast<std::size_t>(rank))
    throw_invalid(where, "[", name, "] the layout \"", given.layout, "\" has ", given.layout.size(),
                  " letters, but ", x.type(), " has rank ", rank);
  for (int d = 0; d < rank; ++d) {
    bool kept = given.layout.empty() ? d == 0 || d == rank - 1
                                     : given.layout[static_cast<std::size_t>(d)] == 'N' ||
                                           given.layout[static_cast<std::size_t>(d)] == 'C';
    if (!kept) spatial.push_back(d);
  }
  window = for_each_dimension(std::move(window), spatial.size());
  given.strides = for_each_dimension(std::move(given.strides), spatial.size());
  given.dilation = for_each_dimension(std::move(given.dilation), spatial.size());
  given.padding = for_each_dimension(std::move(given.padding), spatial.size());
  if (window.size() != spatial.size())
    throw_invalid(where, "[", name, "] the window [", join(window, ", "), "] has ", window.size(),
                  " sizes, but ", x.type(), " has ", spatial.size(), " spatial dimensions");
  Dimensions strides = given.strides.empty() ? window : given.strides;
  strides = one_each(strides, spatial.size(), name, "strides", where);
  Dimensions dilation = one_each(given.dilation, spatial.size(), name, "dilation", where);
  auto all = static_cast<std::size_t>(rank);
  Pool pool{Dimensions(all, 1),
            {.strides = Dimensions(all, 1), .window_dilation = Dimensions(all, 1)}};
  WindowPadding::Pairs pairs(all, {0, 0});
  if (given.padding.is_listed() && given.padding.pairs().size() != spatial.size())
    throw_invalid(where, "[", name, "] padding has ", given.padding.pairs().size(), " pairs for ",
                  spatial.size(), " spatial dimensions");
  for (std::size_t i = 0; i < spatial.size(); ++i) {
    auto d = static_cast<std::size_t>(spatial[i]);
    pool.window[d] = window[i];
    pool.options.strides[d] = strides[i];
    pool.options.window_dilation[d] = dilation[i];
    if (given.padding.is_listed()) pairs[d] = given.padding.pairs()[i];
  }
  pool.options.padding =
      given.padding.is_listed() ? WindowPadding(std::move(pairs)) : given.padding;
  return pool;
}

}  // namespace

Tensor max_pool(In x, Dimensions window, PoolOptions options) {
  SourceScope line(x.where);
  Tensor operand = operand_tensor("max_pool", x);
  Pool pool = pool_over("max_pool", operand, window, options, effective_source(x.where));
  return reduce_window_max(operand, std::move(pool.window), std::move(pool.options));
}

Tensor avg_pool(In x, Dimensions window, PoolOptions options) {
  SourceScope line(x.where);
  Tensor operand = operand_tensor("avg_pool", x);
  Pool pool = pool_over("avg_pool", operand, window, options, effective_source(x.where));
  DType dtype = float_result_dtype(operand.dtype());
  operand = for_computation(operand);
  Tensor total = reduce_window_sum(operand, pool.window, pool.options);
  std::int64_t count = 1;
  for (std::int64_t size : window) count *= size;
  if (options.count_padding) return astype(divide(total, count), dtype);
  Tensor present = reduce_window_sum(ones_like(operand), pool.window, pool.options);
  return astype(divide(total, present), dtype);
}

}  // namespace meshard

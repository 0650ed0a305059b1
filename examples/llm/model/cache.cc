// Tested in tests/e2e/llm_test.cc.
#include "examples/llm/model/cache.h"

#include "examples/llm/model/block.h"

namespace llm {

using namespace meshard;

namespace {

// Writes values [rows, time, key heads, size] at (layer, page, place), each i32[rows, time].
// Windows outside of the cache, those of padding, are dropped.
Tensor with_written(const Tensor& cache, const Tensor& layer, const Tensor& page,
                    const Tensor& place, const Tensor& values) {
  Tensor layers = broadcast_to(layer, page.shape());
  Tensor at = concat({expand_dims(layers, -1), expand_dims(page, -1), expand_dims(place, -1)}, -1);
  return scatter_set(cache, at, astype(values, cache.dtype()),
                     {.update_window_dims = {2, 3},
                      .inserted_window_dims = {0, 1, 2},
                      .scatter_dims_to_operand_dims = {0, 1, 2},
                      .index_vector_dim = 2});
}

// The pages of a layer, i32[rows, read], as [rows, read * page tokens, key heads, size].
Tensor read_pages(const Tensor& cache, const Tensor& layer, const Tensor& pages) {
  Tensor layers = broadcast_to(layer, pages.shape());
  Tensor at = concat({expand_dims(layers, -1), expand_dims(pages, -1)}, -1);
  std::int64_t tokens = cache.dim(2), heads = cache.dim(3), size = cache.dim(4);
  Tensor found = gather(cache, at,
                        {.offset_dims = {2, 3, 4},
                         .collapsed_slice_dims = {0, 1},
                         .start_index_map = {0, 1},
                         .index_vector_dim = 2},
                        {1, 1, tokens, heads, size});
  return reshape(found, {pages.dim(0), pages.dim(1) * tokens, heads, size});
}

// What the loop over the layers carries.
struct PagedCarry {
  Tensor stream;
  PagedCache cache;
  Tensor layer;
  MESHARD_FIELDS(stream, cache, layer)
};

}  // namespace

PagedCache make_paged_cache(const Config& config, const nn::AxisRules& rules, std::int64_t pages,
                            std::int64_t page_tokens, DType dtype, bool abstract) {
  const PartitionSpec names = P(none, none, none, "key_heads", none);
  const Shape shape{config.layers, pages, page_tokens, config.key_heads, config.head_size};
  auto empty = [&] {
    if (abstract) return abstract_tensor(TensorType{dtype, shape}, rules.sharding(names));
    return rules.mark(zeros(shape, dtype), names);
  };
  PagedCache cache{empty(), empty()};
  if (!abstract) compute({cache.key, cache.value});
  return cache;
}

std::pair<Tensor, PagedCache> paged_step(const Model& model, const Config& config,
                                         const PagedTokens& rows, const PagedCache& cache,
                                         const nn::AxisRules& rules, bool all_logits) {
  std::int64_t time = rows.tokens.dim(1), read = rows.pages.dim(1);
  auto page_tokens = static_cast<std::int32_t>(cache.key.dim(2));
  Tensor numbers = iota(DType::i32, {1, time}, 1);
  Tensor positions = expand_dims(rows.start, 1) + numbers;
  Tensor valid = numbers < expand_dims(rows.count, 1);
  Tensor page = take_along_axis(
      rows.pages,
      minimum(floor_divide(positions, page_tokens), static_cast<std::int32_t>(read) - 1), 1);
  page = where(valid, page, static_cast<std::int32_t>(cache.key.dim(1)));
  Tensor place = positions % page_tokens;
  Tensor keys = iota(DType::i32, {1, 1, read * page_tokens}, 2);
  auto body = [&](const PagedCarry& carry, const LayerStep& step) {
    Block block(step, config, rules);
    Block::Heads heads = block.heads_of(carry.stream, positions);
    PagedCarry next = carry;
    next.cache.key = with_written(carry.cache.key, carry.layer, page, place, heads.key);
    next.cache.value = with_written(carry.cache.value, carry.layer, page, place, heads.value);
    heads.key = astype(read_pages(next.cache.key, carry.layer, rows.pages), heads.query.dtype());
    heads.value =
        astype(read_pages(next.cache.value, carry.layer, rows.pages), heads.query.dtype());
    Tensor seen =
        expand_dims(block.sees(expand_dims(positions, 2), keys), 1);  // [rows, 1, time, keys]
    next.stream = block.finish(carry.stream, block.attend(heads, seen));
    next.layer = carry.layer + 1;
    return std::pair(next, std::tuple<>());
  };
  PagedCarry first{embedded(model, config, rows.tokens, rules), cache, zeros({}, DType::i32)};
  PagedCarry last = scan(body, first, stacked_steps(model, config)).first;
  Tensor x = last.stream;
  if (!all_logits && time > 1) {
    // Selected by comparing positions: each device does this for its own rows.
    Tensor chosen = equal(numbers, expand_dims(rows.count - 1, 1));
    x = sum(where(expand_dims(chosen, -1), x, zeros({}, x.dtype())), {1}, true);
  }
  return {to_logits(model, config, x, rules), last.cache};
}

}  // namespace llm

#include "meshard/ops/composite/random_choice.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "meshard/ops/all.h"
#include "meshard/ops/composite/internal/random_uniform.h"
#include "meshard/ops/definition/define.h"

namespace meshard::random {
using namespace internal;
namespace {

// A range of whole numbers as it is drawn: `span` numbers from `low` on; a span of 0 is the whole
// range of the dtype.
struct WholeRange {
  DType sampled;           // dtypes below 32 bits are drawn as i32
  std::int64_t low = 0;    // modulo 2^64 for u64
  std::uint64_t span = 1;  // modulo 2^(width of `sampled`)
};

WholeRange range_of(std::int64_t low, std::int64_t high, DType dtype) {
  IntegerLimits limits = integer_limits(dtype);
  // The largest possible value of a bound. For u64 no i64 bound is out of range.
  std::int64_t largest = limits.max > std::uint64_t{std::numeric_limits<std::int64_t>::max()}
                             ? std::numeric_limits<std::int64_t>::max()
                             : static_cast<std::int64_t>(limits.max);
  bool beyond = high > largest;
  low = std::clamp(low, limits.min, largest);
  high = std::clamp(high, limits.min, largest);
  std::uint64_t span =
      high <= low ? 1 : static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low);
  if (beyond && high > low) ++span;
  DType sampled = size_in_bytes(dtype) < 4 ? DType::i32 : dtype;
  if (size_in_bytes(sampled) == 4) span &= 0xFFFFFFFFu;
  return {sampled, low, span};
}

Tensor unsigned_constant(DType dtype, std::uint64_t value) {
  return constant(HostArray::scalar(value).astype(dtype));
}

// Draws twice as many random bits as the numbers have, modulo the span: (high * 2^bits + low) %
// span = ((high % span) * (2^bits % span) + low % span) % span, computed in the dtype's own width:
// above a span of 2^(bits / 2) products wrap around, as in JAX.
Tensor offsets(const In& key, const Shape& shape, const WholeRange& range) {
  bool wide = size_in_bytes(range.sampled) == 8;
  DType words = wide ? DType::u64 : DType::u32;
  std::vector<Tensor> keys = split(key);
  Tensor low_bits = bits(keys[1], shape, words);
  if (range.span == 0) return low_bits;
  std::uint64_t half = (std::uint64_t{1} << (wide ? 32 : 16)) % range.span;
  std::uint64_t square = half * half;  // modulo 2^64, as in arithmetic of the dtype
  if (!wide) square &= 0xFFFFFFFFu;
  Tensor span = unsigned_constant(words, range.span);
  Tensor factor = unsigned_constant(words, square % range.span);
  Tensor high_part = multiply(remainder(bits(keys[0], shape, words), span), factor);
  return remainder(add(high_part, remainder(low_bits, span)), span);
}

// The number of sorts after which equal sort keys do not matter, for `count` elements and 32-bit
// keys.
int sorting_rounds(std::int64_t count) {
  constexpr double kExponent = 3, kLargestWord = 4294967295.0;
  return static_cast<int>(
      std::ceil(kExponent * std::log(static_cast<double>(std::max<std::int64_t>(1, count))) /
                std::log(kLargestWord)));
}

Tensor shuffled(Tensor key, Tensor x, std::int64_t dimension) {
  int rounds = sorting_rounds(x.size());
  for (int round = 0; round < rounds; ++round) {
    std::vector<Tensor> keys = split(key);
    key = keys[0];
    x = sort({bits(keys[1], x.shape()), x}, dimension)[1];
  }
  return x;
}

// The whole number n that represents 0, 1, ..., n - 1.
std::int64_t count_of(std::string_view place, const In& x) {
  if (x.scalar.kind != ScalarKind::kInteger || x.scalar.integer < 0)
    throw_invalid(effective_source(x.where), "[random.", place,
                  "] takes a tensor or a whole number from 0 to the largest i64, not ", x.scalar);
  return x.scalar.integer;
}

Tensor places(std::int64_t count) { return iota(kDefaultInteger, Shape{count}, 0); }

Tensor permuted_places(const Tensor& key, std::int64_t count) {
  return shuffled(key, places(count), 0);
}

// The operand, checked to have `dimension`, which is normalized.
Tensor in_order(std::string_view place, const In& x, std::int64_t& dimension) {
  Tensor operand = operand_tensor(place, x);
  SourceLocation where = effective_source(x.where);
  if (operand.rank() == 0)
    throw_invalid(where, "[", place, "] takes a tensor of rank 1 or more, not ", operand.type());
  dimension = normalize_dimension(dimension, operand.shape().rank(), place, where);
  return operand;
}

// The product of the first `count` sizes.
std::int64_t leading_size(const Shape& shape, int count) {
  std::int64_t size = 1;
  for (int d = 0; d < count; ++d) size *= shape[d];
  return size;
}

// The number of leading sizes in `shape`, before those of `logits` without `dimension`.
int further_draws(const Shape& shape, const Tensor& logits, std::int64_t dimension, bool replace,
                  SourceLocation where) {
  int further = shape.rank() - (logits.shape().rank() - 1);
  bool fits = further >= 0;
  for (int d = 0, from = 0; fits && from < logits.shape().rank(); ++from) {
    if (from == dimension) continue;
    std::int64_t mine = logits.shape()[from], asked = shape[further + d++];
    fits = mine == asked || (replace && mine == 1);
  }
  if (!fits)
    throw_invalid(where, "[random.categorical] the result's shape ", shape,
                  " does not end with that of the logits ", logits.type(), " without dimension ",
                  dimension);
  return further;
}

Tensor distinct_categories(const Tensor& key, const Tensor& logits, std::int64_t dimension,
                           const Shape& shape, int further, SourceLocation where) {
  std::int64_t draws = leading_size(shape, further);
  std::int64_t size = logits.shape()[static_cast<int>(dimension)];
  if (draws > size)
    throw_invalid(where, "[random.categorical] cannot draw ", draws,
                  " indices without replacement: there are only ", size);
  Tensor scores = add(logits, gumbel(key, logits.shape(), logits.dtype()));
  Tensor best = top_k(moveaxis(scores, dimension, -1), draws).indices;
  return reshape(moveaxis(best, -1, 0), shape.sizes());
}

// Draws indices with the given vector of probabilities.
Tensor weighted(const Tensor& key, const Shape& shape, const ChoiceOptions& options,
                std::int64_t count, SourceLocation where) {
  const Tensor& p = options.probabilities;
  if (p.rank() != 1 || p.dim(0) != count)
    throw_invalid(where, "[random.choice] the probabilities of ", count,
                  " elements must be a vector of that size, not ", p.type());
  check_float("choice", p.dtype(), where);
  if (!options.replace) {
    Tensor scores = add(gumbel(key, Shape{count}, p.dtype()), log(p));
    return reshape(top_k(scores, shape.size()).indices, shape.sizes());
  }
  // Finds the first cumulative probability that is not below a random number.
  Tensor sums = cumulative_sum(p, 0);
  Tensor all = reshape(slice(sums, {count - 1}, {count}), Shape{});
  Tensor one = float_constant(p.dtype(), 1);
  Tensor level = multiply(all, subtract(one, uniform(key, shape, p.dtype())));
  Tensor below = less(sums, expand_dims(level, level.rank()));
  return sum(astype(below, kDefaultInteger), level.rank());
}

}  // namespace

Tensor randint(In key, Shape shape, std::int64_t low, std::int64_t high, DType dtype) {
  SourceScope line(key.where);
  if (!is_integer(dtype))
    throw_invalid(effective_source(key.where), "[random.randint] takes an integer dtype, not ",
                  dtype);
  WholeRange range = range_of(low, high, dtype);
  Tensor first =
      constant(HostArray::scalar(static_cast<std::uint64_t>(range.low)).astype(range.sampled));
  return astype(add(astype(offsets(key, shape, range), range.sampled), first), dtype);
}

Tensor rademacher(In key, Shape shape, DType dtype) {
  SourceScope line(key.where);
  if (!is_signed(dtype))
    throw_invalid(effective_source(key.where),
                  "[random.rademacher] takes a dtype that can represent -1, not ", dtype);
  Tensor heads = less(uniform(key, std::move(shape)), float_constant(kDefaultFloat, 0.5));
  return subtract(multiply(astype(heads, dtype), 2), 1);
}

Tensor geometric(In key, In probability, Shape shape, DType dtype) {
  SourceScope line(key.where);
  if (!is_integer(dtype))
    throw_invalid(effective_source(key.where), "[random.geometric] takes an integer dtype, not ",
                  dtype);
  DType floats = probability.tensor && is_floating(probability.tensor->dtype())
                     ? probability.tensor->dtype()
                     : kDefaultFloat;
  check_float("geometric", floats, probability.where);
  Tensor p = probability.tensor ? astype(probability, floats)
                                : element_wise::to_tensor(probability, floats);
  Tensor even = uniform(key, shape, floats);
  // 0 is replaced by 1, whose logarithm is finite.
  even = where(equal(even, 0), float_constant(floats, 1), even);
  Tensor failures = floor(divide(log(even), log1p(negative(p))));
  return astype(add(failures, 1), dtype);
}

Tensor permutation(In key, In x, std::int64_t dimension) {
  SourceScope line(key.where);
  check_key("permutation", key);
  if (!x.tensor) return permuted_places(*key.tensor, count_of("permutation", x));
  Tensor operand = in_order("random.permutation", x, dimension);
  std::int64_t size = operand.dim(dimension);
  if (operand.rank() == 1) return shuffled(*key.tensor, operand, 0);
  if (size <= 1) return operand;
  return take(operand, permuted_places(*key.tensor, size), dimension);
}

Tensor shuffle(In key, In x, std::int64_t dimension) {
  SourceScope line(key.where);
  check_key("shuffle", key);
  Tensor operand = in_order("random.shuffle", x, dimension);
  return shuffled(*key.tensor, operand, dimension);
}

Tensor categorical(In key, In logits, std::int64_t dimension, std::optional<Shape> shape,
                   bool replace) {
  SourceScope line(key.where);
  SourceLocation where = effective_source(key.where);
  check_key("categorical", key);
  Tensor scores = in_order("random.categorical", logits, dimension);
  check_float("categorical", scores.dtype(), where);
  auto along = static_cast<std::size_t>(dimension);
  if (!shape) {
    Dimensions rest = scores.shape().sizes();
    rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(along));
    shape = Shape(rest);
  }
  int further = further_draws(*shape, scores, dimension, replace, where);
  if (!replace) return distinct_categories(*key.tensor, scores, dimension, *shape, further, where);
  Dimensions drawn = shape->sizes();
  drawn.insert(drawn.begin() + further + static_cast<std::ptrdiff_t>(along), scores.dim(dimension));
  return argmax(add(gumbel(key, Shape(drawn), scores.dtype()), scores), further + dimension);
}

Tensor choice(In key, In a, Shape shape, const ChoiceOptions& options) {
  SourceScope line(key.where);
  SourceLocation where = effective_source(key.where);
  check_key("choice", key);
  std::int64_t dimension = options.dimension;
  Tensor from = a.tensor ? in_order("random.choice", a, dimension) : Tensor();
  std::int64_t count = a.tensor ? from.dim(dimension) : count_of("choice", a);
  std::int64_t draws = shape.size();
  if (draws > 0 && count == 0)
    throw_invalid(where, "[random.choice] cannot draw ", draws,
                  " elements from an empty range or dimension");
  if (!options.replace && draws > count)
    throw_invalid(where, "[random.choice] cannot draw ", draws,
                  " elements without replacement: there are only ", count);
  Tensor indices;
  if (draws == 0) {
    indices = zeros(shape, kDefaultInteger);
  } else if (options.probabilities.defined()) {
    indices = weighted(*key.tensor, shape, options, count, where);
  } else if (options.replace) {
    indices = randint(key, shape, 0, count);
  } else {
    Tensor order = permuted_places(*key.tensor, count);
    indices = reshape(slice(order, {0}, {draws}), shape.sizes());
  }
  if (!a.tensor) return indices;
  if (count > 0) return take(from, indices, dimension);
  Dimensions empty;
  for (int d = 0; d < from.shape().rank(); ++d) {
    if (d != dimension) empty.push_back(from.shape()[d]);
    if (d == dimension)
      for (std::int64_t size : shape) empty.push_back(size);
  }
  return zeros(Shape(empty), from.dtype());
}

}  // namespace meshard::random

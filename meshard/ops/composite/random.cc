#include "meshard/ops/composite/random.h"

#include <cmath>
#include <limits>
#include <numbers>
#include <optional>

#include "meshard/graph/leaf.h"
#include "meshard/graph/record.h"
#include "meshard/graph/storage.h"
#include "meshard/ops/all.h"
#include "meshard/ops/composite/internal/random_uniform.h"
#include "meshard/ops/composite/internal/threefry.h"
#include "meshard/ops/definition/operand.h"

namespace meshard::random {
using namespace internal;
namespace {

// More keys are derived by a program.
constexpr std::int64_t kMostHostKeys = 1024;

Tensor word(std::uint32_t value) { return constant(HostArray::scalar(value)); }

// The two words of a key, each of rank 0.
std::pair<Tensor, Tensor> words(std::string_view place, const In& key) {
  check_key(place, key);
  auto at = [&](std::int64_t i) {
    return reshape(slice(In(*key.tensor, key.where), Dimensions{i}, Dimensions{i + 1}), Shape{});
  };
  return {at(0), at(1)};
}

bool is_on_host(const Tensor& tensor) {
  const Storage* storage = tensor.value().storage();
  return storage && storage->kind() == Storage::Kind::kHost;
}

using HostKey = std::pair<std::uint32_t, std::uint32_t>;

// The words of a key in host memory; none if it is recorded or on devices.
std::optional<HostKey> host_key(const Tensor& key) {
  if (!is_on_host(key)) return std::nullopt;
  std::vector<std::uint32_t> words = key.to_vector<std::uint32_t>();
  return HostKey(words[0], words[1]);
}

// Key number `number` of those that derive from a key. It is computed here, so that no program is
// compiled for it.
Tensor derived(const HostKey& key, std::uint32_t number, SourceLocation where) {
  auto [first, second] = encrypt(key.first, key.second, 0, number);
  return from_host(HostArray::from_vector<std::uint32_t>({first, second}), where);
}

// Each element's row-major position in `dtype`.
Tensor positions(const Shape& shape, DType dtype) {
  Dimensions strides = shape.strides();
  Tensor sum;
  for (int d = 0; d < shape.rank(); ++d) {
    if (shape[d] == 1) continue;
    Tensor index = iota(dtype, shape, d);
    std::int64_t stride = strides[static_cast<std::size_t>(d)];
    if (stride != 1) index = multiply(index, stride);
    sum = sum.defined() ? add(sum, index) : index;
  }
  if (sum.defined()) return sum;
  return broadcast_to(constant(HostArray::scalar(std::int64_t{0}).astype(dtype)), shape);
}

}  // namespace

namespace internal {

// The counter is the position in 64 bits, high word first.
Words words_at(std::string_view place, const In& key, const Shape& shape) {
  auto [k0, k1] = words(place, key);
  if (shape.size() <= std::int64_t{1} << 32)
    return encrypt(k0, k1, broadcast_to(word(0), shape), positions(shape, DType::u32));
  Tensor position = positions(shape, DType::u64);
  return encrypt(k0, k1, astype(bitwise_right_shift(position, 32), DType::u32),
                 astype(position, DType::u32));
}

std::vector<Words> split_each(const Words& keys, std::int64_t count) {
  Dimensions sizes = keys.first.shape().sizes();
  Shape one(sizes);
  sizes.insert(sizes.begin(), count);
  Shape all(sizes);
  Words words =
      encrypt(keys.first, keys.second, broadcast_to(word(0), all), iota(DType::u32, all, 0));
  auto number = [&](const Tensor& x, std::int64_t i) {
    return reshape(slice_along(x, 0, i, i + 1), one);
  };
  std::vector<Words> out;
  for (std::int64_t i = 0; i < count; ++i)
    out.emplace_back(number(words.first, i), number(words.second, i));
  return out;
}

Tensor uniform_each(const Words& keys, DType dtype) {
  Tensor zero = broadcast_to(word(0), keys.first.shape());
  return between(unit_of(encrypt(keys.first, keys.second, zero, zero), dtype), 0, 1);
}

Tensor normal_each(const Words& keys, DType dtype) {
  Tensor zero = broadcast_to(word(0), keys.first.shape());
  return normal_of(unit_of(encrypt(keys.first, keys.second, zero, zero), dtype));
}

Tensor bits_of(const Words& words, DType dtype) {
  const auto& [first, second] = words;
  if (dtype == DType::u64)
    return bitwise_or(bitwise_left_shift(astype(first, dtype), 32), astype(second, dtype));
  return astype(bitwise_xor(first, second), dtype);
}

Tensor normal_of(const Tensor& unit) {
  DType dtype = unit.dtype();
  double lowest = -1 + std::ldexp(1.0, -mantissa_bits(dtype) - 1);
  return multiply(float_constant(dtype, std::numbers::sqrt2), erf_inv(between(unit, lowest, 1)));
}

void check_key(std::string_view place, const In& key) {
  if (!key.tensor || !key.tensor->defined() ||
      key.tensor->type() != TensorType{DType::u32, Shape{2}})
    throw_invalid(effective_source(key.where), "[random.", place, "] a key must be u32[2], not ",
                  !key.tensor              ? "a number: use random::key"
                  : !key.tensor->defined() ? "a tensor without a value"
                                           : key.tensor->type().to_string());
}

}  // namespace internal

Tensor key(std::int64_t seed, SourceLocation where) {
  bool narrow = seed >= std::numeric_limits<std::int32_t>::min() &&
                seed <= std::numeric_limits<std::int32_t>::max();
  auto bits_of_seed = static_cast<std::uint64_t>(seed);
  auto high = narrow ? 0u : static_cast<std::uint32_t>(bits_of_seed >> 32);
  auto low = static_cast<std::uint32_t>(bits_of_seed);
  return from_host(HostArray::from_vector<std::uint32_t>({high, low}), where);
}

Tensor split_into(In key, Shape shape) {
  SourceScope line(key.where);
  auto [first, second] = words_at("split", key, shape);
  Dimensions pair = shape.sizes();
  pair.push_back(1);
  return concat({reshape(first, Shape(pair)), reshape(second, Shape(pair))},
                static_cast<std::int64_t>(pair.size()) - 1);
}

std::vector<Tensor> split(In key, std::int64_t count) {
  SourceScope line(key.where);
  if (count < 0)
    throw_invalid(effective_source(key.where), "[random.split] count = ", count, " is negative");
  std::vector<Tensor> keys;
  check_key("split", key);
  std::optional<HostKey> words = host_key(*key.tensor);
  if (words && count <= kMostHostKeys) {
    for (std::int64_t i = 0; i < count; ++i)
      keys.push_back(derived(*words, static_cast<std::uint32_t>(i), effective_source(key.where)));
    return keys;
  }
  Tensor all = split_into(key, Shape{count});
  for (std::int64_t i = 0; i < count; ++i)
    keys.push_back(reshape(slice(all, {i, 0}, {i + 1, 2}), {2}));
  return keys;
}

Tensor fold_in(In key, In number) {
  SourceScope line(key.where);
  check_key("fold_in", key);
  bool whole = number.tensor ? is_integer(number.tensor->dtype())
                             : number.scalar.kind == ScalarKind::kInteger;
  if (!whole || (number.tensor && number.tensor->rank() != 0))
    throw_invalid(effective_source(number.where), "[random.fold_in] takes a whole number of rank 0",
                  number.tensor ? cat(", not ", number.tensor->type()) : "");
  Tensor counter =
      number.tensor
          ? *number.tensor
          // The number is data, as a seed is: another step does not make another program.
          : from_host(scalar_array(number.scalar, DType::u32, effective_source(number.where)));
  if (std::optional<HostKey> here = host_key(*key.tensor); here && is_on_host(counter)) {
    auto low =
        static_cast<std::uint32_t>(counter.to_host().astype(DType::i64).item<std::int64_t>());
    return derived(*here, low, effective_source(key.where));
  }
  counter = astype(counter, DType::u32);
  auto [k0, k1] = words("fold_in", key);
  auto [first, second] = encrypt(k0, k1, word(0), counter);
  return concat({reshape(first, {1}), reshape(second, {1})});
}

std::pair<Tensor, Tensor> threefry(In key, In high, In low) {
  SourceScope line(key.where);
  auto [k0, k1] = words("threefry", key);
  auto [x0, x1] =
      std::pair{operand_tensor("random.threefry", high), operand_tensor("random.threefry", low)};
  if (x0.dtype() != DType::u32 || x0.type() != x1.type())
    throw_invalid(effective_source(key.where),
                  "[random.threefry] a counter must be two u32 tensors of the same shape, not ",
                  x0.type(), " and ", x1.type());
  return encrypt(k0, k1, x0, x1);
}

Tensor bits(In key, Shape shape, DType dtype) {
  SourceScope line(key.where);
  if (!is_unsigned_integer(dtype))
    throw_invalid(effective_source(key.where), "[random.bits] takes u8, u16, u32 or u64, not ",
                  dtype);
  return bits_of(words_at("bits", key, shape), dtype);
}

Tensor uniform(In key, Shape shape, DType dtype, double low, double high) {
  FloatDraw draw("uniform", key, dtype);
  return uniform_between(key, shape, dtype, low, high);
}

Tensor normal(In key, Shape shape, DType dtype) {
  FloatDraw draw("normal", key, dtype);
  return normal_of(unit_of(words_at("normal", key, shape), dtype));
}

Tensor bernoulli(In key, In probability, Shape shape) {
  SourceScope line(key.where);
  DType dtype = probability.tensor && is_floating(probability.tensor->dtype())
                    ? probability.tensor->dtype()
                    : kDefaultFloat;
  return less(uniform(key, std::move(shape), dtype), probability);
}

}  // namespace meshard::random

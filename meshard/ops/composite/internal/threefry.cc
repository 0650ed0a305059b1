// Tested in meshard/ops/composite/random_test.cc.
#include "meshard/ops/composite/internal/threefry.h"

#include <array>
#include <bit>
#include <map>

#include "meshard/ops/all.h"

namespace meshard::random::internal {
namespace {

Tensor word_tensor(std::uint32_t value) { return constant(HostArray::scalar(value)); }

// Words as tensors of one shape, for encrypt_words(). Constants are broadcast to the shape once.
class TensorWords {
 public:
  explicit TensorWords(Shape shape) : shape_(std::move(shape)) {}
  static Tensor mix(const Tensor& x, const Tensor& y) { return bitwise_xor(x, y); }
  static Tensor plus(const Tensor& x, const Tensor& y) { return add(x, y); }
  static Tensor constant(std::uint32_t value) { return word_tensor(value); }
  Tensor spread(const Tensor& of_rank_0) const { return broadcast_to(of_rank_0, shape_); }
  Tensor rotate(const Tensor& x, std::uint32_t by) {
    return bitwise_or(bitwise_left_shift(x, amount(by)), bitwise_right_shift(x, amount(32 - by)));
  }

 private:
  const Tensor& amount(std::uint32_t by) {
    Tensor& tensor = amounts_[by];
    if (!tensor.defined()) tensor = spread(word_tensor(by));
    return tensor;
  }

  Shape shape_;
  std::map<std::uint32_t, Tensor> amounts_;
};

// Words as numbers of the host.
struct HostWords {
  static std::uint32_t mix(std::uint32_t x, std::uint32_t y) { return x ^ y; }
  static std::uint32_t plus(std::uint32_t x, std::uint32_t y) { return x + y; }
  static std::uint32_t constant(std::uint32_t value) { return value; }
  static std::uint32_t spread(std::uint32_t word) { return word; }
  static std::uint32_t rotate(std::uint32_t x, std::uint32_t by) {
    return std::rotl(x, static_cast<int>(by));
  }
};

// Threefry-2x32, 20 rounds: the counter (x0, x1) under the key (k0, k1). Tensors of a key are of
// rank 0; those of counters have the shape of the result.
template <class Arithmetic, class Word>
std::pair<Word, Word> encrypt_words(Arithmetic words, const Word& k0, const Word& k1, Word x0,
                                    Word x1) {
  constexpr std::uint32_t kParity = 0x1BD11BDA;
  constexpr std::uint32_t kRotations[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
  std::array<Word, 3> keys{k0, k1, words.mix(words.mix(k0, k1), words.constant(kParity))};
  x0 = words.plus(x0, words.spread(keys[0]));
  x1 = words.plus(x1, words.spread(keys[1]));
  for (std::uint32_t group = 1; group <= 5; ++group) {
    for (std::uint32_t by : kRotations[(group - 1) % 2]) {
      x0 = words.plus(x0, x1);
      x1 = words.mix(words.rotate(x1, by), x0);
    }
    x0 = words.plus(x0, words.spread(keys[group % 3]));
    x1 = words.plus(x1, words.spread(words.plus(keys[(group + 1) % 3], words.constant(group))));
  }
  return {x0, x1};
}

}  // namespace

std::pair<Tensor, Tensor> encrypt(const Tensor& k0, const Tensor& k1, Tensor x0, Tensor x1) {
  TensorWords words(x0.shape());
  return encrypt_words(words, k0, k1, std::move(x0), std::move(x1));
}

std::pair<std::uint32_t, std::uint32_t> encrypt(std::uint32_t k0, std::uint32_t k1,
                                                std::uint32_t x0, std::uint32_t x1) {
  return encrypt_words(HostWords(), k0, k1, x0, x1);
}

}  // namespace meshard::random::internal

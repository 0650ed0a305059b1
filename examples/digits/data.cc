#include "examples/digits/data.h"

#include <fstream>
#include <numeric>
#include <sstream>

#include "meshard/meshard.h"

namespace digits {
namespace {

void shuffle(std::vector<std::int32_t>& numbers, std::uint64_t& state) {
  for (std::size_t i = numbers.size(); i > 1; --i)
    std::swap(numbers[i - 1], numbers[next_random(state) % i]);
}

std::vector<std::int32_t> shuffled(std::int64_t count, std::uint64_t seed) {
  std::vector<std::int32_t> numbers(static_cast<std::size_t>(count));
  std::iota(numbers.begin(), numbers.end(), 0);
  shuffle(numbers, seed);
  return numbers;
}

// Parses one line and appends the digit. False if the line is malformed.
bool read_line(const std::string& line, Digits& out) {
  std::istringstream stream(line);
  double number = 0;
  char comma = 0;
  for (int i = 0; i < kPixels; ++i) {
    if (!(stream >> number >> comma) || comma != ',' || number < 0 || number > 16) return false;
    out.pixels.push_back(static_cast<float>(number / 16));
  }
  if (!(stream >> number) || number < 0 || number >= double(kClasses)) return false;
  out.labels.push_back(static_cast<std::int32_t>(number));
  return true;
}

}  // namespace

std::uint64_t next_random(std::uint64_t& state) {
  std::uint64_t z = (state += 0x9E3779B97F4A7C15);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}

Digits Digits::pick(std::span<const std::int32_t> numbers) const {
  Digits out;
  out.pixels.reserve(numbers.size() * kPixels);
  out.labels.reserve(numbers.size());
  for (std::int32_t number : numbers) {
    auto first = pixels.begin() + number * kPixels;
    out.pixels.insert(out.pixels.end(), first, first + kPixels);
    out.labels.push_back(labels[static_cast<std::size_t>(number)]);
  }
  return out;
}

meshard::Result<Digits> read_digits(const std::string& path) {
  std::ifstream file(path);
  if (!file)
    return meshard::Error(
        meshard::ErrorCode::kNotFound,
        meshard::cat("[digits] no file ", path,
                     ": run `./dev setup` to fetch it, or specify another with --data"));
  Digits out;
  std::string line;
  for (int number = 1; std::getline(file, line); ++number)
    if (!read_line(line, out))
      return meshard::Error(
          meshard::ErrorCode::kInvalidArgument,
          meshard::cat("[digits] ", path, ":", number, ": not 64 pixels of 0..16 and a digit"));
  return out;
}

Split split(const Digits& all, std::int64_t count) {
  std::vector<std::int32_t> order = shuffled(all.size(), /*seed=*/1998);
  std::span<const std::int32_t> numbers(order);
  auto held_back = static_cast<std::size_t>(count);
  return {all.pick(numbers.subspan(held_back)), all.pick(numbers.first(held_back))};
}

std::string default_data_path() { return meshard::cache_folder() + "/data/digits.csv"; }

Batches::Batches(const Digits& digits, std::int64_t size, std::uint64_t seed)
    : digits_(digits), size_(static_cast<std::size_t>(size)), state_(seed) {
  order_.resize(digits.labels.size());
  std::iota(order_.begin(), order_.end(), 0);
  used_ = order_.size();  // the first call shuffles
}

Digits Batches::next() {
  if (used_ + size_ > order_.size()) {
    shuffle(order_, state_);
    used_ = 0;
  }
  Digits batch = digits_.pick(std::span<const std::int32_t>(order_).subspan(used_, size_));
  used_ += size_;
  return batch;
}

}  // namespace digits

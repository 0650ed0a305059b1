// Tested in meshard/stablehlo/jax_export_test.cc.
#include "meshard/stablehlo/internal/flat_table.h"

#include <utility>

#include "meshard/base/cat.h"
#include "meshard/base/error.h"

namespace meshard::stablehlo {
namespace {

[[noreturn]] void fail_outside(std::size_t at) {
  throw Error(ErrorCode::kDataLoss,
              cat("[jax.export] the buffer is damaged: an offset leads to byte ", at));
}

// An unsigned integer of `width` bytes, the lowest first.
std::uint64_t integer_at(std::string_view buffer, std::size_t at, std::size_t width) {
  if (at > buffer.size() || width > buffer.size() - at) fail_outside(at);
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < width; ++i)
    value |= std::uint64_t{static_cast<unsigned char>(buffer[at + i])} << (8 * i);
  return value;
}

// Where the unsigned offset at `at` leads.
std::size_t follow(std::string_view buffer, std::size_t at) {
  return at + static_cast<std::size_t>(integer_at(buffer, at, 4));
}

}  // namespace

FlatTable FlatTable::root(std::string_view bytes) { return {bytes, follow(bytes, 0)}; }

FlatTable::FlatTable(std::string_view buffer, std::size_t at) : buffer_(buffer), at_(at) {
  // A table begins with the signed distance back to its vtable; the vtable begins with its size.
  auto back = static_cast<std::int32_t>(integer_at(buffer, at, 4));
  auto vtable = static_cast<std::int64_t>(at) - back;
  if (vtable < 0) fail_outside(at);
  vtable_ = static_cast<std::size_t>(vtable);
  vtable_size_ = static_cast<std::size_t>(integer_at(buffer, vtable_, 2));
  if (vtable_size_ < 4 || vtable_size_ > buffer.size() - vtable_) fail_outside(vtable_);
}

std::size_t FlatTable::position(int field) const {
  std::size_t entry = 4 + 2 * static_cast<std::size_t>(field);
  if (entry + 2 > vtable_size_) return 0;
  auto offset = static_cast<std::size_t>(integer_at(buffer_, vtable_ + entry, 2));
  return offset == 0 ? 0 : at_ + offset;
}

std::uint64_t FlatTable::scalar(int field, std::size_t width) const {
  std::size_t at = position(field);
  return at == 0 ? 0 : integer_at(buffer_, at, width);
}

std::pair<std::size_t, std::size_t> FlatTable::vector(std::size_t at, std::size_t width) const {
  std::size_t begin = follow(buffer_, at);
  auto count = static_cast<std::size_t>(integer_at(buffer_, begin, 4));
  begin += 4;
  if (count > (buffer_.size() - begin) / width) fail_outside(begin);
  return {begin, count};
}

std::string_view FlatTable::bytes(int field) const {
  std::size_t at = position(field);
  if (at == 0) return {};
  auto [begin, count] = vector(at, 1);
  return buffer_.substr(begin, count);
}

std::optional<FlatTable> FlatTable::table(int field) const {
  std::size_t at = position(field);
  if (at == 0) return std::nullopt;
  return FlatTable(buffer_, follow(buffer_, at));
}

template <class Read>
auto FlatTable::list(int field, std::size_t width, Read read) const {
  std::vector<decltype(read(std::size_t{}))> found;
  std::size_t at = position(field);
  if (at == 0) return found;
  auto [begin, count] = vector(at, width);
  for (std::size_t i = 0; i < count; ++i) found.push_back(read(begin + width * i));
  return found;
}

std::vector<FlatTable> FlatTable::tables(int field) const {
  return list(field, 4, [&](std::size_t at) { return FlatTable(buffer_, follow(buffer_, at)); });
}

std::vector<std::string_view> FlatTable::strings(int field) const {
  return list(field, 4, [&](std::size_t at) {
    auto [begin, size] = vector(at, 1);
    return buffer_.substr(begin, size);
  });
}

std::vector<std::uint64_t> FlatTable::numbers(int field, std::size_t width) const {
  return list(field, width, [&](std::size_t at) { return integer_at(buffer_, at, width); });
}

}  // namespace meshard::stablehlo

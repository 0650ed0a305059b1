// Reads tables of FlatBuffers (https://flatbuffers.dev/internals), with every offset checked.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace meshard::stablehlo {

/// A view of one table of a buffer. Fields are numbered as their schema lists them, from 0. A field
/// that is absent has its default value, 0 or empty.
/// @error all functions throw data loss if an offset leads out of the buffer
class FlatTable {
 public:
  /// The root table. @param bytes outlives the table and all that is read from it
  static FlatTable root(std::string_view bytes);

  std::uint64_t u8(int field) const { return scalar(field, 1); }
  std::uint64_t u16(int field) const { return scalar(field, 2); }
  std::uint64_t u32(int field) const { return scalar(field, 4); }
  bool has(int field) const { return position(field) != 0; }
  std::string_view string(int field) const { return bytes(field); }
  /// A vector of bytes.
  std::string_view bytes(int field) const;
  std::optional<FlatTable> table(int field) const;
  std::vector<FlatTable> tables(int field) const;
  std::vector<std::string_view> strings(int field) const;
  /// A vector of unsigned integers of `width` bytes.
  std::vector<std::uint64_t> numbers(int field, std::size_t width) const;

 private:
  FlatTable(std::string_view buffer, std::size_t at);
  /// Where the field's value is; 0: it is absent.
  std::size_t position(int field) const;
  std::uint64_t scalar(int field, std::size_t width) const;
  /// Where the vector of a field begins and its number of elements, all inside the buffer.
  std::pair<std::size_t, std::size_t> vector(std::size_t at, std::size_t width) const;
  /// What `read(at)` makes of each element of the vector of a field.
  template <class Read>
  auto list(int field, std::size_t width, Read read) const;

  std::string_view buffer_;
  std::size_t at_ = 0, vtable_ = 0, vtable_size_ = 0;
};

}  // namespace meshard::stablehlo

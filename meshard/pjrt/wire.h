// The protobuf wire format: the subset that compile options and HLO modules need.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace meshard::pjrt {

struct WireField;

/// Appends the fields of one message. Default values are written too; the caller omits them if
/// necessary.
class WireWriter {
 public:
  /// Appends an integer, bool or enum.
  void add_varint(int field, std::uint64_t value);
  /// Appends a string, bytes or a finished message.
  void add_bytes(int field, std::string_view bytes);
  void add_message(int field, const WireWriter& message) { add_bytes(field, message.bytes_); }
  void add_double(int field, double value);
  /// Appends a field that was read from another message.
  void add_field(const WireField& field);
  /// Appends a packed list of integers. An empty list writes nothing.
  template <class Range>
  void add_packed(int field, const Range& values) {
    WireWriter list;
    for (auto value : values) list.put_varint(static_cast<std::uint64_t>(value));
    if (!list.bytes_.empty()) add_bytes(field, list.bytes_);
  }
  const std::string& bytes() const { return bytes_; }
  std::string take() { return std::move(bytes_); }

 private:
  void put_varint(std::uint64_t value);
  void put_tag(int field, int type);
  std::string bytes_;
};

/// One field of a message: its number, and either a number or a view of its bytes.
struct WireField {
  int number = 0;
  /// 0 varint, 1 eight bytes, 2 length-delimited, 5 four bytes.
  int type = 0;
  std::uint64_t value = 0;
  std::string_view bytes;

  std::int64_t as_int() const { return static_cast<std::int64_t>(value); }
  bool as_bool() const { return value != 0; }
  bool is_bytes() const { return type == 2; }
  double as_double() const;
};

/// Reads the fields of one message in order; never reads past its end. read_message()
/// (wire_fields.h) reads them into a struct.
///
///     WireReader reader(bytes);
///     while (auto field = reader.next()) switch (field->number) ...
///     if (!reader.ok()) ...
class WireReader {
 public:
  explicit WireReader(std::string_view bytes) : rest_(bytes) {}

  /// The next field; none at the end or if the bytes are damaged.
  std::optional<WireField> next();
  /// False after damaged bytes were found.
  bool ok() const { return ok_; }

 private:
  bool read_varint(std::uint64_t& value);
  std::string_view rest_;
  bool ok_ = true;
};

/// Appends the numbers of a repeated field, packed or not. False if the bytes are damaged.
bool append_numbers(const WireField& field, std::vector<std::int64_t>& to);

}  // namespace meshard::pjrt

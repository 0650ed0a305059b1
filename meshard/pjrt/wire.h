// The protobuf wire format, as much of it as compile options and HLO modules need.
// Source: https://protobuf.dev/programming-guides/encoding/
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace meshard::pjrt {

/// Appends the fields of one message. Fields of the default value are written too: what must be
/// left out the caller leaves out.
class WireWriter {
 public:
  /// A whole number, bool or enum.
  void add_varint(int field, std::uint64_t value);
  /// A string, bytes or a finished message.
  void add_bytes(int field, std::string_view bytes);
  void add_message(int field, const WireWriter& message) { add_bytes(field, message.bytes_); }
  void add_double(int field, double value);
  /// A packed list of whole numbers. An empty list writes nothing.
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
  double as_double() const;
};

/// Reads the fields of one message in order; never reads past its end.
///
///     WireReader reader(bytes);
///     while (auto field = reader.next()) switch (field->number) ...
///     if (!reader.ok()) ...
class WireReader {
 public:
  explicit WireReader(std::string_view bytes) : rest_(bytes) {}

  /// The next field; nothing at the end or where the bytes are damaged.
  std::optional<WireField> next();
  /// False once damaged bytes were met.
  bool ok() const { return ok_; }

 private:
  bool read_varint(std::uint64_t& value);
  std::string_view rest_;
  bool ok_ = true;
};

/// Appends the numbers of a repeated field, packed or not. False if the bytes are damaged.
bool append_numbers(const WireField& field, std::vector<std::int64_t>& to);

}  // namespace meshard::pjrt

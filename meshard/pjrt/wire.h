// The protobuf wire format: the subset that compile options and HLO modules need.
#pragma once
#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "meshard/base/result.h"

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
/// reads them into a struct.
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
  std::string_view rest_;
  bool ok_ = true;
};

/// Appends the numbers of a repeated field, packed or not. False if the bytes are damaged.
bool append_numbers(const WireField& field, std::vector<std::int64_t>& to);

/// A `data loss` error: the bytes of `what` are damaged.
Error damaged(std::string_view what);

/// A field that read_message() takes, by its number.
template <class Take>
struct TakenField {
  static constexpr int kOthers = 0;
  int number;
  Take take;
};

/// Calls `take(field)`, which returns nothing, false if the bytes are damaged, or a Result<void>.
template <class Take>
TakenField<Take> on_field(int number, Take take) {
  return {number, std::move(take)};
}

/// Calls `take(field)` for the fields that no argument before takes.
template <class Take>
TakenField<Take> other_fields(Take take) {
  return {TakenField<Take>::kOthers, std::move(take)};
}

/// A field that is a text, a number or a flag, or one element of a list of them.
template <class T>
auto field(int number, T& to) {
  return on_field(number, [&to](const WireField& from) {
    if constexpr (std::same_as<T, std::vector<std::int64_t>>) {
      return append_numbers(from, to);
    } else if constexpr (std::same_as<T, bool>) {
      to = from.as_bool();
      return true;
    } else if constexpr (std::integral<T>) {
      to = static_cast<T>(from.value);
      return true;
    } else if constexpr (requires { to.emplace_back(from.bytes); }) {
      to.emplace_back(from.bytes);
      return from.is_bytes();
    } else {
      to = from.bytes;
      return from.is_bytes();
    }
  });
}

/// A field that is a message, or one element of a list of them. `read(bytes)` returns a Result.
template <class T, class Read>
auto field(int number, T& to, Read read) {
  return on_field(number, [&to, read = std::move(read)](const WireField& from) -> Result<void> {
    MESHARD_ASSIGN_OR_RETURN(auto part, read(from.bytes));
    if constexpr (requires { to.push_back(std::move(part)); })
      to.push_back(std::move(part));
    else
      to = std::move(part);
    return {};
  });
}

/// Reads a message in the order of its bytes; skips fields that no argument takes.
///
///     read_message(bytes, "a part of an axis", field(1, axis.name), field(2, axis.size))
/// @error data loss if the bytes of `what` are damaged; the errors of the arguments
template <class... Takes>
Result<void> read_message(std::string_view bytes, std::string_view what,
                          const TakenField<Takes>&... fields) {
  Result<void> outcome;
  const auto take = [&](const auto& taken, const WireField& from) {
    if (taken.number != taken.kOthers && taken.number != from.number) return false;
    using Outcome = decltype(taken.take(from));
    if constexpr (std::same_as<Outcome, bool>) {
      if (!taken.take(from)) outcome = damaged(what);
    } else if constexpr (std::is_void_v<Outcome>) {
      taken.take(from);
    } else {
      outcome = taken.take(from);
    }
    return true;
  };
  WireReader reader(bytes);
  while (auto from = reader.next()) {
    (void)(take(fields, *from) || ...);
    if (!outcome.ok()) return outcome;
  }
  return reader.ok() ? outcome : damaged(what);
}

}  // namespace meshard::pjrt

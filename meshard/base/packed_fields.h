// Bytes of structs with MESHARD_FIELDS, for files of caches and messages between processes.
//
// The bytes begin with a hash of the names and types of all fields. So bytes of a struct with other
// fields, of another version of meshard, are an error and never misread, and no field has a number.
// Files that other versions have to read are JSON (base/json_fields.h).
#pragma once
#include <bit>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "meshard/base/enum_names.h"
#include "meshard/base/field_notes.h"
#include "meshard/base/fields.h"
#include "meshard/base/result.h"

namespace meshard {
namespace internal {

/// Appends numbers and texts. A text of at most 256 bytes that was written before is a number.
class PackedWriter {
 public:
  /// In 7-bit groups, the lowest first.
  void number(std::uint64_t value);
  /// @pre `text` lives as long as the writer
  void text(std::string_view text);
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
  std::map<std::string_view, std::uint64_t> texts_;
};

/// Reads what PackedWriter wrote. After damaged bytes, everything is 0 and empty.
class PackedReader {
 public:
  explicit PackedReader(std::string_view bytes) : rest_(bytes) {}
  std::uint64_t number();
  /// A number of things that take at least one byte each.
  std::size_t count();
  std::string_view text();
  void fail();
  bool failed() const { return failed_; }
  /// True if all bytes were read, and none was damaged.
  bool is_done() const { return !failed_ && rest_.empty(); }

 private:
  std::string_view rest_;
  std::vector<std::string_view> texts_;
  bool failed_ = false;
};

template <class T>
struct PackedForm;

template <class T>
void pack(PackedWriter& to, const T& value) {
  PackedForm<T>::pack(to, value);
}
template <class T>
void unpack(PackedReader& from, T& to) {
  PackedForm<T>::unpack(from, to);
}
template <class T>
void describe_packed(std::string& out) {
  PackedForm<T>::describe(out);
}

/// Integers and bools. Numbers near 0 are short: the sign is the lowest bit.
template <std::integral T>
struct PackedForm<T> {
  static void describe(std::string& out) { out += std::is_same_v<T, bool> ? "bool" : "int"; }
  static void pack(PackedWriter& to, T value) {
    auto number = static_cast<std::int64_t>(value);
    to.number((static_cast<std::uint64_t>(number) << 1) ^ static_cast<std::uint64_t>(number >> 63));
  }
  static void unpack(PackedReader& from, T& to) {
    std::uint64_t bits = from.number();
    auto number = static_cast<std::int64_t>((bits >> 1) ^ (~(bits & 1) + 1));
    to = static_cast<T>(number);
    if (static_cast<std::int64_t>(to) != number) from.fail();
  }
};

template <std::floating_point T>
struct PackedForm<T> {
  using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  static void describe(std::string& out) { out += sizeof(T) == 4 ? "float" : "double"; }
  static void pack(PackedWriter& to, T value) { to.number(std::bit_cast<Bits>(value)); }
  static void unpack(PackedReader& from, T& to) {
    to = std::bit_cast<T>(static_cast<Bits>(from.number()));
  }
};

template <NamedEnum T>
struct PackedForm<T> {
  static void describe(std::string& out) {
    for (const auto& each : EnumNames<T>::kNames) out.append(each.name).append("|");
  }
  static void pack(PackedWriter& to, T value) { to.number(static_cast<std::uint64_t>(value)); }
  static void unpack(PackedReader& from, T& to) {
    std::uint64_t number = from.number();
    for (const auto& each : EnumNames<T>::kNames)
      if (static_cast<std::uint64_t>(each.value) == number)
        return static_cast<void>(to = each.value);
    from.fail();
  }
};

template <>
struct PackedForm<std::string> {
  static void describe(std::string& out) { out += "text"; }
  static void pack(PackedWriter& to, const std::string& value) { to.text(value); }
  static void unpack(PackedReader& from, std::string& to) { to = from.text(); }
};

template <class T>
struct PackedForm<std::optional<T>> {
  static void describe(std::string& out) {
    describe_packed<T>(out);
    out += "?";
  }
  static void pack(PackedWriter& to, const std::optional<T>& value) {
    to.number(value ? 1 : 0);
    if (value) internal::pack(to, *value);
  }
  static void unpack(PackedReader& from, std::optional<T>& to) {
    to.reset();
    if (from.number() != 0) internal::unpack(from, to.emplace());
  }
};

template <class T>
struct PackedForm<std::vector<T>> {
  static void describe(std::string& out) {
    describe_packed<T>(out);
    out += "*";
  }
  static void pack(PackedWriter& to, const std::vector<T>& value) {
    to.number(value.size());
    for (const auto& each : value) internal::pack<T>(to, each);
  }
  static void unpack(PackedReader& from, std::vector<T>& to) {
    to.clear();
    for (std::size_t left = from.count(); left > 0 && !from.failed(); --left) {
      T each{};
      internal::unpack(from, each);
      to.push_back(std::move(each));
    }
  }
};

template <class Key, class T>
struct PackedForm<std::map<Key, T>> {
  static void describe(std::string& out) {
    describe_packed<Key>(out);
    out += ":";
    describe_packed<T>(out);
    out += "*";
  }
  static void pack(PackedWriter& to, const std::map<Key, T>& value) {
    to.number(value.size());
    for (const auto& [key, each] : value) {
      internal::pack(to, key);
      internal::pack(to, each);
    }
  }
  static void unpack(PackedReader& from, std::map<Key, T>& to) {
    to.clear();
    for (std::size_t left = from.count(); left > 0 && !from.failed(); --left) {
      Key key{};
      internal::unpack(from, key);
      internal::unpack(from, to[std::move(key)]);
    }
  }
};

template <class First, class Second>
struct PackedForm<std::pair<First, Second>> {
  static void describe(std::string& out) {
    describe_packed<First>(out);
    out += "+";
    describe_packed<Second>(out);
  }
  static void pack(PackedWriter& to, const std::pair<First, Second>& value) {
    internal::pack(to, value.first);
    internal::pack(to, value.second);
  }
  static void unpack(PackedReader& from, std::pair<First, Second>& to) {
    internal::unpack(from, to.first);
    internal::unpack(from, to.second);
  }
};

template <class Count, class Unit>
struct PackedForm<std::chrono::duration<Count, Unit>> {
  static void describe(std::string& out) { out += "1/" + std::to_string(Unit::den) + "s"; }
  static void pack(PackedWriter& to, std::chrono::duration<Count, Unit> value) {
    internal::pack(to, value.count());
  }
  static void unpack(PackedReader& from, std::chrono::duration<Count, Unit>& to) {
    Count count{};
    internal::unpack(from, count);
    to = std::chrono::duration<Count, Unit>(count);
  }
};

template <class... T>
struct PackedForm<std::variant<T...>> {
  static void describe(std::string& out) { ((describe_packed<T>(out), out += "/"), ...); }
  static void pack(PackedWriter& to, const std::variant<T...>& value) {
    to.number(value.index());
    std::visit([&](const auto& held) { internal::pack(to, held); }, value);
  }
  static void unpack(PackedReader& from, std::variant<T...>& to) {
    std::uint64_t index = from.number(), i = 0;
    if (index >= sizeof...(T)) return from.fail();
    ((i++ == index ? internal::unpack(from, to.template emplace<T>()) : void()), ...);
  }
};

template <HasFields T>
struct PackedForm<T> {
  static constexpr bool travels(std::string_view name) {
    return !is_derived(name) && !lists_name(field_notes<T>().local, name);
  }
  static void describe(std::string& out) {
    const T example{};
    out += "{";
    visit_fields(example, [&](std::string_view name, const auto& field) {
      if (!travels(name)) return;
      out.append(name).append(" ");
      describe_packed<std::remove_cvref_t<decltype(field)>>(out);
      out += ",";
    });
    out += "}";
  }
  static void pack(PackedWriter& to, const T& value) {
    visit_fields(value, [&](std::string_view name, const auto& field) {
      if (travels(name)) internal::pack(to, field);
    });
  }
  static void unpack(PackedReader& from, T& to) {
    visit_fields(to, [&](std::string_view name, auto& field) {
      if (travels(name)) internal::unpack(from, field);
    });
  }
};

/// A hash of a description of packed bytes.
std::uint64_t packed_format(const std::string& description);
/// The error for bytes that are not those of a value.
Error not_packed(std::string_view what);

template <class T>
std::uint64_t packed_format_of() {
  static const std::uint64_t format = [] {
    std::string description;
    describe_packed<T>(description);
    return packed_format(description);
  }();
  return format;
}

}  // namespace internal

/// The bytes of a value. Equal values give equal bytes.
template <class T>
std::string to_packed(const T& value) {
  internal::PackedWriter writer;
  writer.number(internal::packed_format_of<T>());
  internal::pack(writer, value);
  return writer.take();
}

/// Reads what to_packed() wrote.
/// @param what the prefix of messages, in brackets: `compile`
/// @error data loss: the bytes are damaged, truncated, of another value or of another version
template <class T>
Result<T> from_packed(std::string_view bytes, std::string_view what) {
  internal::PackedReader reader(bytes);
  T value{};
  if (reader.number() != internal::packed_format_of<T>()) return internal::not_packed(what);
  internal::unpack(reader, value);
  if (!reader.is_done()) return internal::not_packed(what);
  return value;
}

}  // namespace meshard

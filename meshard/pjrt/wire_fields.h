// Reads messages of the protobuf wire format into structs: which field goes where.
#pragma once
#include <concepts>
#include <type_traits>
#include <utility>

#include "meshard/base/result.h"
#include "meshard/pjrt/wire.h"

namespace meshard::pjrt {

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
/// @error data loss if the bytes of `what` are damaged; those of the arguments
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

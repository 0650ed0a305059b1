// How each kind of attribute field is printed, parsed and turned into a cache key.
#pragma once
#include <array>
#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "meshard/array/host_array.h"
#include "meshard/array/shape.h"
#include "meshard/base/enum_names.h"
#include "meshard/base/result.h"
#include "meshard/sharding/sharding.h"

namespace meshard {

class Body;

namespace attribute_text {

template <class T>
concept IntegerList = requires(const T& list) {  ///< A list of std::int64_t.
  { list.size() } -> std::convertible_to<std::size_t>;
  { list[0] } -> std::convertible_to<std::int64_t>;
  requires std::same_as<std::remove_cvref_t<decltype(list[0])>, std::int64_t>;
};

void print(std::string& out, bool value);  ///< Appends an attribute as parse() reads it.
void print(std::string& out, std::int64_t value);
void print(std::string& out, double value);
void print(std::string& out, const std::string& value);
void print(std::string& out, DType value);
void print(std::string& out, const Shape& value);
void print(std::string& out, const HostArray& value);
void print(std::string& out, const Sharding& value);
void print(std::string& out, const AxisList& value);
void print(std::string& out, const std::vector<Body>& value);                      // body.cc
void print_list(std::string& out, const std::int64_t* values, std::size_t count);  ///< As `[1, 2]`.
template <IntegerList T>
requires(!std::same_as<T, Shape>) void print(std::string& out, const T& list) {
  print_list(out, list.empty() ? nullptr : &list[0], list.size());
}
template <NamedEnum E>
void print(std::string& out, E value) {
  out.append(enum_name(value));
}
template <class T>
void print(std::string& out, const std::optional<T>& value) {
  if (value)
    print(out, *value);
  else
    out.append("none");
}

/// Keys hold raw values; every variable-length part is preceded by its length.
void append_key_bytes(std::string& out, const void* bytes, std::size_t count);
void append_key(std::string& out, const std::string& value);
void append_key(std::string& out, const Shape& value);
void append_key(std::string& out, const TensorType& value);
void append_key(std::string& out, const HostArray& value);
void append_key(std::string& out, const Sharding& value);
void append_key(std::string& out, const AxisList& value);
void append_key(std::string& out, const std::vector<Body>& value);  // body.cc
template <class T>
requires(std::is_arithmetic_v<T> || std::is_enum_v<T>) void append_key(std::string& out,
                                                                       const T& value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}
template <IntegerList T>
requires(!std::same_as<T, Shape>) void append_key(std::string& out, const T& list) {
  append_key_bytes(out, list.empty() ? nullptr : &list[0], list.size() * sizeof(std::int64_t));
}
template <class T>
void append_key(std::string& out, const std::optional<T>& value) {
  out.push_back(value ? '+' : '-');
  if (value) append_key(out, *value);
}

Result<void> parse(std::string_view text, bool& value);  ///< Reads what print() wrote.
Result<void> parse(std::string_view text, std::int64_t& value);
Result<void> parse(std::string_view text, double& value);
Result<void> parse(std::string_view text, std::string& value);
Result<void> parse(std::string_view text, DType& value);
Result<void> parse(std::string_view text, Shape& value);
Result<void> parse(std::string_view text, HostArray& value);
Result<void> parse(std::string_view text, std::optional<Sharding>& value);
Result<void> parse(std::string_view text, AxisList& value);
Result<std::vector<std::int64_t>> parse_list(std::string_view text);  ///< Of `[1, 2]`.
template <IntegerList T>
requires(!std::same_as<T, Shape>) Result<void> parse(std::string_view text, T& list) {
  MESHARD_ASSIGN_OR_RETURN(auto numbers, parse_list(text));
  list = T(numbers.begin(), numbers.end());
  return {};
}
template <NamedEnum E>
Result<void> parse(std::string_view text, E& value) {
  for (const auto& [known, name] : EnumNames<E>::kNames)
    if (text == name) {
      value = known;
      return {};
    }
  return Error(ErrorCode::kInvalidArgument, cat("[graph] unknown name '", text, "'"));
}

/// Splits `a=1, b=[2, 3]` into fields; brackets and quotes nest.
class Reader {
 public:
  explicit Reader(std::string_view text);

  template <class T>
  void field(std::string_view name, T& value) {
    if (error_) return;
    std::optional<std::string_view> text = take(name);
    if (!text) return;
    if (Result<void> parsed = parse(*text, value); !parsed.ok())
      error_ = parsed.error().with_note(cat("while reading attribute ", name));
  }
  /// @error the first failure, or fields that were never requested.
  Result<void> finish();

 private:
  std::optional<std::string_view> take(std::string_view name);
  std::vector<std::pair<std::string_view, std::string_view>> fields_;
  std::optional<Error> error_;
};

/// Splits `text` at each `separator` outside brackets and quotes; pieces are trimmed. Empty text
/// gives no pieces.
std::vector<std::string_view> split_outside_brackets(std::string_view text, char separator);

}  // namespace attribute_text
}  // namespace meshard

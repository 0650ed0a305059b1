#include "meshard/base/json_fields.h"

#include <charconv>

#include "meshard/base/cat.h"

namespace meshard {
namespace {

// Reads all of a number's text.
template <class T>
std::optional<T> number_of_text(const std::string& text) {
  T number{};
  auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (wrong != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

}  // namespace

JsonPlace JsonPlace::operator[](std::string_view key) const {
  const JsonValue* found = value_->find(key);
  if (!found) fail(cat("missing member `", key, "`"));
  return {*found, *this, key, 0};
}

std::size_t JsonPlace::size() const {
  if (!value_->is(JsonValue::Kind::kArray)) fail("expected an array");
  return value_->elements.size();
}

JsonPlace JsonPlace::element(std::size_t i) const {
  return {value_->elements.at(i), *this, std::string_view(), i};
}

const std::string& JsonPlace::text() const {
  if (!is_text()) fail("expected a string");
  return value_->text;
}

bool JsonPlace::truth() const {
  if (!value_->is(JsonValue::Kind::kBool)) fail("expected true or false");
  return value_->truth;
}

double JsonPlace::number() const {
  if (is_null()) return std::numeric_limits<double>::infinity();
  std::optional<double> number;
  if (value_->is(JsonValue::Kind::kNumber)) number = number_of_text<double>(value_->text);
  if (!number) fail("expected a number");
  return *number;
}

std::int64_t JsonPlace::integer() const {
  std::optional<std::int64_t> number;
  if (value_->is(JsonValue::Kind::kNumber)) number = number_of_text<std::int64_t>(value_->text);
  if (!number) fail("expected a 64-bit integer");
  return *number;
}

std::int64_t JsonPlace::integer(std::int64_t low, std::int64_t high) const {
  std::int64_t number = integer();
  if (number < low || number > high)
    fail(cat("expected a number from ", low, " to ", high, ", got ", number));
  return number;
}

void JsonPlace::fail(std::string_view what) const {
  std::string where = path();
  throw Error(ErrorCode::kDataLoss,
              cat("[", format_, "] ", where, where.empty() ? "" : ": ", what));
}

std::string JsonPlace::path() const {
  if (!parent_) return "";
  std::string before = parent_->path();
  if (key_.empty()) return cat(before, "[", index_, "]");
  return cat(before, before.empty() ? "" : ".", key_);
}

}  // namespace meshard

#include "meshard/stablehlo/module.h"

#include <algorithm>
#include <charconv>

#include "meshard/base/cat.h"
#include "meshard/stablehlo/internal/module_parser.h"

namespace meshard::stablehlo {

std::string_view find_attribute(const ModuleAttributes& attributes, std::string_view name) {
  for (const ModuleAttribute& attribute : attributes)
    if (attribute.name == name) return attribute.value;
  return {};
}

std::string_view ModuleOp::text_before_location() const {
  if (location.empty()) return text;
  std::string_view before = text.substr(0, static_cast<std::size_t>(location.data() - text.data()));
  std::size_t last = before.find_last_not_of(" \t\r\n");
  return before.substr(0, last == std::string_view::npos ? 0 : last + 1);
}

Result<Module> Module::parse(std::string text) {
  return caught([&] {
    auto state = std::make_shared<State>();
    state->text = std::move(text);
    parse_module(*state);
    return Module(std::move(state));
  });
}

std::string_view Module::text() const { return state_->text; }
const std::vector<ModuleOp>& Module::ops() const { return state_->ops; }
const std::vector<ModuleVariable>& Module::variables() const { return state_->variables; }
const std::vector<ModuleFunction>& Module::functions() const { return state_->functions; }

const ModuleFunction* Module::function(std::string_view name) const {
  for (const ModuleFunction& function : state_->functions)
    if (function.name == name) return &function;
  return nullptr;
}

TextRange Module::range(std::string_view part) const {
  auto begin = static_cast<std::size_t>(part.data() - state_->text.data());
  return {begin, begin + part.size()};
}

std::string_view Module::resolve(std::string_view value) const {
  auto alias = state_->aliases.find(value);
  return alias == state_->aliases.end() ? value : alias->second;
}

std::string Module::location_name(std::string_view location) const {
  for (int hops = 0; hops < 4; ++hops) {
    TextCursor cursor(location);
    if (!cursor.accept("loc(")) return {};
    if (cursor.peek_quoted()) {
      std::string name = cursor.quoted();
      // `"file":3:4` is the place in a file, not a name.
      return cursor.peek(":") ? std::string() : name;
    }
    auto alias = state_->aliases.find(cursor.word());
    if (alias == state_->aliases.end()) return {};
    location = alias->second;
  }
  return {};
}

namespace {

// Locations in locations. The limit keeps damaged input from exhausting the stack.
constexpr int kDeepestPlace = 50;

std::string first_place(const Module& module, std::string_view location, int depth = 0) {
  if (depth > kDeepestPlace) return "";
  for (std::size_t at = 0; at < location.size(); ++at) {
    if (location[at] == '"') {
      std::size_t end = location.find('"', at + 1);
      if (end == std::string_view::npos) return "";
      std::size_t digits = end + 2;
      while (digits < location.size() && location[digits] >= '0' && location[digits] <= '9')
        ++digits;
      if (end + 1 < location.size() && location[end + 1] == ':' && digits > end + 2)
        return cat(location.substr(at + 1, end - at - 1),
                   location.substr(end + 1, digits - end - 1));
      at = end;
    } else if (location[at] == '#') {
      std::size_t end = std::min(location.find_first_of("(), ", at), location.size());
      std::string_view alias = location.substr(at, end - at), of = module.resolve(alias);
      if (of != alias)
        if (std::string place = first_place(module, of, depth + 1); !place.empty()) return place;
      at = end;
    }
  }
  return "";
}

}  // namespace

std::string Module::source_line(std::string_view location) const {
  return first_place(*this, location);
}

namespace {

// The integers of `dense<"0x0100000000000000"> : tensor<1xi64>`: their bytes, the lowest first.
std::vector<std::int64_t> integers_of_bytes(std::string_view attribute) {
  std::size_t begin = attribute.find("0x") + 2,
              end = std::min(attribute.find('"', begin), attribute.size());
  std::string_view type = attribute.substr(end);
  std::size_t width = type.find("i8>") != std::string_view::npos    ? 1
                      : type.find("i16>") != std::string_view::npos ? 2
                      : type.find("i32>") != std::string_view::npos ? 4
                                                                    : 8;
  std::vector<std::int64_t> out;
  for (; begin + 2 * width <= end; begin += 2 * width) {
    std::uint64_t number = 0;
    for (std::size_t byte = width; byte-- > 0;) {
      int high = hex_digit(attribute[begin + 2 * byte]),
          low = hex_digit(attribute[begin + 2 * byte + 1]);
      if (high < 0 || low < 0) return out;
      number = number << 8 | static_cast<std::uint64_t>(high * 16 + low);
    }
    // Negative numbers keep their sign.
    std::size_t unused = 64 - 8 * width;
    out.push_back(static_cast<std::int64_t>(number << unused) >> unused);
  }
  return out;
}

}  // namespace

std::vector<std::int64_t> integers_of(std::string_view attribute) {
  if (attribute.starts_with("dense<\"0x")) return integers_of_bytes(attribute);
  std::vector<std::int64_t> out;
  // The types of elements are not numbers: `array<i64: 1, 0>`, `3 : i64`, `dense<...> :
  // tensor<2xi64>`.
  if (attribute.starts_with("array<"))
    attribute.remove_prefix(std::min(attribute.find(':'), attribute.size()));
  attribute = attribute.substr(0, attribute.find(" : "));
  const char* end = attribute.data() + attribute.size();
  for (const char* at = attribute.data(); at < end;) {
    std::int64_t number = 0;
    auto [stop, error] = std::from_chars(at, end, number);
    if (error == std::errc()) out.push_back(number);
    at = error == std::errc() ? stop : at + 1;
  }
  return out;
}

std::string plain_text(std::string_view attribute) {
  if (!attribute.starts_with('"')) return std::string(attribute);
  return TextCursor(attribute).quoted();
}

}  // namespace meshard::stablehlo

#include "tools/conformance/devicemesh/layout_json.h"

#include "meshard/base/cat.h"
#include "meshard/base/error.h"

namespace meshard::conformance {
namespace {

constexpr std::int64_t kMostValues = 96;

}  // namespace

IntTuple tuple_of(const Json& json) {
  if (json.is_null()) return hole;
  if (json.is_number_integer()) return json.get<std::int64_t>();
  if (!json.is_array()) throw_invalid({}, "[conformance] not an integer tuple: ", json.dump());
  std::vector<IntTuple> elements;
  for (const Json& element : json) elements.push_back(tuple_of(element));
  return IntTuple(std::span<const IntTuple>(elements));
}

Json json_of(const IntTuple& tuple) {
  if (tuple.is_integer()) return tuple.value() == hole ? Json() : Json(tuple.value());
  Json array = Json::array();
  for (std::size_t i = 0; i < tuple.rank(); ++i) array.push_back(json_of(tuple[i]));
  return array;
}

Layout layout_of(const Json& json) {
  IntTuple shape = tuple_of(json.at("shape"));
  if (json.at("stride").is_null()) return Layout(shape);
  return Layout(shape, tuple_of(json.at("stride")));
}

std::vector<Layout> layouts_of(const Json& json) {
  std::vector<Layout> layouts;
  for (const Json& layout : json) layouts.push_back(layout_of(layout));
  return layouts;
}

Json json_of(const Layout& layout) {
  return {{"shape", json_of(layout.shape())}, {"stride", json_of(layout.stride())}};
}

Json json_with_values(const Layout& layout) {
  Json json = json_of(layout);
  if (layout.size() <= kMostValues) json["values"] = values_of(layout);
  return json;
}

std::vector<std::int64_t> values_of(const Layout& layout) {
  std::vector<std::int64_t> values;
  values.reserve(static_cast<std::size_t>(layout.size()));
  for (std::int64_t i = 0; i < layout.size(); ++i) values.push_back(layout(i));
  return values;
}

}  // namespace meshard::conformance

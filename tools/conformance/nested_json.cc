#include "tools/conformance/nested_json.h"

namespace meshard::conformance {
namespace {

using Json = nlohmann::json;

void collect(const Json& json, std::vector<std::int64_t>& data) {
  if (json.is_array())
    for (const Json& element : json) collect(element, data);
  else
    data.push_back(json);
}

}  // namespace

Json nested(std::span<const std::int64_t> data, std::span<const std::int64_t> shape) {
  if (shape.empty()) return data[0];
  Json array = Json::array();
  std::size_t count = static_cast<std::size_t>(shape[0]);
  std::size_t step = count ? data.size() / count : 0;
  for (std::size_t i = 0; i < count; ++i)
    array.push_back(nested(data.subspan(i * step, step), shape.subspan(1)));
  return array;
}

FlatArray flat(const Json& nested) {
  FlatArray array;
  for (const Json* at = &nested; at->is_array(); at = &at->front()) {
    array.shape.push_back(static_cast<std::int64_t>(at->size()));
    if (at->empty()) break;
  }
  collect(nested, array.data);
  return array;
}

}  // namespace meshard::conformance

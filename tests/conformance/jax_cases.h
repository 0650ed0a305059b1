// Reads the golden cases of tests/golden/jax as arrays.
#pragma once
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "meshard/array/host_array.h"
#include "meshard/base/cat.h"

namespace meshard::conformance {

using Json = nlohmann::json;

inline Json read_golden(const std::string& name) {
  std::string path = cat(MESHARD_GOLDEN, "/jax/", name);
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot read " + path);
  return Json::parse(file);
}

inline DType dtype_of_json(const std::string& name) {
  if (name == "bool") return DType::bool_;
  if (name == "bfloat16") return DType::bf16;
  if (name.starts_with("float")) return parse_dtype("f" + name.substr(5)).value();
  if (name.starts_with("uint")) return parse_dtype("u" + name.substr(4)).value();
  return parse_dtype("i" + name.substr(3)).value();
}

/// `{shape, dtype, data}`; non-finite numbers are strings.
inline HostArray array_of_json(const Json& json) {
  std::vector<double> values;
  for (const Json& value : json.at("data")) {
    if (value.is_boolean())
      values.push_back(value.get<bool>());
    else if (value == "nan")
      values.push_back(std::numeric_limits<double>::quiet_NaN());
    else if (value.is_string())
      values.push_back(value == "inf" ? HUGE_VAL : -HUGE_VAL);
    else
      values.push_back(value.get<double>());
  }
  Shape shape(json.at("shape").get<std::vector<std::int64_t>>());
  return HostArray::from_vector(std::move(values), shape)
      .astype(dtype_of_json(json.at("dtype").get<std::string>()));
}

inline std::vector<HostArray> arrays_of_json(const Json& test, const char* field) {
  std::vector<HostArray> arrays;
  if (test.contains(field))
    for (const Json& json : test.at(field)) arrays.push_back(array_of_json(json));
  return arrays;
}

}  // namespace meshard::conformance

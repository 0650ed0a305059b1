#include "tools/conformance/jax/numerics/arrays.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <stdexcept>

#include "meshard/base/cat.h"
#include "tools/conformance/difference.h"

namespace meshard::conformance {
namespace {

using Json = nlohmann::json;

double number(const Json& value) {
  if (value.is_boolean()) return value.get<bool>() ? 1 : 0;
  if (!value.is_string()) return value.get<double>();
  if (value == "nan") return std::numeric_limits<double>::quiet_NaN();
  return value == "inf" ? HUGE_VAL : -HUGE_VAL;
}

Json json_number(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return value;
}

std::string name_in_jax(DType dtype) {
  if (dtype == DType::bool_) return "bool";
  if (dtype == DType::bf16) return "bfloat16";
  if (is_complex(dtype)) return dtype == DType::c64 ? "complex64" : "complex128";
  std::string name(to_string(dtype));
  if (is_unsigned_integer(dtype)) return "uint" + name.substr(1);
  return (is_integer(dtype) ? "int" : "float") + name.substr(1);
}

// The numbers of an element: one, or two if it is complex.
std::vector<double> parts_of(const Json& element) {
  if (!element.is_array()) return {number(element)};
  return {number(element[0]), number(element[1])};
}

double largest_of(const Json& data) {
  double largest = 0;
  for (const Json& element : data)
    for (double part : parts_of(element))
      if (std::isfinite(part)) largest = std::max(largest, std::abs(part));
  return largest;
}

bool is_close(double ours, double recorded, double allowed) {
  if (std::isnan(recorded)) return std::isnan(ours);
  if (std::isinf(recorded) || std::isinf(ours)) return ours == recorded;
  return std::abs(ours - recorded) <= allowed;
}

}  // namespace

DType dtype_in_jax(const std::string& name) {
  static const std::map<std::string, const char*> kShort{
      {"bool", "bool"}, {"bfloat16", "bf16"}, {"complex64", "c64"}, {"complex128", "c128"}};
  std::string ours = name;
  if (auto found = kShort.find(name); found != kShort.end())
    ours = found->second;
  else if (name.starts_with("float"))
    ours = "f" + name.substr(5);
  else if (name.starts_with("uint"))
    ours = "u" + name.substr(4);
  else if (name.starts_with("int"))
    ours = "i" + name.substr(3);
  Result<DType> dtype = parse_dtype(ours);
  if (!dtype.ok()) throw std::runtime_error(dtype.error().message());
  return dtype.value();
}

HostArray host_array_of(DType dtype, const Shape& shape, const Json& data) {
  // Not through doubles, which cannot represent all 64-bit integers.
  if (dtype == DType::i64 || dtype == DType::u64) {
    std::vector<std::int64_t> whole;
    for (const Json& value : data)
      whole.push_back(value.is_number_unsigned()
                          ? static_cast<std::int64_t>(value.get<std::uint64_t>())
                          : value.get<std::int64_t>());
    return HostArray::copy_of({dtype, shape}, whole.data());
  }
  if (is_complex(dtype)) {
    std::vector<double> parts;
    for (const Json& element : data)
      for (double part : parts_of(element)) parts.push_back(part);
    return HostArray::copy_of({DType::c128, shape}, parts.data()).astype(dtype);
  }
  std::vector<double> values;
  for (const Json& value : data) values.push_back(number(value));
  return HostArray::from_vector(std::move(values), shape).astype(dtype);
}

HostArray array_in_jax(const Json& fields) {
  return host_array_of(dtype_in_jax(fields.at("dtype").get<std::string>()),
                       Shape(fields.at("shape").get<std::vector<std::int64_t>>()),
                       fields.at("data"));
}

std::vector<HostArray> arrays_in_jax(const Json& list) {
  std::vector<HostArray> arrays;
  for (const Json& fields : list) arrays.push_back(array_in_jax(fields));
  return arrays;
}

Json data_of(const HostArray& array) {
  Json data = Json::array();
  if (array.dtype() == DType::bool_)
    for (double value : array.astype(DType::f64).to_vector<double>()) data.push_back(value != 0);
  else if (array.dtype() == DType::u64)
    data = array.to_vector<std::uint64_t>();
  else if (is_integer(array.dtype()))
    data = array.astype(DType::i64).to_vector<std::int64_t>();
  else if (is_complex(array.dtype()))
    for (Complex128 value : array.astype(DType::c128).to_vector<Complex128>())
      data.push_back({json_number(value.real), json_number(value.imag)});
  else
    for (double value : array.astype(DType::f64).to_vector<double>())
      data.push_back(json_number(value));
  return data;
}

Json json_in_jax(const HostArray& array) {
  return {{"shape", array.shape().sizes()},
          {"dtype", name_in_jax(array.dtype())},
          {"data", data_of(array)}};
}

std::string array_difference(const Json& ours, const Json& recorded, double distance) {
  for (const char* field : {"dtype", "shape"})
    if (ours.at(field) != recorded.at(field))
      return cat(field, ": ours ", ours.at(field).dump(), ", recorded ", recorded.at(field).dump());
  const Json &mine = ours.at("data"), &theirs = recorded.at("data");
  const std::string dtype = recorded.at("dtype");
  bool exact = dtype == "bool" || dtype.starts_with("int") || dtype.starts_with("uint");
  if (exact) return first_difference(mine, theirs);
  double largest = largest_of(theirs);
  bool wide = dtype == "float64" || dtype == "complex128";
  double unit =
      wide ? std::nextafter(largest, HUGE_VAL) - largest
           : static_cast<double>(std::nextafter(static_cast<float>(largest), HUGE_VALF)) - largest;
  double allowed = std::max(distance, 4 * unit);
  for (std::size_t i = 0; i < theirs.size(); ++i) {
    std::vector<double> a = parts_of(mine[i]), b = parts_of(theirs[i]);
    for (std::size_t part = 0; part < b.size(); ++part)
      if (!is_close(a[part], b[part], allowed))
        return cat("[", i, "]: ours ", mine[i].dump(), ", recorded ", theirs[i].dump(),
                   ", allowed ", allowed);
  }
  return {};
}

}  // namespace meshard::conformance

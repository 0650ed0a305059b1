// random.json: keys, bits and random numbers of JAX's partitionable Threefry scheme, compared
// exactly: floats must have the recorded bits, except for rounding on other CPUs (jax/rules.h).
// Cases of the older scheme are unknown.
#include <cstdio>
#include <cstdlib>

#include "meshard/graph/leaf.h"
#include "meshard/ops/all.h"
#include "tools/conformance/difference.h"
#include "tools/conformance/jax/rules.h"
#include "tools/conformance/suite.h"
#include "tools/conformance/txla/inputs.h"

namespace meshard::conformance {
namespace random_cases {

DType dtype_of_name(const std::string& name) {
  if (name == "bool") return DType::bool_;
  if (name == "bfloat16") return DType::bf16;
  if (name.starts_with("float")) return parse_dtype("f" + name.substr(5)).value();
  if (name.starts_with("uint")) return parse_dtype("u" + name.substr(4)).value();
  if (name.starts_with("int")) return parse_dtype("i" + name.substr(3)).value();
  throw std::runtime_error("unknown dtype " + name);
}

std::string name_of_dtype(DType dtype) {
  std::string name(to_string(dtype));
  if (dtype == DType::bool_) return "bool";
  if (dtype == DType::bf16) return "bfloat16";
  return (name[0] == 'f' ? "float" : name[0] == 'u' ? "uint" : "int") + name.substr(1);
}

// A float in the file's form: nine digits, which distinguish all f32 values.
Json json_of_float(double value) {
  if (value != value) return "nan";
  if (value - value != 0) return value > 0 ? "inf" : "-inf";
  char digits[32];
  std::snprintf(digits, sizeof digits, "%.9g", value);
  return std::strtod(digits, nullptr);
}

template <class T>
void append_values(const HostArray& array, Json& data) {
  const HostArray converted = array.astype(dtype_of<T>());
  for (T value : converted.data<T>()) {
    if constexpr (std::is_same_v<T, double>)
      data.push_back(json_of_float(value));
    else
      data.push_back(value);
  }
}

Json json_of_array(const HostArray& array) {
  Json data = Json::array();
  if (array.dtype() == DType::bool_)
    append_values<bool>(array, data);
  else if (is_floating(array.dtype()))
    append_values<double>(array, data);
  else if (is_unsigned_integer(array.dtype()))
    append_values<std::uint64_t>(array, data);
  else
    append_values<std::int64_t>(array, data);
  return {{"shape", array.shape().sizes()},
          {"dtype", name_of_dtype(array.dtype())},
          {"data", std::move(data)}};
}

Tensor block(const Json& params) {
  auto words = [&](const char* field) {
    return params.at(field).get<std::vector<std::uint32_t>>();
  };
  std::vector<std::uint32_t> counter = words("counter");
  auto word = [&](std::size_t i) { return from_host(HostArray::scalar(counter.at(i))); };
  auto [first, second] =
      random::threefry(from_host(HostArray::from_vector(words("key"))), word(0), word(1));
  return stack({first, second});
}

// Undefined if `what` is unknown.
Tensor drawn(const std::string& what, const Tensor& key, const Json& params) {
  Shape shape = params.contains("shape") ? shape_of(params.at("shape")) : Shape{};
  std::string name = params.value("dtype", "");
  auto dtype = [&](DType otherwise) { return name.empty() ? otherwise : dtype_of_name(name); };
  auto is = [&](std::string_view kind) { return what.find(kind) != std::string::npos; };
  auto number = [&](const char* field, double otherwise) { return params.value(field, otherwise); };
  DType floats = dtype(DType::f32);
  if (is("key data")) return key;
  if (is("split")) return random::split_into(key, Shape{params.at("num").get<std::int64_t>()});
  if (is("fold_in")) return random::fold_in(key, params.at("data").get<std::int64_t>());
  if (is("words")) return random::bits(key, shape, dtype(DType::u32));
  if (is("truncated normal"))
    return random::truncated_normal(key, number("lower", -2), number("upper", 2), shape, floats);
  if (is("normal")) return random::normal(key, shape, floats);
  if (is("uniform"))
    return random::uniform(key, shape, floats, number("minval", 0), number("maxval", 1));
  if (is("bernoulli")) return random::bernoulli(key, number("p", 0.5), shape);
  if (is("integers"))
    return random::randint(key, shape, params.at("minval"), params.at("maxval"), dtype(DType::i32));
  if (is("permutation")) return random::permutation(key, params.at("n").get<std::int64_t>());
  if (is("categorical"))
    return random::categorical(
        key, from_host(HostArray::from_vector(params.at("logits").get<std::vector<float>>())), -1,
        shape);
  if (is("gumbel")) return random::gumbel(key, shape, floats);
  if (is("exponential")) return random::exponential(key, shape, floats);
  if (is("laplace")) return random::laplace(key, shape, floats);
  if (is("cauchy")) return random::cauchy(key, shape, floats);
  if (is("logistic")) return random::logistic(key, shape, floats);
  if (is("rademacher")) return random::rademacher(key, shape, dtype(DType::i32));
  return {};
}

Json answer_to(const Json& test, const GoldenFile&) {
  const Json& params = test.at("params");
  const std::string what = test.at("what");
  Tensor out;
  if (what.find("block") != std::string::npos) {
    out = block(params);
  } else {
    // Only JAX's newer scheme: the numbers of the older one depend on the size of the whole array.
    if (!params.value("partitionable", true)) return {};
    out = drawn(what, random::key(params.at("seed").get<std::int64_t>()), params);
  }
  if (!out.defined()) return {};
  return {{"outputs", {json_of_array(out.to_host())}}};
}

Verdict judge_case(const Json& test, const Json& answer) {
  std::string different = first_difference(answer, {{"outputs", test.at("outputs")}});
  if (different.empty()) return {};
  // Plain uniform numbers are made of bits alone, so they are exact on every CPU.
  bool is_rounded = test.at("what").get<std::string>().find("uniform") == std::string::npos ||
                    test.at("params").contains("minval");
  const Json &ours = answer.at("outputs"), &recorded = test.at("outputs");
  if (is_rounded && ours.size() == 1 && recorded.size() == 1 &&
      differs_by_rounding(ours[0], recorded[0]))
    return Verdict::by(Rule::kRounding);
  return Verdict::failed(std::move(different));
}

int one_device(const Json&) { return 1; }

}  // namespace random_cases

Suite random_suite() {
  using namespace random_cases;
  return {"random.json", answer_to, judge_case, one_device};
}

}  // namespace meshard::conformance

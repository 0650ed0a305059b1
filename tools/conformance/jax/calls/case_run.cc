#include "tools/conformance/jax/calls/case_run.h"

#include <functional>

#include "meshard/meshard.h"
#include "tools/conformance/jax/numerics/arrays.h"

namespace meshard::conformance {
namespace {

using Function = std::function<Tensors(const Tensors&)>;

Tensor read(const Json& fields) {
  Result<DType> dtype = parse_dtype(fields.at("d").get<std::string>());
  if (!dtype.ok()) throw Unreadable(dtype.error().message());
  return from_host(host_array_of(
      dtype.value(), Shape(fields.at("s").get<std::vector<std::int64_t>>()), fields.at("v")));
}

Json written(const Tensor& tensor) {
  HostArray array = tensor.to_host();
  return {{"d", std::string(to_string(array.dtype()))},
          {"s", array.shape().sizes()},
          {"v", data_of(array)}};
}

Tensors read_all(const Json& test, const char* field) {
  Tensors tensors;
  if (test.contains(field))
    for (const Json& fields : test.at(field)) tensors.push_back(read(fields));
  return tensors;
}

PartitionSpec spec_in(const Json& entries) {
  std::vector<DimensionSpec> dimensions;
  for (const Json& entry : entries) {
    AxisList axes;
    for (const Json& name : entry) axes.push_back(AxisRef(name.get<std::string>()));
    dimensions.emplace_back(axes.empty() ? DimensionSpec(none) : DimensionSpec(std::move(axes)));
  }
  return PartitionSpec(std::move(dimensions));
}

Tensors operands_of(const Json& test) {
  Tensors operands = read_all(test, "x");
  if (!test.contains("mesh")) return operands;
  std::vector<MeshAxis> axes;
  for (const Json& axis : test.at("mesh").at("axes")) axes.push_back({axis[0], axis[1]});
  Mesh mesh(std::move(axes), test.at("mesh").at("devices").get<std::vector<std::int64_t>>());
  for (std::size_t i = 0; i < operands.size(); ++i)
    operands[i] = mark_sharding(operands[i], mesh, spec_in(test.at("specs").at(i)));
  return operands;
}

bool is_inexact(const Tensor& tensor) {
  return is_floating(tensor.dtype()) || is_complex(tensor.dtype());
}

Tensors inexact_of(const Tensors& tensors) {
  Tensors inexact;
  for (const Tensor& tensor : tensors)
    if (is_inexact(tensor)) inexact.push_back(tensor);
  return inexact;
}

// The inexact results of f, as a function of its inexact operands.
Function inexact_part(const Function& f, const Tensors& operands) {
  return [f, operands](const Tensors& primals) {
    Tensors all = operands;
    std::size_t next = 0;
    for (Tensor& operand : all)
      if (is_inexact(operand)) operand = primals[next++];
    return inexact_of(f(all));
  };
}

// vmap of f: `in_axes` has the batch dimension of each operand, or null.
Function in_batch(const Function& f, const Attributes& how) {
  std::vector<BatchAxis> axes;
  for (const Json& axis : how.at("in_axes"))
    axes.push_back(axis.is_null() ? BatchAxis(none) : BatchAxis(axis.get<std::int64_t>()));
  return vmap(f, {.in_axes = BatchAxes(std::move(axes))});
}

// scan of f: the carry starts at 1; each step halves it and adds the sum of the first result.
Function in_scan(const Function& f, const Attributes& how) {
  return [f, reverse = how.flag("reverse")](const Tensors& x) {
    auto step = [&f](const Tensor& carry, const Tensors& slices) {
      Tensors results = f(slices);
      return std::pair(carry * 0.5 + astype(sum(results[0]), DType::f32), results);
    };
    auto [total, results] = scan(step, full({}, 1.0), x, {.reverse = reverse});
    results.insert(results.begin(), total);
    return results;
  };
}

// Multiplies the inexact operands by `factor`.
Tensors scaled(Tensors operands, double factor) {
  for (Tensor& operand : operands)
    if (is_inexact(operand)) operand = operand * factor;
  return operands;
}

// cond: the first operand selects f, or f of the halved operands.
Function in_branch(const Function& f) {
  return [f](const Tensors& x) {
    auto halved = [&f](const Tensors& operands) { return f(scaled(operands, 0.5)); };
    return cond(x[0], f, halved, Tensors(x.begin() + 1, x.end()));
  };
}

// switch_case: the first operand selects f, f of the halved operands, or f of the negated ones.
Function in_switch(const Function& f) {
  return [f](const Tensors& x) {
    auto of = [&f](double factor) {
      return [&f, factor](const Tensors& operands) { return f(scaled(operands, factor)); };
    };
    return switch_case(x[0], std::tuple(of(1), of(0.5), of(-1)), Tensors(x.begin() + 1, x.end()));
  };
}

// A loop: each iteration adds f to half of the carry, which starts as the first operand.
Function in_loop(const Function& f, const Attributes& how) {
  return [f, count = how.integer("count"),
          differentiable = how.text("wrap") == "fori_loop"](const Tensors& x) {
    auto step = [&](const Tensor& carry) {
      Tensors operands = x;
      operands[0] = carry;
      return carry * 0.5 + f(operands)[0];
    };
    if (differentiable)
      return Tensors{fori_loop(
          0, count, [&](const Tensor&, const Tensor& c) { return step(c); }, x[0])};
    auto state = while_loop(
        [&](const auto& now) { return less(std::get<0>(now), count); },
        [&](const auto& now) { return std::tuple(std::get<0>(now) + 1, step(std::get<1>(now))); },
        std::tuple(zeros({}, DType::i32), x[0]));
    return Tensors{std::get<1>(state)};
  };
}

// The gradients of the sum of the inexact results, with respect to the inexact operands.
Function gradients(const Function& f) {
  return [f](const Tensors& x) {
    Function g = inexact_part(f, x);
    auto total = [&g](const Tensors& primals) {
      Tensor all = zeros({});
      for (const Tensor& result : g(primals)) {
        bool narrow = result.dtype() == DType::f16 || result.dtype() == DType::bf16;
        all = all + sum(narrow ? astype(result, DType::f32) : result);
      }
      return all;
    };
    return grad(total)(inexact_of(x));
  };
}

Function wrapped(const Function& call, const Json& how_it_stands) {
  if (!how_it_stands.contains("in")) return call;
  Attributes how(how_it_stands.at("in"));
  Function f = wrapped(call, how_it_stands.at("in"));
  switch (how.one_of("wrap", {"vmap", "map", "scan", "cond", "checkpoint", "switch", "grad",
                              "fori_loop", "while_loop"})) {
    case 0: return in_batch(f, how);
    case 1: return [f](const Tensors& x) { return map(f, x); };
    case 2: return in_scan(f, how);
    case 3: return in_branch(f);
    case 4: return checkpoint(f);
    case 5: return in_switch(f);
    case 6: return gradients(f);
    default: return in_loop(f, how);
  }
}

// One part of the answer: its results, or the reason why there are none.
struct Part {
  std::string name;
  Tensors results;
  std::string refusal;
};

constexpr const char* kParts[] = {"out", "vjp", "jvp", "hvp"};

// Converts cotangents to the dtypes of our results, which a rule may allow to differ from JAX's.
Tensors of_dtypes_of(const Tensors& results, Tensors cotangents) {
  for (std::size_t i = 0; i < std::min(results.size(), cotangents.size()); ++i)
    cotangents[i] = astype(cotangents[i], results[i].dtype());
  return cotangents;
}

Tensors results_of(std::string_view part, const Function& f, const Tensors& operands,
                   const Tensors& cotangents, const Tensors& tangents) {
  if (part == "out") return f(operands);
  Function g = inexact_part(f, operands);
  Tensors primals = inexact_of(operands);
  auto gradient = [&](const Tensors& at) {
    auto [results, pull] = vjp(g, at);
    return std::get<0>(pull(of_dtypes_of(results, cotangents)));
  };
  if (part == "vjp") return gradient(primals);
  if (part == "jvp") return jvp(g, primals, tangents).second;
  return jvp(gradient, primals, tangents).second;
}

std::vector<Part> parts_of(const Json& test, const Function& f, const Tensors& operands,
                           const Tensors& cotangents, const Tensors& tangents) {
  std::vector<Part> parts;
  for (const char* name : kParts) {
    if (!test.contains(name)) continue;
    parts.push_back({name, {}, {}});
    try {
      parts.back().results = results_of(name, f, operands, cotangents, tangents);
    } catch (const Error& error) {
      parts.back().refusal = error.message();
    }
  }
  return parts;
}

std::vector<Part> compiled_parts(const Json& test, const Function& f, const Tensors& operands,
                                 const Tensors& cotangents, const Tensors& tangents) {
  std::vector<Part> parts;
  auto program = jit([&](const Tensors& x, const Tensors& ct, const Tensors& tn) {
    parts = parts_of(test, f, x, ct, tn);
    Tensors all;
    for (const Part& part : parts) all.insert(all.end(), part.results.begin(), part.results.end());
    return all;
  });
  Tensors all = program(operands, cotangents, tangents);
  std::size_t next = 0;
  for (Part& part : parts)
    for (Tensor& result : part.results) result = all[next++];
  return parts;
}

}  // namespace

Json run_call_case(const Json& test) {
  const CallFunction* call = find_call(test.at("op").get<std::string>());
  if (!call) throw Unreadable("no such call");
  static const Json kNone = Json::object();
  Attributes attributes(test.contains("at") ? test.at("at") : kNone);
  Function f = wrapped([&](const Tensors& x) { return (*call)(x, attributes); }, test);
  Tensors operands = operands_of(test), ct = read_all(test, "ct"), tn = read_all(test, "tn");
  internal::KeepOperandsScope keep;
  bool compiled = test.contains("jit");
  std::vector<Part> parts =
      compiled ? compiled_parts(test, f, operands, ct, tn) : parts_of(test, f, operands, ct, tn);
  Tensors all;
  for (const Part& part : parts) all.insert(all.end(), part.results.begin(), part.results.end());
  sync(all);
  Json answer = Json::object();
  for (const Part& part : parts) {
    if (!part.refusal.empty()) {
      answer[part.name] = part.refusal;
      continue;
    }
    Json& results = answer[part.name] = Json::array();
    for (const Tensor& result : part.results) results.push_back(written(result));
  }
  return answer;
}

}  // namespace meshard::conformance

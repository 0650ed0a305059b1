// A program as C++ that anybody can compile.
#include <algorithm>
#include <cctype>
#include <functional>
#include <iomanip>
#include <sstream>
#include <utility>

#include "meshard/base/cat.h"
#include "tests/property/sharded_program/operation.h"

namespace meshard::property {
namespace {

template <class List, class Show>
std::string listed(const List& list, Show show) {
  std::string out;
  for (const auto& element : list) out += (out.empty() ? "" : ", ") + show(element);
  return out;
}
template <class List>
std::string numbers(const List& list) {
  return listed(list, [](auto number) { return cat(number); });
}

std::string dtype_code(DType dtype) {
  return dtype == DType::bool_ ? "DType::bool_" : cat("DType::", to_string(dtype));
}

std::string axis_code(const AxisRef& axis) {
  return axis.is_whole()
             ? cat('"', axis.name, '"')
             : cat("AxisRef(\"", axis.name, "\", ", axis.pre_size, ", ", axis.size, ")");
}

std::string dimension_code(const DimensionSpec& dimension) {
  std::string axes = listed(dimension.axes(), axis_code);
  if (dimension.axes().empty()) return dimension.is_open() ? "unconstrained" : "none";
  if (dimension.is_open()) return cat("DimensionSpec(AxisList{", axes, "}, true)");
  return dimension.axes().size() == 1 ? axes : cat("axes(", axes, ")");
}

std::string placement_code(const Placement& placement) {
  return cat("m[", placement.mesh, "], P(", listed(placement.spec.dimensions(), dimension_code),
             ")");
}

std::string mesh_code(const MeshSpec& mesh) {
  if (mesh.form == MeshSpec::kSubmesh)
    return cat("*m[", mesh.parent, "].submesh({",
               listed(mesh.axes, [](const MeshAxis& axis) { return cat('"', axis.name, '"'); }),
               "}, device[", mesh.devices[0], "])");
  std::string root = cat("Mesh({",
                         listed(mesh.axes,
                                [](const MeshAxis& axis) {
                                  bool is_explicit = axis.kind == AxisKind::kExplicit;
                                  return cat("{\"", axis.name, "\", ", axis.size,
                                             is_explicit ? ", AxisKind::kExplicit}" : "}");
                                }),
                         "}, on({", numbers(mesh.devices), "}))");
  return mesh.form == MeshSpec::kFlat ? root + ".flatten(\"f\")" : root;
}

std::string array_code(const HostArray& array) {
  std::vector<double> values = array.astype(DType::f64).to_vector<double>();
  std::string text = listed(values, [](double value) {
    std::ostringstream number;
    number << std::setprecision(17) << value;
    return number.str();
  });
  const TensorType& type = array.type();
  return cat("HostArray::from_vector<double>({", text, "}, Shape{", numbers(type.shape),
             "}).astype(", dtype_code(type.dtype), ")");
}
std::string data_code(const TensorType& type, int seed) {
  return array_code(input_data(type, seed));
}

// Values of a body are named with its depth.
std::string name_of(Ref ref) {
  return ref.level == 0 ? cat(ref.is_input ? 'x' : 't', ref.index)
                        : cat(ref.is_input ? 'p' : 'b', ref.level, '_', ref.index);
}

// The call of a step: letters in the operation's code are replaced by what they stand for.
class Call {
 public:
  using BodyCode = std::function<std::string(const Body&)>;
  Call(const Step& step, const TensorType& first, BodyCode body)
      : step_(step), first_(first), body_(std::move(body)) {}

  std::string code() const {
    std::string_view text = step_.operation->code;
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i) {
      bool starts = i == 0 || !(std::isalnum(static_cast<unsigned char>(text[i - 1])) != 0 ||
                                text[i - 1] == '_');
      if (starts && text[i] == 'M' && !std::isalnum(static_cast<unsigned char>(text[i + 1]))) {
        out += placement_code(step_.placement);
      } else if (starts && text[i] == 'W' && text[i + 1] == ',') {
        out += cat("sharded ? &m[", step_.placement.mesh, "] : nullptr");
      } else if (starts && std::isupper(static_cast<unsigned char>(text[i])) != 0 &&
                 text[i + 1] == '(') {
        out += argument(text[i], static_cast<std::size_t>(text[i + 2] - '0'));
        i += 3;
      } else {
        out += text[i];
      }
    }
    return out;
  }

 private:
  std::string argument(char letter, std::size_t i) const {
    if (letter == 'A') return name_of(step_.operands[i]);
    if (letter == 'F' || letter == 'G') return body_(step_.bodies[i]);
    const std::vector<std::int64_t>& list = step_.lists[i];
    switch (letter) {
      case 'L': return cat("Dimensions{", numbers(list), "}");
      case 'S': return cat("Shape{", numbers(list), "}");
      case 'B': return list[0] != 0 ? "true" : "false";
      case 'D': return dtype_code(static_cast<DType>(list[0]));
      case 'E': return cat('"', einsum_specs()[static_cast<std::size_t>(list[0])], '"');
      case 'V': return data_code(first_, static_cast<int>(list[0]));
      default: return std::to_string(list[0]);
    }
  }

  const Step& step_;
  const TensorType& first_;
  BodyCode body_;
};

constexpr const char* kHead = R"(#include <meshard/meshard.h>

#include <cmath>
#include <iostream>
#include <stdexcept>

using namespace meshard;

namespace {

)";

// What is the same in every program.
constexpr const char* kTools = R"(
bool sharded = false;
// Where device i of the meshes is, and the meshes.
std::vector<std::int64_t> device{0, 1, 2, 3, 4, 5, 6, 7};
std::vector<Mesh> m;

[[maybe_unused]] std::vector<std::int64_t> on(std::vector<std::int64_t> devices) {
  for (std::int64_t& id : devices) id = device[static_cast<std::size_t>(id)];
  return devices;
}
[[maybe_unused]] Tensor mark(const Tensor& x, const Mesh& mesh, const PartitionSpec& spec) {
  return sharded ? mark_sharding(x, mesh, spec) : x;
}
[[maybe_unused]] Tensor mark_unreduced(const Tensor& x, const Mesh& mesh, const PartitionSpec& spec) {
  if (!sharded) return x;
  Sharding sharding(mesh, spec, static_cast<std::size_t>(x.rank()));
  return mark_sharding(x, sharding.with_unreduced(sharding.unused_axes()));
}
[[maybe_unused]] Tensor move(const Tensor& x, const Mesh& mesh, const PartitionSpec& spec) {
  return sharded ? transfer(x, mesh, spec) : x;
}
template <class F>
Tensor by_hand(const Mesh& mesh, const PartitionSpec& spec, const Dimensions& axes, F f, const Tensor& x) {
  std::vector<std::string> names;
  if (sharded) for (std::int64_t axis : axes) names.push_back(mesh.axes()[static_cast<std::size_t>(axis)].name);
  return sharded ? manual(mesh, spec, spec, f, {.axes = names, .out_shapes = {x.shape()}, .pad = 1})(x) : f(x);
}
// f of each slice of x, its number, and w.
template <class F>
Tensor by_stage(const Mesh& mesh, const PartitionSpec& spec, const Dimensions& axes, F f, const Tensor& x, const Tensor& w) {
  if (!sharded) {
    std::vector<Tensor> results;
    for (std::int64_t i = 0; i < x.shape()[0]; ++i) results.push_back(f(x[i], Tensor(full({}, i, DType::i32)), w));
    return stack(results, 0);
  }
  std::vector<std::string> names;
  AxisList all;
  for (std::int64_t axis : axes) names.push_back(mesh.axes()[static_cast<std::size_t>(axis)].name);
  for (const std::string& name : names) all.emplace_back(name);
  auto stage = [&](const Tensor& part, const Tensor& whole) {
    Tensor i = axis_index(all), result = f(part[0], i, vary(whole, all));
    return expand_dims(where(greater_equal(i, 0), result, zeros_like(result)), 0);
  };
  return manual(mesh, {spec, P()}, spec, stage, {.axes = names})(x, w);
}
[[maybe_unused]] Tensor in_parts(const HostArray& whole, const Mesh& mesh, const PartitionSpec& spec) {
  if (!sharded) return from_host(whole);
  Sharding sharding(mesh, spec, static_cast<std::size_t>(whole.rank()));
  return ShardedTensor::from_callback(whole.type(), sharding, [&](const Box& box) { return whole.slice(box); }).global();
}
)";

constexpr const char* kCompare = R"(
int compare(const std::vector<Tensor>& whole, const std::vector<Tensor>& results) {
  int wrong = 0;
  double largest = 0;
  for (const Tensor& each : whole)
    for (double x : each.to_host().astype(DType::f64).to_vector<double>()) largest = std::max(largest, std::abs(x));
  for (std::size_t i = 0; i < whole.size(); ++i) {
    std::vector<double> a = whole[i].to_host().astype(DType::f64).to_vector<double>();
    std::vector<double> b = results[i].to_host().astype(DType::f64).to_vector<double>();
    double off = a.size() == b.size() ? 0 : INFINITY;
    for (std::size_t k = 0; k < a.size() && off < INFINITY; ++k)
      if (!(std::abs(a[k] - b[k]) <= off)) off = std::abs(a[k] - b[k]);
    double allowed = tolerance[i] + relative * largest;
    if (off <= allowed) continue;
    wrong = 1;
    std::cout << "result " << i << " is off by " << off << ", may be by " << allowed << "\nexpected "
              << whole[i] << "\nsharded " << results[i] << "\n";
  }
  return wrong;
}

}  // namespace

)";

class Code {
 public:
  explicit Code(const Program& program) : program_(program), types_(step_types(program)) {}

  std::string text() {
    out_ = kHead;
    Tolerance tolerance = tolerance_of(program_);
    append(out_, cat("const std::vector<double> tolerance{", numbers(tolerance.error),
                     "};\nconst double relative = ", tolerance.relative, ";\n"));
    out_ += kTools;
    if (uses_collectives()) out_ += kCollectiveTools;
    out_ += "\nstd::vector<Tensor> run() {\n";
    line("m.clear();");
    for (const MeshSpec& mesh : program_.meshes) line(cat("m.push_back(", mesh_code(mesh), ");"));
    for (std::size_t i = 0; i < program_.inputs.size(); ++i) input(i);
    if (program_.gradient)
      gradient();
    else
      values();
    out_ += "}\n";
    out_ += kCompare;
    main();
    return out_;
  }

 private:
  bool uses_collectives() const {
    bool any = false;
    for (const Step& step : program_.steps)
      for_each_step(step, [&](const Step& inner) {
        std::span<const Operation> all = collective_operations();
        any |= inner.operation >= all.data() && inner.operation < all.data() + all.size();
      });
    return any;
  }

  void line(const std::string& text) {
    out_.append(static_cast<std::size_t>(indent_), ' ');
    out_ += text + "\n";
  }

  void input(std::size_t i) {
    const Input& input = program_.inputs[i];
    std::string data = data_code(input.type, input.seed);
    if (input.by_callback)
      data = cat("in_parts(", data, ", ", placement_code(*input.mark), ")");
    else if (input.mark)
      data = cat("mark(from_host(", data, "), ", placement_code(*input.mark), ")");
    else
      data = cat("from_host(", data, ")");
    line(cat("Tensor x", i, " = ", data, ";"));
  }

  void main() {
    out_ += "int main() {\n";
    if (std::optional<std::vector<HostArray>> host = values_on_host(program_)) {
      line("// By differences where derivatives are taken.");
      line(cat(
          "std::vector<Tensor> whole{",
          listed(*host,
                 [](const HostArray& array) { return cat("from_host(", array_code(array), ")"); }),
          "};"));
    } else {
      line("std::vector<Tensor> whole = run();");
    }
    line("sharded = true;");
    line("int wrong = compare(whole, run());");
    if (!program_.retarget.empty()) {
      line(cat("device = {", numbers(program_.retarget), "};"));
      line("wrong += compare(whole, run());");
    }
    line("return wrong;");
    out_ += "}\n";
  }

  void steps(const std::vector<Step>& steps, int from, int to, int level) {
    for (int i = from; i < to; ++i) {
      const Step& step = steps[static_cast<std::size_t>(i)];
      static const TensorType kNone{};
      const TensorType& first =
          step.operands.empty() || level > 0 ? kNone : type_of(step.operands[0]);
      std::string name = name_of({false, i, level});
      Call call(step, first, [&](const Body& body) { return function(body, level + 1); });
      line(cat("Tensor ", name, " = ", call.code(), ";"));
      if (level == 0 && step.look == Step::kSync) line(cat("sync({", name, "});"));
      if (level == 0 && step.look == Step::kRead) line(cat("(void)", name, ".to_host();"));
    }
  }

  // A body as a lambda, in the middle of a call.
  std::string function(const Body& body, int level) {
    std::string before = std::exchange(out_, "");
    std::vector<std::string> parameters;
    for (std::size_t i = 0; i < body.parameters.size(); ++i)
      parameters.push_back(
          cat("[[maybe_unused]] Tensor ", name_of({true, static_cast<int>(i), level})));
    bool pair = body.results.size() == 2;
    out_ = cat("[&](", listed(parameters, [](const std::string& text) { return text; }), ") {\n");
    indent_ += 2;
    steps(body.steps, 0, static_cast<int>(body.steps.size()), level);
    std::string results = listed(body.results, name_of);
    line(pair ? cat("return std::pair<Tensor, Tensor>(", results, ");")
              : cat("return Tensor(", results, ");"));
    indent_ -= 2;
    out_.append(static_cast<std::size_t>(indent_), ' ');
    return std::exchange(out_, before) + "}";
  }

  const TensorType& type_of(Ref ref) const {
    return ref.is_input ? program_.inputs[static_cast<std::size_t>(ref.index)].type
                        : types_[static_cast<std::size_t>(ref.index)];
  }

  void values() {
    int jitted = program_.jit_steps, all = static_cast<int>(program_.steps.size());
    if (jitted > 0) {
      std::vector<Ref> inputs = input_refs(program_), out = jit_results(program_);
      begin_jit(inputs, "jit(");
      steps(program_.steps, 0, jitted, 0);
      line(cat("return std::vector<Tensor>{", listed(out, name_of), "};"));
      end_jit(inputs, ")");
      for (std::size_t i = 0; i < out.size(); ++i)
        line(cat("Tensor ", name_of(out[i]), " = out[", i, "];"));
    }
    steps(program_.steps, jitted, all, 0);
    finish(listed(program_.results, name_of));
  }

  void finish(const std::string& results) {
    line(cat("std::vector<Tensor> results{", results, "};"));
    if (program_.sync_results) line("sync(results);");
    line("return results;");
  }

  void gradient() {
    std::vector<Ref> inputs = input_refs(program_);
    bool jitted = program_.jit_steps > 0;
    begin_jit(inputs, jitted ? "jit(grad(" : "grad(");
    steps(program_.steps, 0, static_cast<int>(program_.steps.size()), 0);
    line(cat(
        "return ",
        listed(program_.results,
               [](Ref ref) { return cat("sum(square(astype(", name_of(ref), ", DType::f64)))"); }),
        ";"));
    end_jit(inputs, jitted ? "))" : ")");
    if (program_.sync_results) line("sync(out);");
    line("return out;");
  }

  void begin_jit(const std::vector<Ref>& inputs, const char* what) {
    // One function for all devices, where its arguments say which.
    bool again = std::string_view(what).starts_with("jit") && !program_.retarget.empty() &&
                 can_call_again(program_);
    line(cat(again ? "static " : "", "auto f = ", what, "[&](const std::vector<Tensor>& in) {"));
    indent_ += 2;
    for (std::size_t i = 0; i < inputs.size(); ++i)
      line(cat("Tensor ", name_of(inputs[i]), " = in[", i, "];"));
  }
  void end_jit(const std::vector<Ref>& inputs, const char* what) {
    indent_ -= 2;
    line(cat("}", what, ";"));
    line(cat("std::vector<Tensor> in{", listed(inputs, name_of), "};"));
    line("(void)f(in);");  // the second call finds what the first has compiled
    line("std::vector<Tensor> out = f(in);");
  }

  const Program& program_;
  std::vector<TensorType> types_;
  std::string out_;
  int indent_ = 2;
};

}  // namespace

std::string to_code(const Program& program) { return Code(program).text(); }

}  // namespace meshard::property

// What transforms, readers and writers of large programs cost, and files of many tensors.
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "bench/on_devices.h"
#include "bench/scale/curve.h"
#include "meshard/base/cat.h"
#include "meshard/explain/explain.h"
#include "meshard/explain/predict/module_program.h"
#include "meshard/explain/predict/predict.h"
#include "meshard/graph/graph_text.h"
#include "meshard/io/checkpoint.h"
#include "meshard/lowering/lower.h"
#include "meshard/meshard.h"
#include "meshard/ops/definition/op_table.h"
#include "meshard/stablehlo/module.h"
#include "meshard/stablehlo/module_reader.h"
#include "tests/support/verify.h"

namespace meshard::bench {
namespace {

Tensor chain_of(int ops, const Tensor& x, const Tensor& w) {
  Tensor y = x;
  for (int i = 0; i < ops / 2; ++i) y = tanh(y * w);
  return y;
}

Tensor parameter_on(const Mesh& mesh, const PartitionSpec& spec) {
  return abstract_tensor({8, 8}, DType::f32, mesh, spec);
}

// A program of `ops` ops. Only the last value is laid out, so that its sharding goes back to all.
Graph chain_graph(int ops) {
  Mesh mesh({{"dp", 2}, {"tp", 4}});
  return trace_program(
             [&](const Tensor& x, const Tensor& w) {
               return mark_sharding(chain_of(ops, x, w), mesh, P("dp", "tp"));
             },
             parameter_on(mesh, P(unconstrained, unconstrained)),
             parameter_on(mesh, P(unconstrained, unconstrained)))
      .program.graph;
}

// A chain of products, each with a weight of its own that is split in turns by rows and columns.
Graph products_graph(int ops) {
  Mesh mesh({{"dp", 2}, {"tp", 4}});
  std::vector<Tensor> weights;
  for (int i = 0; i < ops; ++i)
    weights.push_back(parameter_on(mesh, i % 2 == 0 ? P(none, "tp") : P("tp", none)));
  return trace_program(
             [](Tensor x, const std::vector<Tensor>& all) {
               for (const Tensor& each : all) x = matmul(x, each);
               return x;
             },
             parameter_on(mesh, P("dp", none)), weights)
      .program.graph;
}

// Milliseconds of tracing f, which records a program of two parameters.
template <class F>
double trace_time(F&& f) {
  Mesh mesh({{"dp", 2}, {"tp", 4}});
  Tensor x = parameter_on(mesh, P()), w = parameter_on(mesh, P());
  return milliseconds_of([&] { trace_program(f, x, w); });
}

double time_of_jvp(int ops) {
  return trace_time([&](const Tensor& x, const Tensor& w) {
    return jvp([&](const Tensor& y) { return chain_of(ops, y, w); }, x, w).second;
  });
}

double time_of_vmap(int ops) {
  return trace_time([&](const Tensor& x, const Tensor& w) {
    return vmap([&](const Tensor& y) { return chain_of(ops, y, w); })(x);
  });
}

double time_of_checkpoint(int ops) {
  return trace_time([&](const Tensor& x, const Tensor& w) {
    return grad([&](Tensor y) {
      for (int i = 0; i < ops / 10; ++i)
        y = checkpoint([&](const Tensor& z) { return chain_of(10, z, w); })(y);
      return sum(y);
    })(x);
  });
}

double time_of_many_gradients(int ops) {
  Mesh mesh({{"dp", 2}, {"tp", 4}});
  std::vector<Tensor> weights(static_cast<std::size_t>(ops), parameter_on(mesh, P("dp")));
  auto step = grad([](const std::vector<Tensor>& all) {
    Tensor y = all[0];
    for (const Tensor& each : all) y = y * each;
    return sum(y);
  });
  return milliseconds_of([&] { trace_program(step, weights); });
}

double time_of_print(int ops) {
  Graph graph = chain_graph(ops);
  return milliseconds_of([&] { to_string(graph); });
}

double time_of_parse(int ops) {
  std::string text = to_string(chain_graph(ops));
  return milliseconds_of([&] { parse_graph(text, find_op).value(); });
}

double time_of_verify(int ops) {
  Graph graph = chain_graph(ops);
  return milliseconds_of([&] { verify(graph).value(); });
}

double time_of_predict(int ops) {
  Graph graph = chain_graph(ops);
  return milliseconds_of([&] { predict(graph); });
}

double time_of_predicted_products(int ops) {
  Graph graph = products_graph(ops);
  return milliseconds_of([&] { predict(graph); });
}

std::string chain_module(int ops) {
  Program program;
  program.graph = chain_graph(ops);
  return lower(program).text;
}

double time_of_module(int ops) {
  std::string text = chain_module(ops);
  return milliseconds_of(
      [&] { ModuleProgram::of(stablehlo::Module::parse(text).value()).value(); });
}

double time_of_module_facts(int ops) {
  std::string text = chain_module(ops);
  return milliseconds_of([&] { stablehlo::read_module(text).value(); });
}

// A file of `count` tensors of 16 floats.
double time_of_saving(int count, bool restores) {
  std::string path = (std::filesystem::temp_directory_path() / "meshard-bench-XXXXXX").string();
  int file = mkstemp(path.data());
  if (file < 0) return 0;
  Mesh mesh({{"x", 8}});
  std::vector<Tensor> tensors;
  for (int i = 0; i < count; ++i)
    tensors.push_back(
        mark_sharding(from_host(HostArray::full<float>({16}, float(i))), mesh, P("x")));
  for (const Tensor& each : tensors) wait_for(each);
  double saving = milliseconds_of([&] { io::save(path, tensors).value(); });
  std::vector<Tensor> restored;
  double restoring = milliseconds_of([&] { restored = io::restore(path, tensors).value(); });
  for (const Tensor& each : restored) wait_for(each);
  std::remove(path.c_str());
  close(file);
  return restores ? restoring : saving;
}

double time_of_save(int count) { return time_of_saving(count, false); }
double time_of_restore(int count) { return time_of_saving(count, true); }

// All values of a large structure, recorded and not yet computed.
double time_of_recorded_results(int count) {
  Tensor x = from_host(HostArray::full<float>({8}, 1.0f));
  std::vector<Tensor> values;
  for (int i = 0; i < count; ++i) values.push_back(x + x);
  Program program;
  return milliseconds_of([&] {
    std::vector<Value> results;
    for (const Tensor& each : values) results.push_back(each.value());
    program.graph = Graph::build({}, results, 0);
    lower(program);
  });
}

struct Transform {
  const char* name;
  const char* work;
  const char* of;
  double (*run)(int size);
  int sizes[3];
};

const Transform kTransforms[] = {
    {"jvp", "forward mode of a chain", "ops", time_of_jvp, {1000, 10000, 100000}},
    {"vmap", "batch a chain", "ops", time_of_vmap, {1000, 10000, 100000}},
    {"checkpoint",
     "differentiate checkpoints of 10 ops each",
     "ops",
     time_of_checkpoint,
     {1000, 10000, 100000}},
    {"gradients",
     "a gradient for each of many arguments",
     "arguments",
     time_of_many_gradients,
     {1000, 10000, 100000}},
    {"results",
     "lower a program of many results",
     "results",
     time_of_recorded_results,
     {1000, 10000, 100000}},
    {"print", "print a graph", "ops", time_of_print, {1000, 10000, 100000}},
    {"parse", "parse a printed graph", "ops", time_of_parse, {1000, 10000, 100000}},
    {"verify", "verify a graph", "ops", time_of_verify, {1000, 10000, 100000}},
    {"predict",
     "predict the shardings of a chain from its end",
     "ops",
     time_of_predict,
     {1000, 10000, 100000}},
    {"predict.products",
     "predict the collectives of a chain of products",
     "ops",
     time_of_predicted_products,
     {100, 1000, 10000}},
    {"module", "read a module's ops", "ops", time_of_module, {1000, 10000, 100000}},
    {"module.facts",
     "read a module's arguments",
     "ops",
     time_of_module_facts,
     {1000, 10000, 100000}},
    {"save", "save many small arrays of 8 devices", "arrays", time_of_save, {100, 1000, 10000}},
    {"restore", "restore them", "arrays", time_of_restore, {100, 1000, 10000}},
};

}  // namespace

void transform_curves(Report& report) {
  for (const Transform& transform : kTransforms) {
    Curve curve{.name = cat("scale.transform.", transform.name),
                .work = transform.work,
                .of = transform.of};
    std::vector<double> times = least_of_sizes(
        transform.sizes, [](int size) { return size > 50000 ? 3 : 8; }, transform.run);
    for (std::size_t i = 0; i < times.size(); ++i)
      curve.points.push_back({double(transform.sizes[i]), times[i]});
    add_curve(report, curve);
  }
}

}  // namespace meshard::bench

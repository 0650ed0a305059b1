// Runs a program twice and compares.
#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "meshard/base/cat.h"
#include "tests/property/sharded_program_operation.h"

namespace meshard::property {
namespace {

bool is_closed(const PartitionSpec& spec) {
  return std::none_of(spec.dimensions().begin(), spec.dimensions().end(),
                      [](const DimensionSpec& dimension) { return dimension.is_open(); });
}

// One of the two runs.
class Run {
 public:
  /// @param meshes nullptr: without shardings, and without jit
  Run(const Program& program, const std::vector<Mesh>* meshes, Wrong wrong)
      : program_(program), meshes_(meshes), wrong_(wrong) {}

  std::vector<Tensor> results() {
    for (const Input& input : program_.inputs) inputs_.push_back(make(input));
    steps_.resize(program_.steps.size());
    return program_.gradient ? gradients() : values();
  }

 private:
  Tensor make(const Input& input) const {
    HostArray data = input_data(input.type, input.seed);
    if (!meshes_ || !input.mark) return from_host(std::move(data));
    const Mesh& mesh = meshes_->at(static_cast<std::size_t>(input.mark->mesh));
    if (!input.by_callback)
      return mark_sharding(from_host(std::move(data)), mesh, input.mark->spec);
    Sharding sharding(mesh, input.mark->spec, static_cast<std::size_t>(data.rank()));
    return ShardedTensor::from_callback(data.type(), sharding,
                                        [&](const Box& box) { return data.slice(box); })
        .global();
  }

  Tensor value(Ref ref) const {
    return (ref.is_input ? inputs_ : steps_).at(static_cast<std::size_t>(ref.index));
  }

  std::vector<Tensor> values_of(const std::vector<Ref>& refs) const {
    std::vector<Tensor> values;
    for (Ref ref : refs) values.push_back(value(ref));
    return values;
  }
  void set_inputs(const std::vector<Ref>& refs, const std::vector<Tensor>& values) {
    for (std::size_t i = 0; i < refs.size(); ++i)
      inputs_[static_cast<std::size_t>(refs[i].index)] = values[i];
  }

  void take_steps(int from, int to, bool in_jit) {
    for (int i = from; i < to; ++i) {
      const Step& step = program_.steps[static_cast<std::size_t>(i)];
      std::vector<Tensor> operands;
      for (Ref ref : step.operands) operands.push_back(value(ref));
      Arguments args{operands, {}, step, meshes_};
      Tensor result = step.operation->run(args);
      if (meshes_) result = spoiled(std::move(result), args, in_jit);
      if (meshes_ && step.look == Step::kSync) sync({result});
      if (meshes_ && step.look == Step::kRead) (void)result.to_host();
      steps_[static_cast<std::size_t>(i)] = std::move(result);
    }
  }

  // What the wrong runtimes do.
  Tensor spoiled(Tensor result, const Arguments& args, bool in_jit) const {
    std::string_view name = args.step.operation->name;
    if (wrong_ == Wrong::kSumOfUnevenCountsOneMore && name == "sum") {
      std::optional<Sharding> sharding = args.operands[0].sharding();
      if (sharding && !sharding->is_even(args.type(0).shape)) return result + 1;
    }
    if (wrong_ == Wrong::kTransposedMarkInJit && in_jit && name == "mark_sharding" &&
        args.step.placement.spec.size() == 2)
      return flip(result);
    return result;
  }

  std::vector<Tensor> values() {
    int jitted = meshes_ ? program_.jit_steps : 0;
    if (jitted > 0) {
      std::vector<Ref> out = jit_results(program_);
      std::vector<Ref> given = input_refs(program_, false);
      auto f = jit([&](const std::vector<Tensor>& in) {
        set_inputs(given, in);
        take_steps(0, jitted, true);
        return values_of(out);
      });
      std::vector<Tensor> in = values_of(given);
      (void)f(in);
      std::vector<Tensor> results = f(in);  // finds what the first call has compiled
      set_inputs(given, in);
      std::fill(steps_.begin(), steps_.end(), Tensor());
      for (std::size_t i = 0; i < out.size(); ++i)
        steps_[static_cast<std::size_t>(out[i].index)] = results[i];
    }
    take_steps(jitted, static_cast<int>(program_.steps.size()), false);
    std::vector<Tensor> results = values_of(program_.results);
    steps_.clear();  // nobody holds what is on the way
    return results;
  }

  std::vector<Tensor> gradients() {
    std::vector<Ref> wanted = input_refs(program_, true);
    bool jitted = meshes_ && program_.jit_steps > 0;
    auto loss = [&](const std::vector<Tensor>& in) {
      set_inputs(wanted, in);
      take_steps(0, static_cast<int>(program_.steps.size()), jitted);
      return sum(square(astype(value(program_.results.at(0)), DType::f64)));
    };
    std::vector<Tensor> in = values_of(wanted);
    if (!jitted) return grad(loss)(in);
    auto f = jit(grad(loss));
    (void)f(in);
    return f(in);
  }

  const Program& program_;
  const std::vector<Mesh>* meshes_;
  Wrong wrong_;
  std::vector<Tensor> inputs_, steps_;
};

// The sharding that a value must have, because the program says so.
std::optional<Sharding> stated_sharding(const Program& program, const std::vector<Mesh>& meshes,
                                        Ref ref, std::size_t rank) {
  auto stated = [&](const Placement& placement) -> std::optional<Sharding> {
    if (!is_closed(placement.spec)) return std::nullopt;
    return Sharding(meshes.at(static_cast<std::size_t>(placement.mesh)), placement.spec, rank);
  };
  if (ref.is_input) {
    const Input& input = program.inputs[static_cast<std::size_t>(ref.index)];
    return input.mark ? stated(*input.mark) : std::nullopt;
  }
  const Step& step = program.steps[static_cast<std::size_t>(ref.index)];
  std::string_view name = step.operation->name;
  if (name == "mark_sharding" || name == "transfer") return stated(step.placement);
  if (name == "add in place") return stated_sharding(program, meshes, step.operands[0], rank);
  return std::nullopt;
}

void compare_values(const HostArray& whole, const HostArray& sharded, double allowed,
                    const std::string& what) {
  if (whole.type() != sharded.type())
    throw Failure{"the types are equal", cat(what, ": ", whole.type(), " and ", sharded.type())};
  if (allowed == 0 && whole == sharded) return;
  std::vector<double> a = whole.astype(DType::f64).to_vector<double>();
  std::vector<double> b = sharded.astype(DType::f64).to_vector<double>();
  double off = allowed == 0 ? INFINITY : 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!std::isfinite(a[i]))
      throw std::logic_error(cat(what, " is not finite without a mesh: ", whole.to_string()));
    off = std::isnan(b[i]) ? INFINITY : std::max(off, std::abs(a[i] - b[i]));
  }
  if (off > allowed)
    throw Failure{"the values are equal",
                  cat(what, " may be off by ", allowed, ", is by ", off, "\nwithout a mesh ",
                      whole.to_string(), "\nsharded ", sharded.to_string())};
}

// Each shard is its part of the whole, and lies where the sharding says.
void compare_shards(const HostArray& whole, const Tensor& tensor, const std::string& what) {
  std::optional<Sharding> sharding = tensor.stored_sharding();
  std::vector<Shard> shards = local_shards(tensor);
  auto expect = [&](bool right, const char* check, const auto&... detail) {
    if (!right) throw Failure{check, cat(what, ": ", detail...)};
  };
  std::int64_t on_host = tensor.placement() == "host" ? 0 : 1;
  auto count = static_cast<std::size_t>(sharding ? sharding->mesh().size() : on_host);
  expect(shards.size() == count, "every device has a shard", shards.size(), " shards of ", count);
  for (const Shard& shard : shards) {
    HostArray part = shard.data(), expected = whole;
    if (sharding) {
      const Mesh& mesh = sharding->mesh();
      expect(shard.device_id() == mesh.device_id(shard.position()), "a shard's device", "position ",
             shard.position(), " is on device ", shard.device_id());
      Slices slices = sharding->slice(whole.shape(), shard.position());
      for (std::size_t d = 0; d < slices.size(); ++d)
        expect(shard.box()[d].start == slices[d].start && shard.box()[d].stop == slices[d].stop,
               "a shard's box", "position ", shard.position(), ", dimension ", d, " of ",
               *sharding);
      IntVector padded = sharding->shard_shape(whole.shape());
      Shape lies = shard.padded_data().shape();
      expect(std::equal(padded.begin(), padded.end(), lies.begin(), lies.end()),
             "a shard's shape on its device", lies, " of ", whole.type(), " with ", *sharding);
      expected = whole.slice(shard.box());
    }
    expect(part.same_bits(expected), "a shard is its part of the whole", "position ",
           shard.position(), " has ", part.to_string(), ", expected ", expected.to_string());
  }
}

// An error's message as far as it does not depend on sizes and names.
std::string kind_of(const std::string& message) {
  return "an error: " + message.substr(0, message.find_first_of("0123456789<({\"\n"));
}

}  // namespace

std::optional<Failure> run(const Program& program, Wrong wrong) {
  Tolerance tolerance = tolerance_of(program);
  std::vector<HostArray> whole;
  {
    std::vector<Tensor> results = Run(program, nullptr, Wrong::kNothing).results();
    sync(results);
    for (const Tensor& result : results) whole.push_back(result.to_host());
  }
  double largest = 0;
  if (tolerance.relative > 0)
    for (const HostArray& each : whole)
      for (double x : each.astype(DType::f64).to_vector<double>())
        largest = std::max(largest, std::abs(x));
  std::vector<Mesh> meshes;
  for (const MeshSpec& spec : program.meshes) meshes.push_back(spec.make());
  try {
    std::vector<Tensor> results = Run(program, &meshes, wrong).results();
    std::vector<Ref> refs = program.gradient ? input_refs(program, true) : program.results;
    for (std::size_t i = 0; i < results.size(); ++i) {
      std::string what = cat("result ", i);
      HostArray value = results[i].to_host();
      compare_values(whole[i], value, tolerance.error[i] + tolerance.relative * largest, what);
      compare_shards(value, results[i], what);
      std::optional<Sharding> stated =
          stated_sharding(program, meshes, refs[i], static_cast<std::size_t>(value.rank()));
      if (stated && results[i].sharding() != stated)
        throw Failure{"a marked value has its sharding",
                      cat(what, " is marked ", *stated, ", has ",
                          results[i].sharding() ? results[i].sharding()->to_string() : "none")};
    }
  } catch (const Failure& failure) {
    return failure;
  } catch (const Error& error) {
    return Failure{kind_of(error.message()), error.what()};
  }
  return std::nullopt;
}

}  // namespace meshard::property

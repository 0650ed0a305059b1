// Runs a program on all its devices and compares.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <map>
#include <set>
#include <stdexcept>
#include <string_view>

#include "meshard/base/cat.h"
#include "tests/property/sharded_program/evaluate.h"

namespace meshard::property {
namespace {

// Runs a program without a mesh, or on the devices of one mesh after another.
class Run {
 public:
  using Function = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;

  Run(const Program& program, Wrong wrong)
      : program_(program),
        wrong_(wrong),
        evaluator_([this](Tensor result, const Arguments& args, int level) {
          return after(std::move(result), args, level);
        }) {}

  /// @param meshes nullptr: without shardings, and without jit
  std::vector<Tensor> results(const std::vector<Mesh>* meshes) {
    meshes_ = meshes;
    evaluator_.set_meshes(meshes);
    std::vector<Tensor> inputs;
    for (const Input& input : program_.inputs) inputs.push_back(make_input(input, meshes));
    evaluator_.begin(std::move(inputs), program_.steps.size());
    std::vector<Tensor> results = program_.gradient ? gradients() : values();
    evaluator_.end();  // nobody holds what is on the way
    if (program_.sync_results) sync(results);
    return results;
  }

 private:
  void set_inputs(const std::vector<Ref>& refs, const std::vector<Tensor>& values) {
    for (std::size_t i = 0; i < refs.size(); ++i) evaluator_.set_input(refs[i].index, values[i]);
  }
  void take_steps(int from, int to) { evaluator_.take(program_.steps, from, to); }

  // What is done with the result of a step, and what the wrong runtimes do to it.
  Tensor after(Tensor result, const Arguments& args, int level) const {
    if (!meshes_) return result;
    std::string_view name = args.step.operation->name;
    if (wrong_ == Wrong::kSumOfUnevenCountsOneMore && name == "sum") {
      std::optional<Sharding> sharding = args.operands[0].sharding();
      if (sharding && !sharding->is_even(args.type(0).shape)) result = result + 1;
    }
    if (wrong_ == Wrong::kTransposedMarkInJit && in_jit_ && name == "mark_sharding" &&
        args.step.placement.spec.size() == 2) {
      // Only the value is wrong, not its sharding.
      std::optional<Sharding> sharding = result.sharding();
      result = sharding ? mark_sharding(flip(result), *sharding) : flip(result);
    }
    if (wrong_ == Wrong::kOtherDevicesAreOff && elsewhere_ && name == "tanh") result = result + 1;
    if (level == 0 && args.step.look == Step::kSync) sync({result});
    if (level == 0 && args.step.look == Step::kRead) (void)gather(result);
    return result;
  }

  // Run twice: the second call finds what the first has compiled. A function that was called for
  // other devices is called again where its arguments say which devices.
  std::vector<Tensor> call_jitted(Function function, const std::vector<Tensor>& in) {
    if (!jitted_ || !can_call_again(program_)) jitted_.emplace(jit(std::move(function)));
    in_jit_ = true;
    (void)(*jitted_)(in);
    std::vector<Tensor> out = (*jitted_)(in);
    in_jit_ = false;
    return out;
  }

  std::vector<Tensor> values() {
    int jitted = meshes_ ? program_.jit_steps : 0;
    if (jitted > 0) {
      std::vector<Ref> out = jit_results(program_), given = input_refs(program_);
      std::vector<Tensor> in = evaluator_.values(given);
      std::vector<Tensor> results = call_jitted(
          [this, out, given, jitted](const std::vector<Tensor>& arguments) {
            set_inputs(given, arguments);
            take_steps(0, jitted);
            return evaluator_.values(out);
          },
          in);
      set_inputs(given, in);
      evaluator_.forget_steps();
      for (std::size_t i = 0; i < out.size(); ++i) evaluator_.set_step(out[i].index, results[i]);
    }
    take_steps(jitted, static_cast<int>(program_.steps.size()));
    return evaluator_.values(program_.results);
  }

  std::vector<Tensor> gradients() {
    std::vector<Ref> wanted = input_refs(program_);
    auto loss = [this, wanted](const std::vector<Tensor>& in) {
      set_inputs(wanted, in);
      take_steps(0, static_cast<int>(program_.steps.size()));
      return sum(square(astype(evaluator_.value(program_.results.at(0)), DType::f64)));
    };
    std::vector<Tensor> in = evaluator_.values(wanted);
    return meshes_ && program_.jit_steps > 0 ? call_jitted(grad(loss), in) : grad(loss)(in);
  }

 public:
  /// From now on it runs on other devices than before.
  void go_elsewhere() { elsewhere_ = true; }

 private:
  const Program& program_;
  Wrong wrong_;
  const std::vector<Mesh>* meshes_ = nullptr;
  Evaluator evaluator_;
  std::optional<Jit<Function>> jitted_;
  bool in_jit_ = false, elsewhere_ = false;
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
  if (step.operation->has_bodies()) return std::nullopt;
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

// How many devices of a mesh this process has.
std::int64_t own_devices(const Mesh& mesh) {
  if (processes().size() == 1) return mesh.size();
  const ProcessInfo& own = processes().members()[static_cast<std::size_t>(processes().rank())];
  std::int64_t count = 0;
  for (int i = 0; i < own.local_devices; ++i) count += mesh.position(own.first_device + i) ? 1 : 0;
  return count;
}

std::string text_of(const Box& box) {
  std::string text;
  for (const DimensionSlice& each : box) append(text, cat("[", each.start, ":", each.stop, "]"));
  return text;
}

// What all devices with one part of an unreduced value have together.
struct SumOfShards {
  std::vector<double> sum, whole;

  void add(const HostArray& part, const HostArray& expected) {
    std::vector<double> own = part.astype(DType::f64).to_vector<double>();
    std::vector<double> once = expected.astype(DType::f64).to_vector<double>();
    sum.resize(own.size());
    whole.resize(own.size());
    // Replicas of the summands are summed too, so the whole is counted once for each of them.
    for (std::size_t i = 0; i < own.size(); ++i) sum[i] += own[i], whole[i] = once[i];
  }
  // The summands are rounded to the dtype, the narrowest of which has 8 bits.
  bool is_right(double replicas) const {
    double largest = 1;
    for (double each : whole) largest = std::max(largest, std::abs(each));
    for (std::size_t i = 0; i < sum.size(); ++i)
      if (!(std::abs(sum[i] / replicas - whole[i]) <= largest / 64)) return false;
    return true;
  }
};

// Each shard is its part of the whole, and is where the sharding says.
void compare_shards(const HostArray& whole, const Tensor& tensor, const std::string& what) {
  std::optional<Sharding> sharding = tensor.stored_sharding();
  std::vector<LocalShard> shards = local_shards(tensor);
  auto expect = [&](bool right, const char* check, const auto&... detail) {
    if (!right) throw Failure{check, cat(what, ": ", detail...)};
  };
  std::int64_t on_host = tensor.placement() == "host" ? 0 : 1;
  auto count = static_cast<std::size_t>(sharding ? own_devices(sharding->mesh()) : on_host);
  expect(shards.size() == count, "every device has a shard", shards.size(), " shards of ", count);
  std::map<std::string, SumOfShards> sums;  // by box, of an unreduced value
  for (const LocalShard& shard : shards) {
    HostArray part = shard.data(), expected = whole;
    if (sharding) {
      const Mesh& mesh = sharding->mesh();
      expect(shard.device_id() == mesh.device_id(shard.position()), "a shard's device", "position ",
             shard.position(), " is on device ", shard.device_id());
      Box slices = sharding->slice(whole.shape(), shard.position());
      for (std::size_t d = 0; d < slices.size(); ++d)
        expect(shard.box()[d].start == slices[d].start && shard.box()[d].stop == slices[d].stop,
               "a shard's box", "position ", shard.position(), ", dimension ", d, " of ",
               *sharding);
      IntVector padded = sharding->shard_shape(whole.shape());
      Shape stored = shard.padded_data().shape();
      expect(std::equal(padded.begin(), padded.end(), stored.begin(), stored.end()),
             "a shard's shape on its device", stored, " of ", whole.type(), " with ", *sharding);
      expected = whole.slice(shard.box());
    }
    if (sharding && !sharding->unreduced_axes().empty())
      sums[text_of(shard.box())].add(part, expected);
    else
      expect(part.same_bits(expected), "a shard is its part of the whole", "position ",
             shard.position(), " has ", part.to_string(), ", expected ", expected.to_string());
  }
  double replicas = 1;
  if (sharding)
    for (const AxisRef& axis : sharding->unused_axes())
      replicas *= static_cast<double>(sharding->mesh().axis_size(axis));
  if (sharding)
    for (const AxisRef& axis : sharding->unreduced_axes())
      replicas /= static_cast<double>(sharding->mesh().axis_size(axis));
  // Each process sees only some of the summands.
  for (const auto& [box, sum] : processes().size() > 1 ? decltype(sums)() : sums)
    expect(sum.is_right(replicas), "the shards of an unreduced value sum to it", box, " of ",
           *sharding);
}

// An error's message as far as it does not depend on sizes and names.
std::string kind_of(const std::string& message) {
  return "an error: " + message.substr(0, message.find_first_of("0123456789<({\"\n"));
}

// What the results must be.
class Expected {
 public:
  explicit Expected(const Program& program)
      : program_(program),
        tolerance_(tolerance_of(program)),
        refs_(program.gradient ? input_refs(program) : program.results) {
    if (std::optional<std::vector<HostArray>> host = values_on_host(program)) {
      whole_ = *std::move(host);
    } else {
      std::vector<Tensor> results = Run(program, Wrong::kNothing).results(nullptr);
      sync(results);
      for (const Tensor& result : results) whole_.push_back(result.to_host());
    }
    if (tolerance_.relative > 0)
      for (const HostArray& each : whole_)
        for (double x : each.astype(DType::f64).to_vector<double>())
          largest_ = std::max(largest_, std::abs(x));
  }

  void compare(const std::vector<Tensor>& results, const std::vector<Mesh>& meshes,
               std::string_view where) const {
    for (std::size_t i = 0; i < results.size(); ++i) {
      std::string what = cat("result ", i, where);
      HostArray value = gather(results[i]);
      compare_values(whole_[i], value, tolerance_.error[i] + tolerance_.relative * largest_, what);
      compare_shards(value, results[i], what);
      std::optional<Sharding> stated =
          stated_sharding(program_, meshes, refs_[i], static_cast<std::size_t>(value.rank()));
      if (stated && results[i].sharding() != stated)
        throw Failure{"a marked value has its sharding",
                      cat(what, " is marked ", *stated, ", has ",
                          results[i].sharding() ? results[i].sharding()->to_string() : "none")};
    }
  }

 private:
  const Program& program_;
  Tolerance tolerance_;
  std::vector<Ref> refs_;
  std::vector<HostArray> whole_;
  double largest_ = 0;
};

// A device type for each mesh: meshes with devices in common are of one platform, those of the
// first mesh of the first. Values on meshes without a common device meet by the same rules on one
// platform and on two.
std::vector<std::string> device_types(const std::vector<MeshSpec>& meshes, const char* first,
                                      const char* second) {
  std::set<std::int64_t> near;
  std::vector<bool> is_near(meshes.size(), false);
  for (bool changed = !meshes.empty(); changed;) {
    changed = false;
    for (std::size_t i = 0; i < meshes.size(); ++i) {
      const std::vector<std::int64_t>& ids = meshes[i].devices;
      bool meets = i == 0 || std::any_of(ids.begin(), ids.end(),
                                         [&](std::int64_t id) { return near.contains(id); });
      if (is_near[i] || !meets) continue;
      is_near[i] = changed = true;
      near.insert(ids.begin(), ids.end());
    }
  }
  std::vector<std::string> types;
  for (bool is : is_near) types.push_back(is ? first : second);
  return types;
}

}  // namespace

bool on_two_platforms() {
  const char* platforms = std::getenv("MESHARD_PROGRAM_PLATFORMS");
  return platforms && std::string_view(platforms) == "2";
}

std::optional<Failure> run(const Program& program, Wrong wrong) {
  Expected expected(program);
  std::vector<std::string> types, other_types;
  if (on_two_platforms()) {
    types = device_types(program.meshes, "", "second");
    other_types = device_types(program.meshes, "second", "");
  }
  std::vector<Mesh> meshes = make_meshes(program.meshes, own_places(), types), others;
  if (!program.retarget.empty())
    others = make_meshes(program.meshes, program.retarget, other_types);
  Run run(program, wrong);
  bool elsewhere = false;
  try {
    expected.compare(run.results(&meshes), meshes, "");
    if (program.retarget.empty()) return std::nullopt;
    elsewhere = true;
    run.go_elsewhere();
    expected.compare(run.results(&others), others, " on other devices");
  } catch (const Failure& failure) {
    return elsewhere ? Failure{failure.check + " on other devices", failure.detail} : failure;
  } catch (const Error& error) {
    return Failure{kind_of(error.message()), error.what()};
  }
  return std::nullopt;
}

}  // namespace meshard::property

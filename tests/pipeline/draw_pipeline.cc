#include <algorithm>
#include <iterator>
#include <numeric>

#include "tests/pipeline/random_pipeline.h"

namespace meshard::property {
namespace {

using Kind = PipelineStep::Kind;

// Actions of a batch that have not happened, and those that have.
struct Unordered {
  int stages;
  std::vector<PipelineAction> waiting, done;

  std::vector<PipelineAction> ready() const {
    std::vector<PipelineAction> all;
    std::copy_if(waiting.begin(), waiting.end(), std::back_inserter(all),
                 [&](const PipelineAction& one) { return is_ready(one); });
    return all;
  }
  void finish(const PipelineAction& one) {
    waiting.erase(std::find(waiting.begin(), waiting.end(), one));
    done.push_back(one);
  }

 private:
  using Work = PipelineWork;
  bool has(Work work, int s, int m) const { return contains(done, {work, s, m}); }
  bool lacks(Work work, int s, int m) const { return contains(waiting, {work, s, m}); }
  static bool contains(const std::vector<PipelineAction>& all, const PipelineAction& one) {
    return std::find(all.begin(), all.end(), one) != all.end();
  }
  bool has_gradient(int s, int m) const {
    return has(Work::kBackward, s, m) || has(Work::kInputGradient, s, m);
  }
  bool is_ready(const PipelineAction& one) const {
    const int s = one.stage, m = one.microbatch;
    switch (one.work) {
      case Work::kForward:
        return s == 0 || (has(Work::kForward, s - 1, m) && !lacks(Work::kSendForward, s - 1, m));
      case Work::kBackward:
      case Work::kInputGradient:
        return has(Work::kForward, s, m) &&
               (s + 1 == stages ||
                (has_gradient(s + 1, m) && !lacks(Work::kSendBackward, s + 1, m)));
      case Work::kWeightGradient: return has(Work::kInputGradient, s, m);
      case Work::kSendForward: return has(Work::kForward, s, m);
      case Work::kSendBackward: return has_gradient(s, m);
      case Work::kUpdate: break;
    }
    return false;
  }
};

class Draw {
 public:
  explicit Draw(std::mt19937_64& random) : random_(random) {}

  RandomPipeline pipeline() {
    const int stages = between(1, 5);
    PipelineSchedule schedule = draw_schedule(stages, between(1, 6));
    made_.emplace(RandomPipeline{.widths = {},
                                 .parameters = {},
                                 .constants = {},
                                 .parts = {},
                                 .batch = {},
                                 .schedule = schedule});
    made_->dtype = chance(4) ? DType::f32 : DType::f64;
    made_->rows = between(1, 6);
    made_->widths = {between(1, 6), between(1, 6)};
    if (chance(3)) made_->clip = 0.05;
    std::vector<Mesh> meshes = draw_meshes(schedule.workers());
    for (int s = 0; s < stages; ++s) {
      // Most stages of one worker are on the same mesh.
      Mesh mesh = chance(6) ? any_mesh() : meshes[static_cast<std::size_t>(schedule.worker_of(s))];
      draw_part(mesh, s + 1 == stages);
    }
    if (chance(3)) made_->batch = sharding(chance(2) ? made_->parts[0].mesh : any_mesh(), 2, {});
    return std::move(*made_);
  }

 private:
  int between(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }
  bool chance(int of) { return between(1, of) == 1; }
  template <class T>
  const T& one_of(const std::vector<T>& all) {
    return all[static_cast<std::size_t>(between(0, static_cast<int>(all.size()) - 1))];
  }

  // The devices as one axis or two.
  Mesh mesh_of(std::vector<std::int64_t> devices) {
    auto count = static_cast<std::int64_t>(devices.size());
    std::vector<std::int64_t> divisors;
    for (std::int64_t d = 1; d <= count; ++d)
      if (count % d == 0) divisors.push_back(d);
    if (chance(3)) return Mesh({{"x", count}}, devices);
    std::int64_t first = one_of(divisors);
    return Mesh({{"data", first}, {"model", count / first}}, devices);
  }
  std::vector<std::int64_t> shuffled_devices() {
    std::vector<std::int64_t> all(8);
    std::iota(all.begin(), all.end(), 0);
    std::shuffle(all.begin(), all.end(), random_);
    return all;
  }
  Mesh any_mesh() {
    std::vector<std::int64_t> devices = shuffled_devices();
    devices.resize(static_cast<std::size_t>(between(1, 8)));
    return mesh_of(devices);
  }
  // Of the workers: disjoint, of different sizes; or with shared devices; or the same.
  std::vector<Mesh> draw_meshes(int workers) {
    std::vector<Mesh> meshes;
    const int style = between(0, 4);
    std::vector<std::int64_t> devices = shuffled_devices();
    for (int w = 0; w < workers; ++w) {
      if (style == 0) {
        meshes.push_back(w == 0 ? any_mesh() : meshes[0]);
      } else if (style == 1) {
        meshes.push_back(any_mesh());
      } else {
        int rest = static_cast<int>(devices.size()) - (workers - w - 1);
        auto count = static_cast<std::ptrdiff_t>(between(1, rest));
        meshes.push_back(mesh_of({devices.begin(), devices.begin() + count}));
        devices.erase(devices.begin(), devices.begin() + count);
      }
    }
    return meshes;
  }

  // Each axis splits at most one dimension. @param sizes empty: they need not be divisible
  PartitionSpec spec(const Mesh& mesh, int rank, const std::vector<std::int64_t>& sizes) {
    std::vector<std::vector<std::string>> dimensions(static_cast<std::size_t>(rank));
    std::vector<std::int64_t> tiles(dimensions.size(), 1);
    for (const MeshAxis& axis : mesh.axes()) {
      int d = between(-1, rank - 1);
      if (d < 0) continue;
      auto at = static_cast<std::size_t>(d);
      if (!sizes.empty() && sizes[at] % (tiles[at] * axis.size) != 0) continue;
      tiles[at] *= axis.size;
      dimensions[at].push_back(axis.name);
    }
    std::vector<DimensionSpec> all;
    for (const auto& names : dimensions) {
      AxisList axes;
      for (const std::string& name : names) axes.push_back(AxisRef(name));
      all.emplace_back(std::move(axes));
    }
    return PartitionSpec(std::move(all));
  }
  Sharding sharding(const Mesh& mesh, int rank, const std::vector<std::int64_t>& sizes) {
    return Sharding(mesh, spec(mesh, rank, sizes));
  }
  PipelineNumbers numbers(std::vector<std::int64_t> sizes, const Mesh& mesh) {
    PipelineNumbers one{Shape(Dimensions(sizes.begin(), sizes.end())), std::nullopt};
    if (chance(2)) {
      // Mostly on the stage's mesh, with tiles of equal or of different sizes.
      const Mesh& there = chance(5) ? any_mesh() : mesh;
      if (chance(4)) sizes.clear();
      one.sharding = sharding(there, one.shape.rank(), sizes);
    }
    return one;
  }

  // The number of a parameter of this shape: often one that exists, of this stage or another.
  int parameter(PipelinePart& part, const std::vector<std::int64_t>& sizes) {
    std::vector<int> same;
    const Shape shape(Dimensions(sizes.begin(), sizes.end()));
    for (std::size_t i = 0; i < made_->parameters.size(); ++i)
      if (made_->parameters[i].shape == shape) same.push_back(static_cast<int>(i));
    int number;
    if (!same.empty() && chance(2)) {
      number = one_of(same);
    } else {
      number = static_cast<int>(made_->parameters.size());
      made_->parameters.push_back(numbers(sizes, part.mesh));
    }
    if (std::find(part.parameters.begin(), part.parameters.end(), number) == part.parameters.end())
      part.parameters.push_back(number);
    return number;
  }

  std::int64_t width(int value) const { return made_->widths[static_cast<std::size_t>(value)]; }

  PipelineStep step(PipelinePart& part, const std::vector<int>& live) {
    PipelineStep one{.kind = static_cast<Kind>(between(0, 9)), .a = one_of(live), .mark = {}};
    const std::int64_t before = width(one.a);
    std::int64_t after = before;
    switch (one.kind) {
      case Kind::kMatmul:
        after = between(1, 6);
        one.parameter = parameter(part, {before, after});
        break;
      case Kind::kTransposed:
        after = between(1, 6);
        one.parameter = parameter(part, {after, before});
        break;
      case Kind::kBias: one.parameter = parameter(part, {before}); break;
      case Kind::kScale: one.parameter = parameter(part, {}); break;
      case Kind::kLookup:
        after = between(1, 6);
        one.parameter = parameter(part, {kClasses, after});
        break;
      case Kind::kConstant:
        one.parameter = static_cast<int>(made_->constants.size());
        made_->constants.push_back(numbers({before}, part.mesh));
        break;
      case Kind::kTanh:
      case Kind::kSoftmax: break;
      case Kind::kAdd:
      case Kind::kMultiply: {
        std::vector<int> fitting;
        for (int value : live)
          if (width(value) == before || width(value) == 1 || before == 1) fitting.push_back(value);
        one.b = one_of(fitting);
        after = std::max(before, width(one.b));
        break;
      }
    }
    if (chance(3)) one.mark = spec(part.mesh, 2, {});
    made_->widths.push_back(after);
    return one;
  }

  void draw_part(const Mesh& mesh, bool is_last) {
    PipelinePart part{.mesh = mesh, .parameters = {}, .steps = {}, .returned = {}};
    part.checkpoint = chance(3);
    std::vector<int> live{0, 1};
    if (!made_->parts.empty())
      for (int value : made_->parts.back().returned)
        if (value > 1) live.push_back(value);
    const int carried = static_cast<int>(live.size()), steps = between(0, 4);
    for (int k = 0; k < steps; ++k) {
      int next = static_cast<int>(made_->widths.size());
      // New values are more often used than those that skip the stage.
      part.steps.push_back(step(part, chance(2) ? live : std::vector<int>{live.back()}));
      live.push_back(next);
    }
    for (std::size_t i = 0; i < live.size(); ++i) {
      const bool is_new = static_cast<int>(i) >= carried, is_given = i < 2;
      if (is_given ? chance(8) : !chance(is_new ? 3 : 6)) part.returned.push_back(live[i]);
    }
    if (is_last && part.returned.empty()) part.returned.push_back(live.back());
    std::shuffle(part.returned.begin(), part.returned.end(), random_);
    part.returns_labels = !is_last && chance(4);
    made_->parts.push_back(std::move(part));
  }

  PipelineSchedule draw_schedule(int stages, int microbatches) {
    switch (between(0, 5)) {
      case 0: return gpipe(stages, microbatches);
      case 1: return one_forward_one_backward(stages, microbatches);
      case 2: return zero_bubble(stages, microbatches);
      case 3: {
        std::vector<int> divisors;
        for (int d = 1; d <= stages; ++d)
          if (stages % d == 0) divisors.push_back(d);
        int workers = one_of(divisors);
        // Its microbatches come in equal rounds.
        int rounds = std::max(1, microbatches / workers);
        return interleaved(workers, stages / workers, microbatches - microbatches % rounds);
      }
      default: return any_schedule(stages, microbatches);
    }
  }

  // Each worker does what is possible in any order; that order has no deadlock.
  PipelineSchedule any_schedule(int stages, int microbatches) {
    const int workers = between(1, stages);
    std::vector<int> worker_of(static_cast<std::size_t>(stages));
    for (int s = 0; s < stages; ++s)
      worker_of[static_cast<std::size_t>(s)] = s < workers ? s : between(0, workers - 1);
    std::shuffle(worker_of.begin(), worker_of.end(), random_);
    Unordered actions{stages, draw_actions(worker_of, microbatches), {}};
    std::vector<std::vector<PipelineAction>> orders(static_cast<std::size_t>(workers));
    while (!actions.waiting.empty()) {
      PipelineAction next = one_of(actions.ready());
      actions.finish(next);
      int worker = worker_of[static_cast<std::size_t>(next.stage)];
      orders[static_cast<std::size_t>(worker)].push_back(next);
    }
    return PipelineSchedule::of(std::move(orders), "any order").value();
  }

  // With gradients apart for none, some or all; with sends listed or not.
  std::vector<PipelineAction> draw_actions(const std::vector<int>& worker_of, int microbatches) {
    using Work = PipelineWork;
    const int stages = static_cast<int>(worker_of.size());
    const bool lists_sends = chance(3);
    const int splitting = between(0, 2);
    const auto crosses = [&](int s, int to) {
      return to >= 0 && to < stages &&
             worker_of[static_cast<std::size_t>(s)] != worker_of[static_cast<std::size_t>(to)];
    };
    std::vector<PipelineAction> all;
    for (int s = 0; s < stages; ++s)
      for (int m = 0; m < microbatches; ++m) {
        all.push_back({Work::kForward, s, m});
        if (splitting == 2 || (splitting == 1 && chance(2))) {
          all.push_back({Work::kInputGradient, s, m});
          all.push_back({Work::kWeightGradient, s, m});
        } else {
          all.push_back({Work::kBackward, s, m});
        }
        if (!lists_sends) continue;
        if (crosses(s, s + 1) && !chance(4)) all.push_back({Work::kSendForward, s, m});
        if (crosses(s, s - 1) && !chance(4)) all.push_back({Work::kSendBackward, s, m});
      }
    return all;
  }

  std::mt19937_64& random_;
  std::optional<RandomPipeline> made_;
};

}  // namespace

RandomPipeline draw_pipeline(std::mt19937_64& random) { return Draw(random).pipeline(); }

}  // namespace meshard::property

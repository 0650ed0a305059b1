// Up to 1,000 live programs: the calls of each, and what a further one costs.
#include <memory>
#include <vector>

#include "bench/on_devices.h"
#include "bench/raw_api.h"
#include "bench/scale/curve.h"

namespace meshard::bench {
namespace {

constexpr int kCalls = 1000, kStride = 7;  // which visits the programs in another order

// As many programs as `step` has, called through the C API.
class RawPrograms {
 public:
  template <class Step>
  explicit RawPrograms(const Step& step) {
    for (const auto& program : step.programs())
      programs_.push_back(std::make_unique<RawProgram>(
          raw_runtime_client(), view_of(*program).program.lowered().text, 1,
          std::vector<std::vector<std::int64_t>>{{8, 8}}));
  }
  // Milliseconds of kCalls calls.
  double time_of_calls() {
    return milliseconds_of([&] {
      for (std::size_t i = 0; i < kCalls; ++i) {
        RawProgram& program = *programs_[i * kStride % programs_.size()];
        program.launch();
        program.await();
        program.free_outputs();
      }
    });
  }

 private:
  std::vector<std::unique_ptr<RawProgram>> programs_;
};

// One of many values with different programs, computed lazily.
void evaluate(const Tensor& x, int form) {
  Tensor y = x;
  for (int i = 0; i <= form % 32; ++i) y = y + x;
  for (int i = 0; i <= form / 32; ++i) y = y * x;
  sync(y);
  wait_for(y);
}

}  // namespace

void program_curves(Report& report) {
  Curve compile{.name = "scale.programs.first", .work = "compile programs of one jitted function"},
      call{.name = "scale.programs.call",
           .work = "a call of one of the live programs",
           .unit = "us",
           .growth = Growth::kFlat},
      lazy{.name = "scale.programs.lazy",
           .work = "evaluate a lazy value whose program is among the live ones",
           .unit = "us",
           .growth = Growth::kFlat};
  Mesh one({{"one", 1}});
  Tensor x = mark_sharding(from_host(HostArray::full<float>({8, 8}, 1.0f)), one, P());
  wait_for(x);
  for (int count : {10, 100, 1000}) {
    auto step = jit(
        [](Static<int> number, const Tensor& a) { return a + static_cast<float>(number.value); },
        {.name = "programs", .most_programs = 2000});
    auto call_all = [&](int calls, int stride) {
      return milliseconds_of([&] {
        for (int i = 0; i < calls; ++i) wait_for(step(Static<int>{i * stride % count}, x));
      });
    };
    double size = count;
    compile.points.push_back({size, call_all(count, 1)});
    {
      RawPrograms raw(step);
      OursAndFloor times = in_turns(
          9, [&] { return call_all(kCalls, kStride); }, [&] { return raw.time_of_calls(); });
      call.points.push_back({size, times.ours * 1e3 / kCalls, times.floor * 1e3 / kCalls});
    }
    for (int i = 0; i < count; ++i) evaluate(x, i);
    constexpr int kValues = 200;
    lazy.points.push_back({size, least_of(9, [&] {
                             return milliseconds_of([&] {
                                      for (int i = 0; i < kValues; ++i) evaluate(x, i % 10);
                                    }) *
                                    1e3 / kValues;
                           })});
  }
  call.floor_name = "as many programs through the C API";
  for (Curve* curve : {&compile, &call, &lazy}) {
    curve->of = "programs";
    add_curve(report, *curve);
  }
}

}  // namespace meshard::bench

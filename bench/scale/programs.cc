// Up to 1,000 live programs: the calls of each, and what a further one costs.
#include <memory>
#include <vector>

#include "bench/on_devices.h"
#include "bench/raw_api.h"
#include "bench/scale/curve.h"

namespace meshard::bench {

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
    std::vector<std::unique_ptr<RawProgram>> raw;
    for (const auto& program : step.programs())
      raw.push_back(std::make_unique<RawProgram>(raw_runtime_client(),
                                                 view_of(*program).program.lowered().text, 1,
                                                 std::vector<std::vector<std::int64_t>>{{8, 8}}));
    auto call_all_raw = [&](int calls, int stride) {
      return milliseconds_of([&] {
        for (int i = 0; i < calls; ++i) {
          RawProgram& program = *raw[static_cast<std::size_t>(i * stride % count)];
          program.launch();
          program.await();
          program.free_outputs();
        }
      });
    };
    OursAndFloor times = in_turns(
        9, [&] { return call_all(1000, 7); }, [&] { return call_all_raw(1000, 7); });
    call.points.push_back({size, times.ours, times.floor});  // us of one of 1,000 calls
    raw.clear();
    auto evaluate = [&](int shape) {
      Tensor y = x;
      for (int i = 0; i <= shape % 32; ++i) y = y + x;
      for (int i = 0; i <= shape / 32; ++i) y = y * x;
      sync(y);
      wait_for(y);
    };
    for (int i = 0; i < count; ++i) evaluate(i);
    lazy.points.push_back({size, least_of(9, [&] {
                             return milliseconds_of([&] {
                                      for (int i = 0; i < 200; ++i) evaluate(i % 10);
                                    }) *
                                    1e3 / 200;
                           })});
  }
  call.floor_name = "as many programs through the C API";
  for (Curve* curve : {&compile, &call, &lazy}) {
    curve->of = "programs";
    add_curve(report, *curve);
  }
}

}  // namespace meshard::bench

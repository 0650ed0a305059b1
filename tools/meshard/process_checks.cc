// Tested in tools/meshard/check_doctor_processes.py.
#include "tools/meshard/process_checks.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <vector>

#include "meshard/base/cat.h"
#include "meshard/ops/composite/create.h"
#include "meshard/ops/composite/mark_sharding.h"
#include "meshard/ops/composite/statistics.h"
#include "meshard/runtime/device_topology.h"
#include "meshard/runtime/runtime.h"
#include "meshard/trace/jit.h"

namespace meshard::tool {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// The median time of `rounds` calls.
template <class Call>
Result<double> median_of(int rounds, Call call) {
  std::vector<double> times;
  for (int round = 0; round < rounds; ++round) {
    auto begin = Clock::now();
    MESHARD_RETURN_IF_ERROR(call(round));
    times.push_back(seconds_since(begin));
  }
  std::nth_element(times.begin(), times.begin() + rounds / 2, times.end());
  return times[static_cast<std::size_t>(rounds / 2)];
}

class Checks {
 public:
  Checks(const Processes& run, CheckTimes& times) : run_(run), times_(times) {}

  Result<void> all(bool with_program) {
    MESHARD_ASSIGN_OR_RETURN(times_.store, median_of(20, [&](int n) { return store(n); }));
    MESHARD_RETURN_IF_ERROR(run_.barrier("doctor"));
    MESHARD_ASSIGN_OR_RETURN(times_.barrier,
                             median_of(20, [&](int) { return run_.barrier("doctor"); }));
    MESHARD_ASSIGN_OR_RETURN(times_.clock, clock_offset(run_, SameClock::kMeasured));
    if (run_.communicator() == nullptr) return {};
    MESHARD_RETURN_IF_ERROR(collectives());
    return with_program ? program() : Result<void>();
  }

 private:
  Result<void> store(int round) {
    std::string key = cat("doctor/store/", run_.rank()), value = cat("value ", round);
    MESHARD_RETURN_IF_ERROR(run_.store().put(key, value));
    MESHARD_ASSIGN_OR_RETURN(std::string read, run_.store().get(key));
    if (read != value)
      return Error(ErrorCode::kInternal, cat("the store has `", read, "`, not `", value, "`"));
    return {};
  }

  // Every process contributes its rank + 1 to each element.
  Result<void> reduce(std::vector<float>& values) {
    std::vector<int> all(static_cast<std::size_t>(run_.size()));
    std::iota(all.begin(), all.end(), 0);
    std::fill(values.begin(), values.end(), static_cast<float>(run_.rank() + 1));
    auto begin = Clock::now();
    MESHARD_RETURN_IF_ERROR(run_.communicator()->all_reduce(
        all, Reduction::kSum, DType::f32, values.data(), values.data(), values.size()));
    reduce_time_ = seconds_since(begin);
    auto sum = static_cast<float>(run_.size()) * static_cast<float>(run_.size() + 1) / 2;
    for (float value : values)
      if (value != sum)
        return Error(ErrorCode::kInternal,
                     cat("the all-reduce of 1 to ", run_.size(), " is ", value, ", not ", sum));
    return {};
  }

  Result<double> reduce_time(std::size_t count, int rounds) {
    std::vector<float> values(count);
    std::vector<double> times;
    for (int round = 0; round < rounds + 1; ++round) {  // the first one connects the processes
      MESHARD_RETURN_IF_ERROR(run_.barrier("doctor"));
      MESHARD_RETURN_IF_ERROR(reduce(values));
      if (round > 0) times.push_back(reduce_time_);
    }
    std::nth_element(times.begin(), times.begin() + rounds / 2, times.end());
    return times[static_cast<std::size_t>(rounds / 2)];
  }

  Result<void> collectives() {
    MESHARD_ASSIGN_OR_RETURN(times_.small_reduce, reduce_time(1, 20));
    MESHARD_ASSIGN_OR_RETURN(times_.large_reduce, reduce_time(kLargeBytes / sizeof(float), 5));
    return {};
  }

  // Two numbers on each device, and their mean, which the devices compute together.
  Result<void> program() {
    auto begin = Clock::now();
    try {
      install_runtime();
      Mesh mesh = mesh_1d("device");
      double count = 2.0 * static_cast<double>(mesh.size());
      Tensor numbers = mark_sharding(arange(0.0, count, 1.0, DType::f32), mesh, P("device"));
      auto average = jit([](Tensor x) { return mean(x); }, {.name = "doctor"});
      double found = average(numbers).item<float>(), expected = (count - 1) / 2;
      times_.program = seconds_since(begin);
      if (std::abs(found - expected) <= 1e-5 * expected) return {};
      return Error(ErrorCode::kInternal, cat("the program over ", mesh.size(), " devices computes ",
                                             found, ", not ", expected));
    } catch (const Error& error) {
      return error;
    }
  }

  const Processes& run_;
  CheckTimes& times_;
  double reduce_time_ = 0;
};

}  // namespace

std::string CheckTimes::to_string() const {
  std::string line = problem;
  std::replace(line.begin(), line.end(), '\n', ' ');
  char numbers[256];
  std::snprintf(numbers, sizeof numbers, "%.9g %.9g %.9g %.9g %.9g %lld %lld\n", store, barrier,
                small_reduce, large_reduce, program, static_cast<long long>(clock.offset.count()),
                static_cast<long long>(clock.precision.count()));
  return numbers + line;
}

Result<CheckTimes> CheckTimes::parse(const std::string& text) {
  CheckTimes times;
  long long offset = 0, precision = 0;
  int read =
      std::sscanf(text.c_str(), "%lg %lg %lg %lg %lg %lld %lld", &times.store, &times.barrier,
                  &times.small_reduce, &times.large_reduce, &times.program, &offset, &precision);
  std::size_t end = text.find('\n');
  if (read != 7 || end == std::string::npos)
    return Error(ErrorCode::kInvalidArgument,
                 "the processes run different versions of `meshard doctor`");
  times.clock = {std::chrono::nanoseconds(offset), std::chrono::nanoseconds(precision)};
  times.problem = text.substr(end + 1);
  return times;
}

CheckTimes check_processes(const Processes& run, bool with_program) {
  CheckTimes times;
  if (Result<void> done = Checks(run, times).all(with_program); !done.ok())
    times.problem = done.error().message();
  return times;
}

}  // namespace meshard::tool

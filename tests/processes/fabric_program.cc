// What every fabric (runtime/internal/fabric.h) must do: one process of a run over its devices.
// check_fabric.py starts it for each implementation. usage: fabric_program DEVICES [TRAIT...]
//
// Programs return their argument, so that plugins that compute nothing can run them too. Traits:
// "computes": the plugin computes; "sends": values go to processes that have no part of them.
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "meshard/meshard.h"
#include "meshard/pjrt/client.h"

namespace {

using namespace meshard;

int devices = 1;
std::set<std::string> traits;

bool has_others() { return processes().size() > 1; }

struct Failed : std::runtime_error {
  using std::runtime_error::runtime_error;
};

template <class T>
void expect_equal(const T& found, const T& wanted, const std::string& what) {
  if (found != wanted) throw Failed(cat(what, ": found ", found, ", not ", wanted));
}

/// The error of a call.
template <class F>
std::string error_of(const F& call, ErrorCode code) {
  try {
    (void)call();
  } catch (const Error& error) {
    if (error.code() != code) throw Failed(cat("another error: ", error.what()));
    return error.message();
  }
  throw Failed("no error");
}

Mesh line() { return Mesh({{"x", devices}}); }

/// The devices of one process, or all of them in a run of one.
Mesh devices_of(int process) {
  std::vector<std::int64_t> ids;
  const pjrt::Client& client = runtime_client();
  for (std::size_t i = 0; i < client.device_count(); ++i)
    if (client.device(i).process_index() == process) ids.push_back(client.device(i).id());
  const std::int64_t size = std::ssize(ids);
  return Mesh({{"y", size}}, std::move(ids));
}
int last_process() { return processes().size() - 1; }

HostArray ascending(Shape shape) {
  std::vector<float> values(static_cast<std::size_t>(shape.size()));
  std::iota(values.begin(), values.end(), 1.0f);
  return HostArray::from_vector(std::move(values), std::move(shape));
}
// A row for each device.
HostArray rows() { return ascending({devices, 3}); }

Tensor identity(const Tensor& x, const char* name, std::vector<std::size_t> donated = {}) {
  const Sharding sharding = *x.sharding();
  return jit([&](Tensor in) { return mark_sharding(in * 1, sharding); },
             {.name = name, .donate = std::move(donated)})(x);
}

/// Expects the shards of this process to be those of `whole`, and as many as it has devices.
void expect_shards(const Tensor& tensor, const Sharding& sharding, const HostArray& whole) {
  if (tensor.stored_sharding() != sharding) throw Failed(cat("placed on ", tensor.placement()));
  std::size_t own = 0;
  for (std::int64_t id : sharding.mesh().device_ids())
    own += runtime_client().find_device(id)->addressable() ? 1 : 0;
  std::vector<LocalShard> shards = local_shards(tensor);
  expect_equal(shards.size(), own, "the number of shards");
  for (const LocalShard& shard : shards)
    expect_equal(shard.data().to_string(), whole.slice(shard.box()).to_string(),
                 cat("the shard of device ", shard.device_id()));
}

void everybody_is_present() {
  const pjrt::Client& client = runtime_client();
  expect_equal(client.device_count(), static_cast<std::size_t>(devices), "the number of devices");
  expect_equal(client.process_index(), processes().rank(), "the process");
  const Sharding split(line(), P("x", none)), whole(line(), P(none, none));
  expect_shards(mark_sharding(from_host(rows()), split), split, rows());
  expect_shards(mark_sharding(from_host(rows()), whole), whole, rows());
  const Sharding uneven(line(), P("x"));
  expect_shards(mark_sharding(from_host(ascending({devices + 1})), uneven), uneven,
                ascending({devices + 1}));
}

void programs_are_launched() {
  const Sharding split(line(), P("x", none));
  Tensor x = mark_sharding(from_host(rows()), split);
  auto launches = runtime_counters().launches;
  for (int i = 0; i < 40; ++i) x = identity(x, "again");  // small programs are loaded by parts
  expect_equal(runtime_counters().launches - launches, decltype(launches){40}, "launches");
  expect_shards(x, split, rows());
  Tensor next = identity(x, "donated", {0});
  const std::string gone = error_of([&] { return x.to_host(); }, ErrorCode::kFailedPrecondition);
  if (gone.find("donated") == gone.npos) throw Failed(gone);
  expect_shards(next, split, rows());
}

void values_are_read_whole() {
  Tensor x = mark_sharding(from_host(rows()), line(), P("x", none));
  const std::string wanted = rows().to_string();
  expect_equal(x.to_host().to_string(), wanted, "to_host");
  expect_equal(gather(x).to_string(), wanted, "gather");
  std::optional<HostArray> at_last = gather_to(x, last_process());
  expect_equal(at_last.has_value(), processes().rank() == last_process(), "gather_to the last");
  if (at_last) expect_equal(at_last->to_string(), wanted, "gather_to the last");
  expect_equal(is_across_processes(x), has_others(), "across processes");
  // Each process has it all.
  Tensor copies = mark_sharding(from_host(rows()), line(), P(none, none));
  auto launches = runtime_counters().launches;
  expect_equal(copies.to_host().to_string(), wanted, "replicated");
  expect_equal(runtime_counters().launches, launches, "launches");
}

void programs_run_elsewhere() {
  const Sharding there(devices_of(last_process()), P("y"));
  const HostArray values = ascending({2 * there.mesh().size()});
  Tensor x = mark_sharding(from_host(values), there);
  Tensor y = identity(x, "elsewhere");
  expect_shards(y, there, values);
  if (processes().rank() == last_process()) {
    expect_equal(y.to_host().to_string(), values.to_string(), "where it is");
  } else {
    const std::string error = error_of([&] { return y.to_host(); }, ErrorCode::kFailedPrecondition);
    if (error.find(cat("process ", last_process())) == error.npos) throw Failed(error);
  }
  if (traits.contains("sends"))
    expect_equal(gather(y).to_string(), values.to_string(), "brought to all");
}

void values_move() {
  const Sharding all(line(), P("x", none)), copies(line(), P(none, none));
  const Sharding last(devices_of(last_process()), P("y", none));
  Tensor x = mark_sharding(from_host(rows()), all);
  expect_shards(transfer(x, last), last, rows());
  expect_shards(x, all, rows());
  // What the devices have already.
  Tensor replicated = mark_sharding(from_host(rows()), copies);
  const Sharding in_place(devices_of(last_process()), P(none, none));
  expect_shards(transfer(replicated, in_place), in_place, rows());
  if (!traits.contains("sends")) return;
  const Sharding first(devices_of(0), P("y", none));
  Tensor there = mark_sharding(from_host(rows()), first);
  expect_shards(transfer(there, last), last, rows());
  expect_shards(transfer(transfer(there, last), first), first, rows());
}

// The processes notice, and go on.
void different_programs_are_refused() {
  if (!has_others()) return;
  Tensor x = mark_sharding(from_host(rows()), line(), P("x", none));
  const bool is_last = processes().rank() == last_process();
  const std::string error = error_of(
      [&] { return jit([&](Tensor in) { return is_last ? exp(in) : log(in); }, {.name = "f"})(x); },
      ErrorCode::kFailedPrecondition);
  if (error.find("different things") == error.npos) throw Failed(error);
  expect_shards(identity(x, "after"), *x.sharding(), rows());
}

void host_data_is_compared() {
  if (!has_others()) return;
  ::setenv("MESHARD_CHECK_HOST_DATA", "1", 1);
  HostArray own = HostArray::full<float>({devices}, static_cast<float>(processes().rank()));
  const std::string error = error_of([&] { return mark_sharding(from_host(own), line(), P("x")); },
                                     ErrorCode::kFailedPrecondition);
  if (error.find("place f32") == error.npos) throw Failed(error);
  const Sharding split(line(), P("x", none));
  expect_shards(mark_sharding(from_host(rows()), split), split, rows());
  ::unsetenv("MESHARD_CHECK_HOST_DATA");
}

void programs_are_explained() {
  Tensor x = mark_sharding(from_host(rows()), line(), P("x", none));
  auto f = jit([](Tensor in) { return mark_sharding(in * 1, line(), P("x", none)); });
  (void)f(x);
  expect_equal(static_cast<int>(explain(f).parts().target.devices), devices, "devices");
}

void collectives_meet() {
  if (!traits.contains("computes")) return;
  const Sharding split(line(), P("x", none)), columns(line(), P(none, "x"));
  HostArray square = ascending({devices, devices});
  Tensor x = mark_sharding(from_host(square), split);
  const auto total = static_cast<float>(devices * devices * (devices * devices + 1) / 2);
  expect_equal(jit([](Tensor in) { return sum(in); })(x).item<float>(), total, "the sum");
  expect_shards(mark_sharding(x, columns), columns, square);
  Tensor partial = jit([](Tensor in) {
    return sharding_constraint(in, Sharding(line(), P(none, none)).with_unreduced({AxisRef("x")}));
  })(x);
  expect_equal(partial.to_host().to_string(), square.to_string(), "partial sums");
  HostArray large = ascending({512, 1024});  // by the host, where one process has all of it
  Tensor wide = mark_sharding(mark_sharding(from_host(large), split), columns);
  expect_shards(wide, columns, large);
}

void everything_works_after_a_restart() {
  Tensor before = mark_sharding(from_host(rows()), line(), P(none, none));
  Tensor after_sync = identity(before, "before");
  sync({after_sync});
  restart_runtime();
  everybody_is_present();
  programs_are_launched();
  values_are_read_whole();
  expect_equal(after_sync.to_host().to_string(), rows().to_string(), "a value of before");
}

const std::vector<std::pair<const char*, void (*)()>> kChecks = {
    {"everybody is present", everybody_is_present},
    {"programs are launched", programs_are_launched},
    {"values are read whole", values_are_read_whole},
    {"programs run elsewhere", programs_run_elsewhere},
    {"values move", values_move},
    {"different programs are refused", different_programs_are_refused},
    {"host data is compared", host_data_is_compared},
    {"programs are explained", programs_are_explained},
    {"collectives meet", collectives_meet},
    {"everything works after a restart", everything_works_after_a_restart},
};

}  // namespace

int main(int count, char** arguments) {
  int failed = 0;
  try {
    devices = std::atoi(arguments[1]);
    traits = {arguments + 2, arguments + count};
    ProcessesOptions options;
    const char* local = std::getenv("MESHARD_FAKE_DEVICES");
    if (local && std::getenv("MESHARD_PROCESS_ADDRESS")) options.local_devices = std::atoi(local);
    (void)initialize_processes(options).value();
    if (!local) configure_runtime({.cpu_devices = devices}).value();
    for (const auto& [name, check] : kChecks) try {
        check();
      } catch (const std::exception& error) {
        std::printf("process %d: %s: %s\n", processes().rank(), name, error.what());
        ++failed;
      }
    (void)processes().barrier("the end").value();
  } catch (const std::exception& error) {
    std::printf("process %d: %s\n", processes().rank(), error.what());
    ++failed;
  }
  std::printf("%d of %zu checks failed\n", failed, kChecks.size());
  return failed == 0 ? 0 : 1;
}

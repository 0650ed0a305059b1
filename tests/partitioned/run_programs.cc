#include "tests/partitioned/run_programs.h"

#include <atomic>
#include <cmath>
#include <cstring>
#include <optional>
#include <random>
#include <thread>

#include "meshard/hlo/shape.h"
#include "meshard/pjrt/plugin_search.h"
#include "tests/support/thread_communicator.h"

namespace meshard {
namespace {

std::optional<pjrt::Client>& cpu_client() {
  static std::optional<pjrt::Client> client = []() -> std::optional<pjrt::Client> {
    Result<std::string> path = pjrt::find_plugins().first("cpu");
    if (!path.ok()) return std::nullopt;
    pjrt::NamedValue option{"cpu_device_count", std::int64_t{8}};
    pjrt::Client made =
        pjrt::Client::create(pjrt::Plugin::load(*path).value(), {&option, 1}).value();
    if (made.platform() != "cpu") return std::nullopt;
    return made;
  }();
  return client;
}

// The part of an array that a device of the mesh a=2, b=devices/2 holds.
Box box_of(const ProgramArgument& argument, int devices, int device) {
  Box box;
  for (std::size_t d = 0; d < argument.dimensions.size(); ++d) {
    int parts = 1, part = 0;
    for (char axis : argument.axes[d]) {
      int size = axis == 'a' ? 2 : devices / 2;
      int at = axis == 'a' ? device / (devices / 2) : device % (devices / 2);
      parts *= size;
      part = part * size + at;
    }
    std::int64_t size = argument.dimensions[d] / parts;
    box.push_back({part * size, (part + 1) * size});
  }
  return box;
}

pjrt::Buffer send(const pjrt::Client& client, const pjrt::Device& device, const HostArray& array,
                  const pjrt::ArrayType& type) {
  pjrt::HostArrayView view{
      array.bytes(), type.element, {type.dimensions.data(), type.dimensions.size()}};
  // An empty array has no bytes.
  static const char kNothing = 0;
  if (view.data == nullptr) view.data = &kNothing;
  return client.buffer_from_host(view, pjrt::HostSemantics::kImmutableOnlyDuringCall, device)
      .value()
      .buffer;
}

Result<HostArray> receive(const pjrt::BufferView& buffer) {
  Dimensions sizes;
  for (std::int64_t size : buffer.type().dimensions) sizes.push_back(size);
  HostArray array = HostArray::uninitialized(
      {dtype_of_element(buffer.type().element).value(), Shape(std::move(sizes))});
  if (array.size() == 0) return array;
  MESHARD_RETURN_IF_ERROR(buffer.read({static_cast<std::byte*>(array.mutable_bytes()),
                                       static_cast<std::size_t>(array.size_in_bytes())}));
  return array;
}

class StrictCommunicator : public Communicator {
 public:
  StrictCommunicator(std::unique_ptr<Communicator> real, std::uint64_t seed)
      : real_(std::move(real)), random_(seed) {}
  int rank() const override { return real_->rank(); }
  int size() const override { return real_->size(); }
  int calls() const { return calls_; }

  Result<void> call(std::span<const int> group, const GroupCall& call, const void* in,
                    void* out) override {
    return alone([&] { return real_->call(group, call, in, out); });
  }
  Result<void> permute(int to, int from, const void* in, void* out, std::size_t bytes) override {
    return alone([&] { return real_->permute(to, from, in, out, bytes); });
  }

 private:
  template <class Call>
  Result<void> alone(Call call) {
    if (busy_.exchange(true))
      return Error(ErrorCode::kFailedPrecondition,
                   cat("[test] process ", rank(), " makes two calls at once"));
    ++calls_;
    std::this_thread::sleep_for(std::chrono::microseconds(random_() % 300));
    Result<void> done = call();
    busy_ = false;
    return done;
  }

  std::unique_ptr<Communicator> real_;
  std::mt19937_64 random_;
  std::atomic<bool> busy_{false};
  std::atomic<int> calls_{0};
};

std::vector<pjrt::BufferList> send_all(const pjrt::Client& client,
                                       const pjrt::LoadedExecutable& program,
                                       const std::vector<HostArray>& arguments) {
  std::vector<pjrt::BufferList> lists;
  for (std::size_t k = 0; k < arguments.size(); ++k) {
    std::vector<pjrt::Buffer> buffers;
    for (const pjrt::Device* device : program.devices())
      buffers.push_back(send(client, *device, arguments[k], program.signature().parameters[k]));
    lists.push_back(pjrt::BufferList::of(buffers));
  }
  return lists;
}

std::vector<const pjrt::BufferList*> pointers_to(const std::vector<pjrt::BufferList>& lists) {
  std::vector<const pjrt::BufferList*> pointers;
  for (const pjrt::BufferList& list : lists) pointers.push_back(&list);
  return pointers;
}

// What one process does.
Result<std::vector<HostArray>> run_process(const pjrt::Client& client,
                                           const pjrt::LoadedExecutable& program, bool communicates,
                                           const std::vector<HostArray>& arguments, int launches) {
  std::vector<Outputs> outputs;
  if (!communicates) {
    auto lists = send_all(client, program, arguments);
    outputs.emplace_back(program.output_count());
    MESHARD_ASSIGN_OR_RETURN(pjrt::Launch launch,
                             program.execute(pointers_to(lists), outputs.back()));
    MESHARD_RETURN_IF_ERROR(launch.await());
    return read(outputs.back());
  }
  CollectiveOrder order(client);
  std::vector<pjrt::Launch> running;
  for (int i = 0; i < launches; ++i) {
    MESHARD_ASSIGN_OR_RETURN(pjrt::Launch one, launch(client, order, program, arguments, outputs));
    running.push_back(std::move(one));
  }
  for (const pjrt::Launch& launch : running) MESHARD_RETURN_IF_ERROR(launch.await());
  return read(outputs.back());
}

testing::AssertionResult agree(const HostArray& expected, const HostArray& got, double tolerance) {
  if (expected.type() != got.type())
    return testing::AssertionFailure() << "types " << expected.type() << " and " << got.type();
  if (expected.size() == 0) return testing::AssertionSuccess();
  if (tolerance == 0) {
    if (std::memcmp(expected.bytes(), got.bytes(),
                    static_cast<std::size_t>(expected.size_in_bytes())) == 0)
      return testing::AssertionSuccess();
    return testing::AssertionFailure() << expected << "\nand\n" << got;
  }
  HostArray a = expected.astype(DType::f64), b = got.astype(DType::f64);
  double most = 0;
  for (double value : a.data<double>()) most = std::max(most, std::abs(value));
  for (std::size_t i = 0; i < a.data<double>().size(); ++i)
    if (!(std::abs(a.data<double>()[i] - b.data<double>()[i]) <= tolerance * most))
      return testing::AssertionFailure() << expected << "\nand\n" << got;
  return testing::AssertionSuccess();
}

}  // namespace

void OnCpuDevices::SetUp() {
  if (!cpu_client()) GTEST_SKIP() << "no CPU plugin";
}

const pjrt::Client& OnCpuDevices::client() const { return *cpu_client(); }

DeviceArrays random_arguments(const ShardedProgram& program, int devices, TestRandom& random) {
  DeviceArrays all(static_cast<std::size_t>(devices));
  for (const ProgramArgument& argument : program.arguments) {
    DType type = parse_stablehlo_dtype(argument.element).value();
    std::vector<double> values;
    Shape shape(Dimensions(argument.dimensions.begin(), argument.dimensions.end()));
    for (std::int64_t i = 0; i < shape.size(); ++i) {
      std::int64_t low = is_unsigned_integer(type) || type == DType::bool_ ? 0 : -16;
      std::int64_t value = random.between(low, type == DType::bool_ ? 1 : 16);
      values.push_back(is_floating(type) ? static_cast<double>(value) / 8
                                         : static_cast<double>(value));
    }
    HostArray whole = HostArray::from_vector(std::move(values), shape).astype(type);
    for (int device = 0; device < devices; ++device)
      all[static_cast<std::size_t>(device)].push_back(
          whole.slice(box_of(argument, devices, device)));
  }
  return all;
}

Result<DeviceArrays> run_in_one_process(const pjrt::Client& client, const ShardedProgram& program,
                                        int devices, const DeviceArrays& arguments) {
  pjrt::CompileOptions options;
  options.num_partitions = devices;
  MESHARD_ASSIGN_OR_RETURN(pjrt::LoadedExecutable loaded, client.compile(program.text, options));
  std::vector<pjrt::BufferList> lists;
  for (std::size_t i = 0; i < loaded.parameter_count(); ++i) {
    std::vector<pjrt::Buffer> buffers;
    for (std::size_t d = 0; d < arguments.size(); ++d)
      buffers.push_back(
          send(client, *loaded.devices()[d], arguments[d][i], loaded.signature().parameters[i]));
    lists.push_back(pjrt::BufferList::of(buffers));
  }
  Outputs outputs(loaded.output_count());
  MESHARD_ASSIGN_OR_RETURN(pjrt::Launch launch, loaded.execute(pointers_to(lists), outputs));
  MESHARD_RETURN_IF_ERROR(launch.await());
  DeviceArrays results(arguments.size());
  for (std::size_t d = 0; d < results.size(); ++d)
    for (const pjrt::BufferList& output : outputs) {
      MESHARD_ASSIGN_OR_RETURN(HostArray array, receive(output[d]));
      results[d].push_back(std::move(array));
    }
  return results;
}

Result<pjrt::LoadedExecutable> load_on_one(const pjrt::Client& client,
                                           const RewrittenModule& module, std::size_t device) {
  const std::size_t one[] = {device};
  return load_on(client, module, one);
}

Result<pjrt::LoadedExecutable> load_on(const pjrt::Client& client, const RewrittenModule& module,
                                       std::span<const std::size_t> devices) {
  std::vector<const pjrt::Device*> list;
  for (std::size_t device : devices) list.push_back(&client.device(device));
  return load_partitioned(client, module, list);
}

std::vector<pjrt::LoadedExecutable> load_on_devices(const pjrt::Client& client,
                                                    const RewrittenModule& module, int devices) {
  std::vector<pjrt::LoadedExecutable> programs;
  programs.push_back(load_on_one(client, module, 0).value());
  std::string bytes = programs[0].executable().serialize().value();
  for (int d = 1; d < devices; ++d) {
    pjrt::CompileOptions options;
    options.use_spmd_partitioning = options.use_shardy = false;
    options.device_assignment = {client.device(static_cast<std::size_t>(d)).id()};
    programs.push_back(client.deserialize_and_load(bytes, &options).value());
  }
  return programs;
}

Result<pjrt::Launch> launch(const pjrt::Client& client, CollectiveOrder& order,
                            const pjrt::LoadedExecutable& program,
                            const std::vector<HostArray>& arguments,
                            std::vector<Outputs>& outputs) {
  auto lists = send_all(client, program, arguments);
  outputs.emplace_back(program.output_count() - 1);
  return order.execute(program, pointers_to(lists), outputs.back());
}

Result<std::vector<HostArray>> read(const Outputs& outputs) {
  std::vector<HostArray> results;
  for (const pjrt::BufferList& output : outputs) {
    MESHARD_ASSIGN_OR_RETURN(HostArray array, receive(output[0]));
    results.push_back(std::move(array));
  }
  return results;
}

StrictCommunicators::StrictCommunicators(int size, TestRandom& random,
                                         std::chrono::milliseconds limit) {
  for (auto& each : make_thread_communicators(size, limit))
    all.push_back(std::make_shared<StrictCommunicator>(std::move(each), random()));
}

int StrictCommunicators::calls() const {
  return static_cast<const StrictCommunicator&>(*all[0]).calls();
}

Result<DeviceArrays> run_as_processes(const pjrt::Client& client,
                                      const std::vector<pjrt::LoadedExecutable>& programs,
                                      bool communicates, const DeviceArrays& arguments,
                                      const StrictCommunicators& communicators, int launches) {
  std::vector<CollectiveService> services;
  for (std::size_t d = 0; d < programs.size(); ++d) {
    MESHARD_ASSIGN_OR_RETURN(
        auto service,
        CollectiveService::start(client, communicators.all[d], {programs[d].devices()[0]->id()}));
    services.push_back(std::move(service));
  }
  std::vector<std::optional<Result<std::vector<HostArray>>>> results(programs.size());
  std::vector<std::thread> threads;
  for (std::size_t d = 0; d < programs.size(); ++d)
    threads.emplace_back([&, d] {
      results[d] = run_process(client, programs[d], communicates, arguments[d], launches);
    });
  for (std::thread& thread : threads) thread.join();
  DeviceArrays all;
  for (auto& result : results) {
    if (!result->ok()) return result->error();
    all.push_back(**std::move(result));
  }
  return all;
}

testing::AssertionResult agree(const DeviceArrays& expected, const DeviceArrays& got,
                               double tolerance) {
  if (expected.size() != got.size()) return testing::AssertionFailure() << "other devices";
  for (std::size_t d = 0; d < expected.size(); ++d) {
    if (expected[d].size() != got[d].size())
      return testing::AssertionFailure()
             << expected[d].size() << " outputs instead of " << got[d].size();
    for (std::size_t i = 0; i < expected[d].size(); ++i)
      if (auto same = agree(expected[d][i], got[d][i], tolerance); !same)
        return testing::AssertionFailure() << "device " << d << ", output " << i << ":\n"
                                           << same.message();
  }
  return testing::AssertionSuccess();
}

}  // namespace meshard

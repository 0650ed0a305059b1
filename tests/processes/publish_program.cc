// Publishes tensors from the processes of one run, and receives them in those of another. Started
// by check_publish.py and bench/publish.py.
//
//   publish_program publish ADDRESS AxB BYTES INTERVAL STOP   publishes versions, INTERVAL ms apart
//                                                (0: one), until there is a file STOP
//   publish_program receive ADDRESS AxB BYTES COUNT           receives COUNT newer versions, each
//                                                onto another layout, and checks each element
//   publish_program time ADDRESS AxB BYTES COUNT              receives COUNT times, and says how
//                                                long it took
//   publish_program begin ADDRESS AxB BYTES                   begins to receive, and waits to be
//   killed
//
// The tensors have BYTES bytes in all, over a mesh of AxB devices; their elements say which version
// they are of.
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <thread>

#include "meshard/io/publish.h"
#include "meshard/meshard.h"

namespace {

using namespace meshard;
using Tensors = std::map<std::string, Tensor>;

constexpr std::int64_t kColumns = 4096;

Mesh mesh({{"x", 1}});
std::int64_t rows = 0;  // of each large tensor

void say(const std::string& text) {
  if (processes().rank() != 0) return;
  std::printf("%s\n", text.c_str());
  std::fflush(stdout);
}

/// Different for each element nearby, and for each version.
float element(std::int64_t version, std::int64_t row, std::int64_t column) {
  return static_cast<float>(version % 1000 * 8192 + row % 64 * 64 + column % 64);
}

HostArray elements(std::int64_t version, const Box& box) {
  HostArray array = HostArray::uninitialized({DType::f32, box_shape(box)});
  auto* at = reinterpret_cast<float*>(array.mutable_bytes());
  for (std::int64_t row = box[0].start; row < box[0].stop; ++row)
    for (std::int64_t column = box[1].start; column < box[1].stop; ++column)
      *at++ = element(version, row, column);
  return array;
}

struct Layout {
  const char* name;
  Shape shape;
  PartitionSpec spec;
};

/// Number 0 is that of the publisher.
std::vector<Layout> layouts(int number) {
  const Shape large({rows, kColumns});
  const DimensionSpec both = axes("a", "b");
  switch (number % 3) {
    case 0: return {{"w", large, P("a", "b")}, {"v", large, P("b", "a")}, {"odd", {7, 5}, P("a")}};
    case 1: return {{"w", large, P(none, both)}, {"v", large, P(both)}, {"odd", {7, 5}, P()}};
    default: return {{"w", large, P("b")}, {"v", large, P()}, {"odd", {7, 5}, P(none, both)}};
  }
}

Tensors tensors(std::int64_t version) {
  Tensors all;
  for (const Layout& each : layouts(0))
    all.emplace(each.name, ShardedTensor::from_callback(
                               {DType::f32, each.shape}, Sharding(mesh, each.spec, 2),
                               [&](const Box& box) { return elements(version, box); }));
  return all;
}

Tensors like(int number) {
  Tensors all;
  for (const Layout& each : layouts(number))
    all.emplace(each.name, abstract_tensor(each.shape, DType::f32, mesh, each.spec));
  return all;
}

void check(const Tensors& all, std::int64_t version) {
  for (const auto& [name, tensor] : all)
    for (const LocalShard& shard : local_shards(tensor)) {
      const HostArray got = shard.data(), wanted = elements(version, shard.box());
      if (got.type() != wanted.type() ||
          std::memcmp(got.bytes(), wanted.bytes(), static_cast<std::size_t>(got.size_in_bytes())))
        throw InternalError(cat(name, " is not that of version ", version, ": ", shard));
    }
}

int publish(const std::string& address, int interval, const char* stop) {
  io::Publisher publisher = io::Publisher::open(address).value();
  for (std::int64_t version = 0;; ++version) {
    publisher.publish(tensors(version)).value();
    if (version == 0) say(publisher.address());
    // All go on until all have seen the file.
    for (bool ends = false; !ends;) {
      std::this_thread::sleep_for(std::chrono::milliseconds(interval == 0 ? 50 : interval));
      if (::access(stop, F_OK) == 0) processes().store().put("stop", "").value();
      processes().barrier("turn").value();
      if (processes().store().try_get("stop").value()) {
        say(cat("receivers ", publisher.num_receivers()));
        return 0;
      }
      ends = interval != 0;
    }
  }
}

int receive(const std::string& address, int count) {
  io::ReceiveOptions options;
  for (int i = 1; i <= count; ++i) {
    io::Received<Tensors> got = io::receive(address, like(i), options).value();
    check(got.value, got.version);
    if (options.newer_than && got.version <= *options.newer_than)
      throw InternalError("not a newer version");
    options.newer_than = got.version;
    say(cat("version ", got.version));
  }
  return 0;
}

int measure(const std::string& address, int count) {
  for (int i = 0; i < count; ++i) {
    processes().barrier("begin").value();
    const auto begin = std::chrono::steady_clock::now();
    io::Received<Tensors> got = io::receive(address, like(1)).value();
    for (auto& [name, tensor] : got.value) sync(tensor);
    processes().barrier("end").value();
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - begin;
    if (i == 0) check(got.value, got.version);
    say(cat("seconds ", time.count()));
  }
  return 0;
}

int run(int count, char** words) {
  if (count < 5) throw InternalError("publish_program COMMAND ADDRESS AxB BYTES ...");
  const std::string command = words[1], address = words[2];
  const int a = std::atoi(words[3]), b = std::atoi(std::strchr(words[3], 'x') + 1);
  rows = std::atoll(words[4]) / (2 * kColumns * 4);
  initialize_processes().value();
  mesh = Mesh({{"a", a}, {"b", b}});
  if (command == "publish") return publish(address, std::atoi(words[5]), words[6]);
  if (command == "receive") return receive(address, std::atoi(words[5]));
  if (command == "time") return measure(address, std::atoi(words[5]));
  io::internal::Receiving receiving = io::internal::Receiving::open(address, {}, {}).value();
  say(cat("began ", receiving.version()));
  for (;;) ::pause();
}

}  // namespace

int main(int count, char** words) {
  try {
    return run(count, words);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}

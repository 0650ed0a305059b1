// Transfers, donation and memory statistics.
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "meshard/meshard.h"
#include "tools/hardware/check.h"

namespace meshard::hardware {

const Mesh& one_device() {
  static const Mesh mesh({{"x", 1}});
  return mesh;
}

namespace {

Tensor placed(HostArray array, const Mesh& mesh) {
  Tensor tensor = mark_sharding(from_host(std::move(array)), mesh, P());
  block_until_ready(tensor);
  return tensor;
}

// Every value of a byte occurs; bool has only 0 and 1.
HostArray pattern(TensorType type) {
  std::vector<unsigned char> bytes(static_cast<std::size_t>(type.bytes()));
  for (std::size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<unsigned char>(type.dtype == DType::bool_ ? i % 2 : i * 37 % 251);
  return HostArray::copy_of(type, bytes.data());
}

bool same_bytes(const HostArray& a, const HostArray& b) {
  return a.type() == b.type() &&
         std::memcmp(a.bytes(), b.bytes(), static_cast<std::size_t>(a.type().bytes())) == 0;
}

void there_and_back(DType dtype) {
  check(cat("there-and-back.", to_string(dtype)), [&] {
    HostArray sent = pattern({dtype, {33, 17}});
    HostArray received = placed(HostArray(sent), one_device()).to_host();
    require(same_bytes(sent, received), "the bytes that came back differ");
    return std::string("561 elements are equal bit for bit");
  });
}

void bandwidth(std::string_view name, std::int64_t bytes) {
  HostArray array = HostArray::zeros({DType::f32, {bytes / 4}});
  double there = least_seconds([&] { (void)placed(HostArray(array), one_device()); }, 0.5);
  Tensor on_device = placed(HostArray(array), one_device());
  auto negate = jit([](Tensor x) { return -x; }, JitOptions{.name = "negate"});
  double best = 1e300;
  // A new value each time: reading the same one again would return the kept copy.
  for (int i = 0; i < 4; ++i) {
    Tensor fresh = negate(on_device);
    block_until_ready(fresh);
    double begin = seconds_now();
    (void)fresh.to_host();
    best = std::min(best, seconds_now() - begin);
  }
  measured(cat("to-device.", name), static_cast<double>(bytes) / there, "B/s");
  measured(cat("to-host.", name), static_cast<double>(bytes) / best, "B/s");
}

void donation() {
  check("donation", [] {
    auto step = jit([](Tensor x) { return x * 0.5f + 1.0f; },
                    JitOptions{.name = "donated", .donate = {0}, .keep_on_disk = false});
    Tensor x = placed(HostArray::full<float>({1024, 1024}, 1.0f), one_device());
    Tensor first = x;
    x = step(x);
    block_until_ready(x);
    std::int64_t live = memory_stats(one_device())[0].live_bytes;
    for (int i = 0; i < 20; ++i) x = step(x);
    block_until_ready(x);
    std::int64_t after = memory_stats(one_device())[0].live_bytes;
    require(after == live,
            cat("20 donating calls changed the live bytes from ", live, " to ", after));
    double expected = 2 - std::ldexp(1.0, -21);  // 1 is the start, and 2 the limit
    float value = x.to_host().to_vector<float>()[7];
    require(std::abs(value - expected) < 1e-6,
            cat("the value is ", value, ", expected ", expected));
    bool refused = false;
    try {
      (void)first.to_host();
    } catch (const Error&) {
      refused = true;
    }
    require(refused, "a donated value can still be read");
    std::optional<MemoryUse> memory = explain(step).memory();
    if (!memory) return cat("20 calls without growth; the plugin reports no memory of programs");
    require(memory->aliased == 4 << 20,
            cat("the program reuses ", memory->aliased, " of 4194304 bytes"));
    return cat("20 calls in place, ", live, " live bytes");
  });
}

void between_devices() {
  if (runtime_client().addressable_devices().size() < 2) return;
  check("between-devices", [] {
    Mesh both({{"x", 2}}), other({{"x", 1}}, {1});
    HostArray sent = pattern({DType::i32, {64, 6}});
    Tensor split = mark_sharding(from_host(HostArray(sent)), both, P("x"));
    Tensor moved = mark_sharding(split, other, P());
    require(same_bytes(moved.to_host(), sent), "values changed on their way to device 1");
    Tensor sums = mark_sharding(sum(split, {0}), both, P());
    Tensor alone = sum(placed(HostArray(sent), one_device()), {0});
    require(same_bytes(sums.to_host(), alone.to_host()), "a sum over 2 devices is wrong");
    return std::string("device 0 to 1, and a sum over both");
  });
}

}  // namespace

void transfer_step() {
  for (int d = 0; d < kDTypeCount; ++d) there_and_back(static_cast<DType>(d));
  bandwidth("4-KiB", 4 << 10);
  bandwidth("1-MiB", 1 << 20);
  bandwidth("64-MiB", 64 << 20);
  donation();
  between_devices();
}

void memory_step() {
  constexpr std::int64_t kBytes = 16 << 20;
  const auto stats = [] { return memory_stats(one_device())[0]; };
  MemoryStats before = stats(), with = before;
  check("live-bytes", [&] {
    {
      Tensor held = placed(HostArray::zeros({DType::f32, {kBytes / 4}}), one_device());
      with = stats();
      require(with.live_bytes - before.live_bytes == kBytes,
              cat("16 MiB changed the live bytes by ", with.live_bytes - before.live_bytes));
    }
    require(
        stats().live_bytes == before.live_bytes,
        cat("after its end ", stats().live_bytes, " bytes live, before it ", before.live_bytes));
    require(stats().peak_live_bytes >= with.live_bytes, "the peak is below what was live");
    return std::string("16 MiB come and go");
  });
  check("allocator", [&] {
    if (!with.bytes_in_use)
      throw Error(ErrorCode::kUnimplemented, "the plugin reports no statistics of its allocator");
    std::int64_t grown = *with.bytes_in_use - *before.bytes_in_use;
    require(grown >= kBytes, cat("16 MiB changed bytes_in_use by ", grown));
    return with.to_string();
  });
  if (with.bytes_limit) measured("bytes-limit", static_cast<double>(*with.bytes_limit), "B");
  check("memory-kinds", [] {
    const pjrt::Device& device = *runtime_client().addressable_devices()[0];
    std::vector<std::string> kinds;
    for (const pjrt::Memory& memory : device.memories().value()) kinds.push_back(memory.kind());
    return cat(join(kinds, ", "), "; default ", device.default_memory().value().kind());
  });
}

}  // namespace meshard::hardware

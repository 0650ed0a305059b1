// Checkpoints: the 447 arrays (120 MB) of a 12-layer GPT's training state on 2x4 devices.
#include "meshard/io/checkpoint.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "bench/gpt_model.h"
#include "bench/on_devices.h"
#include "bench/report.h"
#include "bench/timing.h"

namespace meshard::bench {
namespace {

struct TrainingState {
  Gpt model, mean, square;
  MESHARD_FIELDS(model, mean, square)
};

// The state with values that compression would not shrink. Axes are placed by name, so that the
// same specs fit each mesh.
TrainingState placed_state(const Mesh& mesh) {
  std::uint32_t seed = 12345;
  auto make = [&] {
    return make_gpt({}, [&](const TensorType& type, const PartitionSpec& spec) {
      HostArray values = HostArray::uninitialized(type);
      for (float& value : values.mutable_data<float>())
        value = float((seed = seed * 1664525 + 1013904223) >> 8) * 1e-7f;
      return mark_sharding(from_host(std::move(values)), mesh, spec);
    });
  };
  return {make(), make(), make()};
}

// The types and shardings of the same state on another mesh.
TrainingState abstract_state(const Mesh& mesh) {
  auto make = [&] {
    return make_gpt({}, [&](const TensorType& type, const PartitionSpec& spec) {
      return abstract_tensor(type.shape, type.dtype, mesh, spec);
    });
  };
  return {make(), make(), make()};
}

void check_file(bool good, const std::string& path) {
  if (good) return;
  std::fprintf(stderr, "meshard-bench: cannot write or read %s\n", path.c_str());
  std::exit(1);
}

// Writes the bytes to a file. With `durable`, also waits until they are on the disk, as save()
// does.
double write_plainly(const std::string& path, const std::vector<char>& bytes, bool durable) {
  double begin = now();
  int file = open(path.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0644);
  for (std::size_t at = 0; at < bytes.size();) {
    ssize_t written = file < 0 ? -1 : write(file, bytes.data() + at, bytes.size() - at);
    check_file(written > 0, path);
    at += static_cast<std::size_t>(written);
  }
  if (durable) check_file(fsync(file) == 0, path);
  close(file);
  return now() - begin;
}

double read_plainly(const std::string& path) {
  double begin = now();
  int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  check_file(file >= 0, path);
  auto size = static_cast<std::size_t>(lseek(file, 0, SEEK_END));
  HostArray to =
      HostArray::uninitialized({DType::u8, {static_cast<std::int64_t>(size)}});  // fresh pages
  for (std::size_t at = 0; at < size;) {
    auto* here = reinterpret_cast<char*>(to.mutable_bytes()) + at;
    ssize_t count = pread(file, here, size - at, static_cast<off_t>(at));
    check_file(count > 0, path);
    at += static_cast<std::size_t>(count);
  }
  close(file);
  return now() - begin;
}

double restore_once(const std::string& path, const TrainingState& like) {
  double begin = now();
  TrainingState state = io::restore(path, like).value();
  for (const Tensor& each : structure::tensors(state)) wait_for(each);
  return now() - begin;
}

}  // namespace

void checkpoint_rows(Report& report) {
  std::string folder = (std::filesystem::temp_directory_path() / "meshard-bench-XXXXXX").string();
  check_file(mkdtemp(folder.data()) != nullptr, folder);
  const std::string ours_path = folder + "/state.safetensors", plain_path = folder + "/plain";
  TrainingState state = placed_state(Mesh({{"dp", 2}, {"tp", 4}}));
  std::vector<Tensor> tensors = structure::tensors(state);
  std::size_t total = 0;
  for (const Tensor& each : tensors) {
    wait_for(each);
    total += static_cast<std::size_t>(each.type().bytes());
  }
  const std::vector<char> bytes(total, 'x');
  char text[120];
  std::snprintf(text, sizeof text, "%zu arrays, %zu MB, ", tensors.size(), total / 1000000);
  const std::string arrays = text;
  auto add = [&](const char* name, const std::string& work, OursAndFloor times,
                 const char* floor_name, const std::string& note) {
    report.add({.name = name,
                .work = work,
                .unit = "ms",
                .ours = times.ours / 1e3,
                .floor = times.floor / 1e3,
                .floor_name = floor_name,
                .goal = "at most 3 times",
                .bound = 3 * times.floor / 1e3,
                .note = note});
  };

  Least cached;
  for (int i = 0; i < 5; ++i) cached.take(write_plainly(plain_path, bytes, false));
  std::snprintf(text, sizeof text, "one file without waiting for the disk: %.1f ms",
                cached.value / 1e3);
  OursAndFloor saved = in_turns(
      6,
      [&] {
        double begin = now();
        io::save(ours_path, state).value();
        return now() - begin;
      },
      [&] { return write_plainly(plain_path, bytes, true); });
  add("checkpoint.save", arrays + "saved, on the disk", saved,
      "the same bytes in one file, on the disk", text);

  auto restore_row = [&](const char* name, const std::string& work, const Mesh& mesh) {
    TrainingState like = abstract_state(mesh);
    OursAndFloor times = in_turns(
        8, [&] { return restore_once(ours_path, like); }, [&] { return read_plainly(plain_path); });
    add(name, work, times, "the same bytes read from one file into fresh memory", {});
  };
  restore_row("checkpoint.restore", arrays + "restored onto 2x4 devices",
              Mesh({{"dp", 2}, {"tp", 4}}));
  restore_row("checkpoint.restore.other", "the same onto 4x2 devices",
              Mesh({{"dp", 4}, {"tp", 2}}));
  std::filesystem::remove_all(folder);
}

}  // namespace meshard::bench

// Measurements of other projects for the same rows.
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "bench/report.h"

namespace meshard::bench {
namespace {

// JAX 0.10.2 (on the CPU plugin where the C API is the floor) and torch_xla, measured on 2 cores of
// a Sapphire Rapids Xeon with 8 virtual CPU devices: the minimum time or the maximum bandwidth of
// several runs on an idle machine. Other machines give other numbers: compare ratios.
const PeerFigure kRecorded[] = {
    {"record.add", "torch_xla", 7.3},
    {"step.gpt12", "JAX", 614},
    {"step.gpt12.repeat", "JAX", 260},
    {"call.matmul", "JAX", 142.7},
    {"call.params2", "JAX", 141.3},
    {"call.params2.donated", "JAX", 134.6},
    {"call.params2.chained", "JAX", 138.8},
    {"call.params2.donated.chained", "JAX", 121.6},
    {"call.params20", "JAX", 530.7},
    {"call.params20.donated", "JAX", 435.3},
    {"call.params20.chained", "JAX", 432.3},
    {"call.params20.donated.chained", "JAX", 330.1},
    {"call.params200", "JAX", 5986.5},
    {"call.params200.donated", "JAX", 4470},
    {"call.params200.donated.chained", "JAX", 2690},
    {"single.matmul", "JAX", 10.7},
    {"place.rows", "JAX", 430},
    {"place.columns", "JAX", 2.2},
    {"place.columns", "torch_xla", 0.62},
    {"place.grid", "JAX", 2.6},
    {"place.grid", "torch_xla", 0.59},
    {"place.rows.unaligned", "JAX", 3.7},
    {"place.rows.unaligned", "torch_xla", 0.93},
    {"place.replicated.unaligned", "torch_xla", 0.13},
    {"gather.rows", "JAX", 4.1},
    {"gather.columns", "JAX", 2.5},
    {"gather.small", "torch_xla", 4500},
    {"reshard.columns", "JAX", 2.817},
    {"reshard.columns.jit", "JAX", 1.035},
    {"checkpoint.save", "orbax", 1988},
    {"checkpoint.restore", "orbax", 1126},
    {"checkpoint.restore.other", "orbax", 996},
    {"slices.all", "JAX", 134},
    {"start.time", "JAX", 590},
    {"start.memory", "JAX", 187},
    {"topology.hops.v5e", "JAX", 1.969},
    {"topology.hops.v5p", "JAX", 1.312},
    {"topology.hops.recorded", "JAX", 1.688},
    {"topology.assigned", "JAX", 43},
    // PyTorch 2.15.0, one thread of a Xeon, its DeviceMesh without creating process groups.
    {"mesh.chain", "PyTorch", 127730},
    {"mesh.listed", "PyTorch", 43.1},
    {"mesh.slice.tp", "PyTorch", 45932},
    {"mesh.slice.dp_tp", "PyTorch", 44952},
    {"mesh.flatten.dp_cp", "PyTorch", 43914},
    {"mesh.flatten.dp_tp", "PyTorch", 43236},
    {"mesh.unflatten", "PyTorch", 41699},
    {"mesh.concatenate", "PyTorch", 58329},
    {"mesh.bytes.derived", "PyTorch, 1 M ranks", 31.4e6},
    {"layout.coalesce", "PyTorch", 3.975},
    {"layout.composition", "PyTorch", 28.02},
    {"layout.complement", "PyTorch", 6.903},
    {"layout.right_inverse", "PyTorch", 15.915},
    {"layout.left_inverse", "PyTorch", 19.607},
    {"layout.logical_divide", "PyTorch", 16.728},
    {"layout.value", "PyTorch", 7.116},
};

// Where a script's JSON has the value for a row.
struct Wanted {
  const char* row;
  const char* pointer;
  double scale;
};
struct Script {
  const char* file;
  const char* section;
  const char* peer;
  std::vector<Wanted> wanted;
};

std::vector<Script> scripts() {
  return {
      {"bench_jax.py",
       "dispatch",
       "JAX",
       {{"call.matmul", "/matmul_tp8/call_block_us/min", 1},
        {"call.params2", "/params2/call_block_us/min", 1},
        {"call.params2.donated", "/params2_donate/call_block_us/min", 1},
        {"call.params2.chained", "/params2/chained_us/min", 1},
        {"call.params2.donated.chained", "/params2_donate/chained_us/min", 1},
        {"call.params20", "/params20/call_block_us/min", 1},
        {"call.params20.donated", "/params20_donate/call_block_us/min", 1},
        {"call.params20.chained", "/params20/chained_us/min", 1},
        {"call.params20.donated.chained", "/params20_donate/chained_us/min", 1},
        {"call.params200", "/params200/call_block_us/min", 1},
        {"call.params200.donated", "/params200_donate/call_block_us/min", 1},
        {"call.params200.chained", "/params200/chained_us/min", 1},
        {"call.params200.donated.chained", "/params200_donate/chained_us/min", 1},
        {"single.matmul", "/matmul_1dev/call_return_us/min", 1}}},
      {"bench_jax.py", "trace", "JAX", {{"step.gpt12", "/unrolled/trace_plus_lower_s/min", 1e3}}},
      {"bench_jax.py",
       "transfer",
       "JAX",
       {{"place.rows", "/aligned_rows_8_may_alias_None/h2d_ms/min", 1e3},
        {"place.columns", "/cols_8/h2d_GBps/max", 1},
        {"place.grid", "/grid_2x4/h2d_GBps/max", 1},
        {"place.rows.unaligned", "/rows_8/h2d_GBps/max", 1},
        {"gather.rows", "/rows_8/d2h_GBps/max", 1},
        {"gather.columns", "/cols_8/d2h_GBps/max", 1},
        {"reshard.columns", "/reshard_rows_to_cols_device_put_GBps/max", 1},
        {"reshard.columns.jit", "/reshard_rows_to_cols_jit_GBps/max", 1}}},
      {"bench_jax_extra.py",
       "checkpoint",
       "orbax",
       {{"checkpoint.save", "/unrolled/save_s/min", 1e3},
        {"checkpoint.restore", "/unrolled/restore_same_mesh_s/min", 1e3},
        {"checkpoint.restore.other", "/unrolled/restore_other_mesh_s/min", 1e3}}},
      {"bench_jax_extra.py",
       "startup",
       "JAX",
       {{"start.time", "/total_s/min", 1e3}, {"start.memory", "/peak_rss_MB/min", 1}}},
      {"bench_devicemesh.py",
       "--one 1048576 book",
       "PyTorch",
       {{"mesh.chain", "/us/chain", 1},
        {"mesh.listed", "/us/from_tensor", 1e-3},
        {"mesh.slice.tp", "/us/slice_tp", 1},
        {"mesh.slice.dp_tp", "/us/slice_dp_tp", 1},
        {"mesh.flatten.dp_cp", "/us/flatten_dp_cp", 1},
        {"mesh.flatten.dp_tp", "/us/flatten_dp_tp", 1},
        {"mesh.unflatten", "/us/unflatten_dp", 1},
        {"mesh.concatenate", "/us/concat", 1},
        {"mesh.bytes.derived", "/mb_per_slice", 1e6}}},
      {"bench_devicemesh.py",
       "--layout",
       "PyTorch",
       {{"layout.coalesce", "/layout_us/coalesce 4 modes", 1},
        {"layout.composition", "/layout_us/composition (16,16):(1024,1) o (4,4,16)", 1},
        {"layout.complement", "/layout_us/complement 2 modes @16384", 1},
        {"layout.right_inverse", "/layout_us/right_inverse nested 6 modes", 1},
        {"layout.left_inverse", "/layout_us/left_inverse 2 modes", 1},
        {"layout.logical_divide", "/layout_us/logical_divide 64 by 8", 1},
        {"layout.value", "/layout_us/crd2idx int into nested", 1}}},
  };
}

std::string output_of(const std::string& command) {
  std::string text;
  std::FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return text;
  char buffer[4096];
  for (std::size_t n; (n = std::fread(buffer, 1, sizeof buffer, pipe)) > 0;) text.append(buffer, n);
  pclose(pipe);
  return text;
}

std::string quoted(const std::string& path) {
  std::string out = "'";
  for (char c : path) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

// The scripts also write to their own folder, so it must be writable.
std::vector<PeerFigure> measure(const std::string& folder, const Report& report) {
  std::vector<PeerFigure> figures;
  for (const Script& script : scripts()) {
    bool is_wanted = false;
    for (const Wanted& wanted : script.wanted)
      for (const Row& row : report.rows()) is_wanted = is_wanted || row.name == wanted.row;
    if (!is_wanted) continue;
    std::printf("running %s %s ...\n", script.file, script.section);
    std::fflush(stdout);
    std::string text =
        output_of("python3 " + quoted(folder + "/" + script.file) + " " + script.section);
    auto json =
        nlohmann::json::parse(text.substr(std::min(text.find('{'), text.size())), nullptr, false);
    if (json.is_discarded()) {
      std::printf("  it did not print JSON; its rows are omitted\n");
      continue;
    }
    if (json.size() == 1 && json.begin()->is_object() && json.contains(script.section))
      json = json[script.section];
    for (const Wanted& wanted : script.wanted) {
      nlohmann::json::json_pointer pointer(wanted.pointer);
      if (json.contains(pointer) && json[pointer].is_number())
        figures.push_back({wanted.row, script.peer, json[pointer].get<double>() * wanted.scale});
    }
  }
  return figures;
}

}  // namespace

void print_peers(const Report& report) {
  const char* folder = std::getenv("MESHARD_PEERS");
  std::vector<PeerFigure> figures;
  if (folder != nullptr && *folder != '\0') {
    figures = measure(folder, report);
    std::printf("\nother projects, measured now by the scripts in %s:\n", folder);
  } else {
    figures.assign(std::begin(kRecorded), std::end(kRecorded));
    std::printf(
        "\nother projects: MESHARD_PEERS is not set to the folder of their scripts, so these are "
        "recorded figures (JAX 0.10.2, torch_xla and PyTorch 2.15 on 2 cores, perhaps of another "
        "machine):\n");
  }
  std::printf("%-30s %10s %10s  %-5s  %s\n", "", "ours", "theirs", "unit", "ours is better by");
  for (const Row& row : report.rows())
    for (const PeerFigure& figure : figures)
      if (figure.row == row.name)
        std::printf("%-30s %10.3g %10.4g  %-5s  %.1f times (%s)\n", row.name.c_str(), row.ours,
                    figure.value, row.unit.c_str(),
                    row.higher_is_better ? row.ours / figure.value : figure.value / row.ours,
                    figure.peer.c_str());
}

}  // namespace meshard::bench

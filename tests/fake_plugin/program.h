// What the fake plugin reads from a module: the signature of @main.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fake {

struct Type {
  int element = 0;    // PJRT_Buffer_Type
  int primitive = 0;  // XLA's PrimitiveType
  int64_t bytes = 0;  // of one element in host memory
  std::vector<int64_t> dims;

  int64_t size() const {
    int64_t n = bytes;
    for (int64_t d : dims) n *= d;
    return n;
  }
  bool operator==(const Type&) const = default;
};

/// How the shards of a value are cut from it: for each dimension, the axes that split it.
struct Cut {
  struct Axis {
    int64_t stride = 1;  // of the logical device numbers along the axis
    int64_t size = 1;
  };
  std::vector<int64_t> dims;  // of the whole value
  std::vector<std::vector<Axis>> axes;

  /// The index of a logical device's tile in each dimension.
  std::vector<int64_t> tile(int64_t device) const;
};

struct Program {
  std::string module;
  std::string name;  // of the module
  std::string options;
  int replicas = 1;
  int partitions = 1;
  std::vector<int64_t> device_ids;  // one replica after another
  std::vector<Type> parameters;     // of one shard
  std::vector<Type> results;
  std::vector<Cut> parameter_cuts, result_cuts;
  std::vector<int> alias;  // for each parameter, the output that reuses its memory, or -1
  bool has_collective = false;

  /// The bytes of an HloModuleProtoWithConfig.
  std::string optimized() const;
  int devices() const { return replicas * partitions; }
};

/// Parses the module text. If that fails, sets `error`.
bool parse_program(std::string_view module, std::string_view options, Program& to,
                   std::string& error);

}  // namespace fake

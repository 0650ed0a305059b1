// A compiled program as such: what can be asked of it without running it.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "meshard/base/result.h"
#include "meshard/pjrt/array_type.h"
#include "meshard/pjrt/client_ref.h"
#include "meshard/pjrt/named_value.h"

struct PJRT_Api;
struct PJRT_Executable;

namespace meshard::pjrt {

/// Bytes that one device needs for a program.
struct CompiledMemoryStats {
  std::int64_t generated_code = 0;
  std::int64_t arguments = 0;
  std::int64_t outputs = 0;
  /// Bytes of outputs that lie in donated arguments.
  std::int64_t aliases = 0;
  std::int64_t temporaries = 0;
  std::int64_t peak = 0;
  std::int64_t host_arguments = 0;
  std::int64_t host_outputs = 0;
  std::int64_t host_temporaries = 0;
};

/// Move-only owner of a compiled program, loaded or not.
class Executable {
 public:
  /// Takes over `raw`. A `client` is kept alive if the program belongs to one.
  Executable(const PJRT_Api* api, PJRT_Executable* raw, ClientRef client = {});
  Executable(Executable&& other) noexcept;
  Executable& operator=(Executable&& other) noexcept;
  ~Executable();

  Result<std::string> name() const;
  Result<int> num_replicas() const;
  Result<int> num_partitions() const;
  /// What each device gives: shard types.
  Result<std::vector<ArrayType>> output_types() const;
  /// The memory kind of each output. @error unimplemented on the CPU plugin
  Result<std::vector<std::string>> output_memory_kinds() const;
  /// The same for equal programs compiled alike.
  Result<std::string> fingerprint() const;
  Result<std::int64_t> generated_code_size() const;
  /// The program after all passes: bytes of a HloModuleProtoWithConfig (see hlo_module.h).
  Result<std::string> optimized_program() const;
  Result<CompiledMemoryStats> memory_stats() const;
  /// `flops`, `bytes accessed`, ... as this compiler counts them. @error unimplemented on some
  /// plugins
  Result<std::vector<NamedValue>> cost_analysis() const;
  /// Bytes for Client::deserialize_and_load of the same plugin file and kind of processor.
  Result<std::string> serialize() const;
  /// Shardings of parameters and results as serialized OpShardings; empty optional if the plugin
  /// lacks the extension (then they stand in the optimized program).
  Result<std::optional<std::vector<std::string>>> parameter_shardings() const;
  Result<std::optional<std::vector<std::string>>> output_shardings() const;

  PJRT_Executable* raw() const { return raw_; }

 private:
  void release() noexcept;
  ClientRef client_;
  const PJRT_Api* api_ = nullptr;
  PJRT_Executable* raw_ = nullptr;
};

}  // namespace meshard::pjrt

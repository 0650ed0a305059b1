// A compiled program: what can be queried without running it.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "meshard/base/fields.h"
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
  /// Bytes of outputs that alias donated arguments.
  std::int64_t aliases = 0;
  std::int64_t temporaries = 0;
  std::int64_t peak = 0;
  std::int64_t host_arguments = 0;
  std::int64_t host_outputs = 0;
  std::int64_t host_temporaries = 0;
  MESHARD_FIELDS(generated_code, arguments, outputs, aliases, temporaries, peak, host_arguments,
                 host_outputs, host_temporaries)
};

/// Move-only owner of a compiled program, loaded or not.
class Executable {
 public:
  /// Takes ownership of `raw`. Keeps `client` alive if the program belongs to one.
  Executable(const PJRT_Api* api, PJRT_Executable* raw, ClientRef client = {});
  Executable(Executable&& other) noexcept;
  Executable& operator=(Executable&& other) noexcept;
  ~Executable();

  Result<std::string> name() const;
  Result<int> num_replicas() const;
  Result<int> num_partitions() const;
  /// The shard types that each device returns.
  Result<std::vector<ArrayType>> output_types() const;
  /// A fingerprint that is the same for equal programs that were compiled the same way.
  Result<std::string> fingerprint() const;
  Result<std::int64_t> generated_code_size() const;
  /// The program after all passes, as the bytes of a HloModuleProtoWithConfig (see hlo_module.h).
  Result<std::string> optimized_program() const;
  Result<CompiledMemoryStats> memory_stats() const;
  /// `flops`, `bytes accessed`, ... as estimated by this compiler. @error unimplemented on some
  /// plugins
  Result<std::vector<NamedValue>> cost_analysis() const;
  /// Bytes for Client::deserialize_and_load with the same plugin file and kind of processor.
  Result<std::string> serialize() const;
  /// Shardings of parameters and results as serialized OpShardings. Empty if the plugin lacks the
  /// extension; then the optimized program contains them.
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

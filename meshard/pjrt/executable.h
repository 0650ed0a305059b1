// A compiled program: what can be queried without running it.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "meshard/base/fields.h"
#include "meshard/base/result.h"
#include "meshard/pjrt/array_type.h"
#include "meshard/pjrt/client_ref.h"
#include "meshard/pjrt/named_value.h"

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
  Executable(const PJRT_Api* api, PJRT_Executable* raw, ClientRef client = {})
      : own_(std::move(client), api, raw) {}

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

  PJRT_Executable* raw() const { return own_.raw; }

 private:
  internal::Owned<PJRT_Executable> own_;
};

/// A value: the shard types of a compiled program, which are the same on every device.
///
/// The C API reports only the results; the arguments are read from the compiled module. A cache
/// stores the signature with the serialized executable, so that loading it does not need the
/// module.
struct ExecutableSignature {
  std::vector<ArrayType> parameters;
  std::vector<ArrayType> results;
  /// Indices of the parameters whose buffers a launch consumes, ascending.
  std::vector<int> donated;
  bool has_collectives = false;
  /// Whether an instruction reads the number of the device among those of the program.
  bool reads_partition_id = false;

  /// Reads the signature from the bytes of a HloModuleProtoWithConfig, skipping everything else.
  /// @error data loss if the bytes are damaged
  static Result<ExecutableSignature> from_module(std::string_view module_with_config);

  /// `(f32[2,3] donated, s32[]) -> (f32[2,3]) with collectives reading the partition id`
  std::string to_string() const;
  /// Parses the output of to_string().
  static Result<ExecutableSignature> parse(std::string_view text);
  friend bool operator==(const ExecutableSignature&, const ExecutableSignature&) = default;
};

/// The parts of a module from which the layers above read its arguments, results and their
/// shardings (hlo/module.h), and which arguments are donated, in the same form: a few bytes for
/// each argument and result, whatever the size of the program. If the bytes are damaged, the parts
/// before that place.
std::string interface_bytes(std::string_view module_with_config);

/// The element type of XLA's PrimitiveType `number`; kInvalid if buffers cannot have it.
ElementType element_type_of_primitive(int number);

/// Whether an HLO opcode moves data between devices: `all-reduce`, `all-gather-start`, `send`, ...
bool is_collective_opcode(std::string_view opcode);

/// Whether an HLO opcode gives the number of the device among those of the program: `partition-id`,
/// `replica-id`.
bool is_partition_id_opcode(std::string_view opcode);

}  // namespace meshard::pjrt

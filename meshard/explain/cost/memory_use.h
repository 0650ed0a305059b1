// The buffers that fill a device's memory at the peak of a compiled program.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "meshard/base/enum_names.h"
#include "meshard/base/field_notes.h"
#include "meshard/base/fields.h"
#include "meshard/base/result.h"
#include "meshard/graph/graph.h"
#include "meshard/hlo/module.h"

namespace meshard {

class Executions;

/// Value type: memory that one device needs for a program, in bytes, according to the compiler.
struct MemoryUse {
  std::int64_t arguments = 0;
  std::int64_t outputs = 0;
  /// The part of `outputs` that reuses donated arguments.
  std::int64_t aliased = 0;
  std::int64_t temporaries = 0;
  /// The program's code. 0 if the compiler does not report it.
  std::int64_t code = 0;
  /// The most memory that is in use at one time, by the compiler's trace of its buffers: arguments,
  /// results and the temporaries that are live in the order of the instructions. The temporaries
  /// are allocated as a whole, and may be larger: the CPU compiler shares less memory between them
  /// than that order allows, so that instructions can run side by side. 0 if the compiler does not
  /// report it; some compilers include fast on-chip memory.
  std::int64_t peak = 0;
  /// Memory of the host that the program uses for this device: arguments, results and values in
  /// `pinned_host` memory. It is not part of the figures above.
  std::int64_t host_arguments = 0, host_outputs = 0, host_temporaries = 0;
  /// The device's memory; none if unknown.
  std::optional<std::int64_t> capacity = std::nullopt;

  MESHARD_WRITTEN_FIELDS(arguments, outputs, aliased, temporaries, code, peak, host_arguments,
                         host_outputs, host_temporaries, capacity, total(), spare())
  static constexpr FieldNotes kFieldNotes{.later = "host_arguments host_outputs host_temporaries",
                                          .negative = "spare()"};
  /// arguments + outputs - aliased + temporaries + code: the memory needed for the program alone.
  std::int64_t total() const { return arguments + outputs - aliased + temporaries + code; }
  /// capacity - total(): negative if the program does not fit. None without a capacity.
  std::optional<std::int64_t> spare() const {
    return capacity ? std::optional(*capacity - total()) : std::nullopt;
  }
  /// `memory per device: peak 3 KiB; arguments 2 KiB, outputs 1 KiB, temporaries 0 B, aliased 0 B,
  /// code 0 B`, and if there is host memory `; on the host: arguments 2 KiB, outputs 0 B,
  /// temporaries 0 B`. If the temporaries are larger than the peak, it begins with `allocated 199
  /// MiB, of which at most 33 MiB are in use at one time`.
  std::string to_string() const;
  friend bool operator==(const MemoryUse&, const MemoryUse&) = default;
};

/// The purpose of a buffer.
enum class BufferRole { kArgument, kOutput, kTemporary, kConstant };

template <>
struct EnumNames<BufferRole> {
  using enum BufferRole;
  static constexpr EnumName<BufferRole> kNames[] = {{kArgument, "argument"},
                                                    {kOutput, "output"},
                                                    {kTemporary, "temporary"},
                                                    {kConstant, "constant"}};
};

/// Value type: one buffer in a device's main memory, as assigned by the compiler.
struct BufferUse {
  BufferRole role = BufferRole::kTemporary;
  /// The argument's or output's name, else the instruction that defines the buffer.
  std::string name;
  /// Its type on one device, `f32[4096,512]`.
  std::string type;
  /// Size in memory, including layout padding.
  std::int64_t bytes = 0;
  /// The source line, or the op; empty if unknown.
  std::string place;

  MESHARD_FIELDS(role, name, type, bytes, place)
  /// `1.5 GiB temporary fusion.12 bf16[8,4096,4096], gpt.cc:42`
  std::string to_string() const;
  friend bool operator==(const BufferUse&, const BufferUse&) = default;
};

/// The largest buffers in main memory, largest first, from the compiler's own buffer assignment.
/// Includes arguments, outputs,
/// constants, and the temporaries that are live at the peak according to the heap trace; without a
/// trace, the largest temporary at each memory offset.
/// @param hlo_proto the bytes of an HloProto with module and buffer assignment
/// @param graph as in find_collectives
/// @param argument_names by argument number; arguments without a name use the module's names
/// @param most maximum number of returned buffers
/// @error data loss if the bytes are damaged; not found if they hold no buffer assignment
Result<std::vector<BufferUse>> largest_buffers(std::string_view hlo_proto, const Graph* graph,
                                               const std::vector<std::string>& argument_names = {},
                                               std::size_t most = 32);

/// Estimates the largest buffers from the module's execution order alone: those that are live
/// together, without knowledge of which of them share memory.
std::vector<BufferUse> estimated_buffers(const Executions& executions, const Graph* graph,
                                         const std::vector<std::string>& argument_names = {},
                                         std::size_t most = 32);

}  // namespace meshard

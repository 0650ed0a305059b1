// What a compiled program needs of a device's memory.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace meshard {

/// A value: bytes that one device needs for a program, as the compiler counts them.
struct MemoryUse {
  std::int64_t arguments = 0;
  std::int64_t outputs = 0;
  /// Of the outputs, what lies in donated arguments.
  std::int64_t aliased = 0;
  std::int64_t temporaries = 0;
  /// The program itself. 0 where the compiler does not say.
  std::int64_t code = 0;
  /// The most that is alive at once. 0 where the compiler does not say; some compilers count fast
  /// on-chip memory with it.
  std::int64_t peak = 0;
  /// What the device has; none if that is not known.
  std::optional<std::int64_t> capacity = std::nullopt;

  /// arguments + outputs - aliased + temporaries + code: what must fit if nothing else does.
  std::int64_t total() const { return arguments + outputs - aliased + temporaries + code; }
  /// capacity - total(): negative if it does not fit. None without a capacity.
  std::optional<std::int64_t> spare() const {
    return capacity ? std::optional(*capacity - total()) : std::nullopt;
  }
  /// `memory per device: peak 3 KiB; arguments 2 KiB, outputs 1 KiB, temporaries 0 B, aliased 0 B,
  /// code 0 B`
  std::string to_string() const;
  friend bool operator==(const MemoryUse&, const MemoryUse&) = default;
};

/// What a buffer is for.
enum class BufferRole { kArgument, kOutput, kTemporary, kConstant };

/// `argument`, `output`, `temporary`, `constant`
std::string_view to_string(BufferRole role);

/// A value: one buffer in a device's main memory, as the compiler assigned it.
struct BufferUse {
  BufferRole role = BufferRole::kTemporary;
  /// The argument's or output's name, else the instruction that makes it.
  std::string name;
  /// Its type on one device, `f32[4096,512]`.
  std::string type;
  /// In memory, with the padding of its layout.
  std::int64_t bytes = 0;
  /// The user's line, or the op; empty if not known.
  std::string place;

  /// `1.5 GiB temporary fusion.12 bf16[8,4096,4096], gpt.cc:42`
  std::string to_string() const;
  friend bool operator==(const BufferUse&, const BufferUse&) = default;
};

}  // namespace meshard

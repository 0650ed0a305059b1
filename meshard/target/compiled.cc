#include "meshard/target/compiled.h"

#include <array>

#include "meshard/base/cat.h"
#include "meshard/pjrt/wire.h"
#include "meshard/target/named_value_wire.h"

namespace meshard {
namespace {

using pjrt::CompiledMemoryStats;
using pjrt::NamedValue;
using pjrt::WireField;
using pjrt::WireReader;
using pjrt::WireWriter;

// Field numbers of the message; numbers are never reused.
enum CompiledField {
  kOptimizedProgram = 1,
  kMemory,
  kCost,
  kParameterSharding,
  kOutputSharding,
  kPropagatedProgram,
  kBufferAssignment,
  kLog,
  kPlatformVersion,
  kCompileSeconds,
  kMissingHandler,
};

enum WireTypes { kWireVarint = 0, kWireDouble = 1, kWireBytes = 2 };

Error damaged_compile(std::string_view where) {
  return Error(ErrorCode::kDataLoss, cat("[compiled] damaged bytes in ", where));
}

// The statistics in field order.
template <class Stats>
auto memory_fields(Stats& s) {
  return std::array{&s.generated_code, &s.arguments,    &s.outputs,
                    &s.aliases,        &s.temporaries,  &s.peak,
                    &s.host_arguments, &s.host_outputs, &s.host_temporaries};
}

WireWriter write_memory(const CompiledMemoryStats& memory) {
  WireWriter out;
  int field = 0;
  for (const std::int64_t* value : memory_fields(memory))
    out.add_varint(++field, static_cast<std::uint64_t>(*value));
  return out;
}

Result<CompiledMemoryStats> read_memory(std::string_view bytes) {
  CompiledMemoryStats memory;
  auto fields = memory_fields(memory);
  WireReader reader(bytes);
  while (auto field = reader.next()) {
    std::size_t index = static_cast<std::size_t>(field->number) - 1;
    if (field->type != kWireVarint || index >= fields.size()) return damaged_compile("memory");
    *fields[index] = field->as_int();
  }
  if (!reader.ok()) return damaged_compile("memory");
  return memory;
}

Result<void> read_message_field(const WireField& field, Compiled& to) {
  if (field.number == kMemory) {
    MESHARD_ASSIGN_OR_RETURN(to.memory, read_memory(field.bytes));
  } else {
    MESHARD_ASSIGN_OR_RETURN(NamedValue named, read_named_value(field.bytes));
    to.cost_analysis.push_back(std::move(named));
  }
  return {};
}

Result<void> read_compiled_field(const WireField& field, Compiled& to) {
  int expected = field.number == kCompileSeconds ? kWireDouble : kWireBytes;
  if (field.type != expected) return damaged_compile(cat("field ", field.number));
  switch (field.number) {
    case kOptimizedProgram: to.optimized_program = field.bytes; break;
    case kMemory:
    case kCost: return read_message_field(field, to);
    case kParameterSharding: to.parameter_shardings.emplace_back(field.bytes); break;
    case kOutputSharding: to.output_shardings.emplace_back(field.bytes); break;
    case kPropagatedProgram: to.propagated_program = field.bytes; break;
    case kBufferAssignment: to.buffer_assignment = field.bytes; break;
    case kLog: to.log = field.bytes; break;
    case kPlatformVersion: to.platform_version = field.bytes; break;
    case kMissingHandler: to.missing_handlers.emplace_back(field.bytes); break;
    case kCompileSeconds: to.compile_seconds = field.as_double(); break;
    default: return damaged_compile(cat("field ", field.number));
  }
  return {};
}

}  // namespace

std::string Compiled::serialize() const {
  WireWriter out;
  out.add_bytes(kOptimizedProgram, optimized_program);
  if (memory) out.add_message(kMemory, write_memory(*memory));
  for (const NamedValue& named : cost_analysis) out.add_message(kCost, write_named_value(named));
  for (const std::string& sharding : parameter_shardings)
    out.add_bytes(kParameterSharding, sharding);
  for (const std::string& sharding : output_shardings) out.add_bytes(kOutputSharding, sharding);
  out.add_bytes(kPropagatedProgram, propagated_program);
  out.add_bytes(kBufferAssignment, buffer_assignment);
  out.add_bytes(kLog, log);
  out.add_bytes(kPlatformVersion, platform_version);
  for (const std::string& target : missing_handlers) out.add_bytes(kMissingHandler, target);
  out.add_double(kCompileSeconds, compile_seconds);
  return out.take();
}

Result<Compiled> Compiled::deserialize(std::string_view bytes) {
  Compiled compiled;
  WireReader reader(bytes);
  bool complete = false;
  while (auto field = reader.next()) {
    MESHARD_RETURN_IF_ERROR(read_compiled_field(*field, compiled));
    complete = field->number == kCompileSeconds;  // written last: truncated bytes lack this field
  }
  if (!reader.ok() || !complete) return damaged_compile("the compiled program: they are truncated");
  return compiled;
}

}  // namespace meshard

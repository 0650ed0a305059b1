// Compiled modules for tests: written by hand, or compiled by the machine's CPU plugin.
#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "meshard/pjrt/client.h"
#include "meshard/pjrt/hlo_module.h"
#include "meshard/pjrt/loaded_executable.h"
#include "meshard/pjrt/plugin_search.h"
#include "meshard/runtime/runtime.h"

namespace meshard {

inline pjrt::ReplicaGroups listed_groups(std::vector<std::vector<std::int64_t>> groups) {
  pjrt::ReplicaGroups made;
  made.form = pjrt::ReplicaGroups::Form::kListed;
  made.listed = std::move(groups);
  return made;
}

inline pjrt::HloShape f32_shape(std::vector<std::int64_t> dimensions) {
  pjrt::HloShape shape;
  shape.element = pjrt::ElementType::kF32;
  shape.dimensions = std::move(dimensions);
  return shape;
}

inline pjrt::HloShape tuple_shape(std::vector<pjrt::HloShape> parts) {
  pjrt::HloShape shape;
  shape.is_tuple = true;
  shape.tuple = std::move(parts);
  return shape;
}

inline pjrt::HloInstruction make_instruction(std::int64_t id, std::string opcode,
                                             pjrt::HloShape shape,
                                             std::vector<std::int64_t> operands = {},
                                             std::string op_name = "") {
  pjrt::HloInstruction one;
  one.id = id;
  one.name = opcode + "." + std::to_string(id);
  one.opcode = std::move(opcode);
  one.shape = std::move(shape);
  one.operands = std::move(operands);
  one.metadata.op_name = std::move(op_name);
  return one;
}

/// A collective over `groups` of devices.
inline pjrt::HloInstruction make_collective(std::int64_t id, std::string opcode,
                                            pjrt::HloShape shape,
                                            std::vector<std::int64_t> operands, std::string op_name,
                                            std::vector<std::vector<std::int64_t>> groups) {
  pjrt::HloInstruction one = make_instruction(id, std::move(opcode), std::move(shape),
                                              std::move(operands), std::move(op_name));
  one.channel_id = id;
  one.use_global_device_ids = true;
  one.groups = listed_groups(std::move(groups));
  return one;
}

/// Computation number i has id i; the first is the entry.
inline pjrt::HloModule make_module(std::vector<std::vector<pjrt::HloInstruction>> computations) {
  pjrt::HloModule module;
  module.name = "made";
  for (auto& instructions : computations) {
    pjrt::HloComputation computation;
    computation.id = static_cast<std::int64_t>(module.computations.size());
    computation.name = "c" + std::to_string(computation.id);
    computation.root = instructions.empty() ? 0 : instructions.back().id;
    computation.instructions = std::move(instructions);
    module.computations.push_back(std::move(computation));
  }
  return module;
}

/// Why no real program can be compiled here; empty if one can.
inline std::string why_no_plugin() {
  Result<std::string> path = pjrt::find_plugins().first("cpu");
  return path.ok() ? "" : path.error().message();
}

/// Compiles a module for 8 devices and reads it back.
inline pjrt::HloModule compile_module(const std::string& text) {
  pjrt::CompileOptions options;
  options.num_partitions = 8;
  pjrt::LoadedExecutable executable = runtime_client().compile(text, options).value();
  return pjrt::HloModule::from_bytes(executable.executable().optimized_program().value()).value();
}

}  // namespace meshard

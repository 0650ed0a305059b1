// Calls loaded programs with tensors.
#pragma once
#include <span>
#include <string>

#include "meshard/graph/tensor.h"
#include "meshard/pjrt/launch.h"
#include "meshard/runtime/internal/process_runtime.h"
#include "meshard/runtime/loaded_program.h"

namespace meshard {

/// Brings each argument to where the program reads it, and launches the program. `arguments` are
/// the parameters and then the captured values, each a stored tensor. A value that is not yet where
/// the program reads it is placed there once, and the copy is remembered.
///
/// Returns the launch that computes the results. If `track`, it reports when it is done.
/// @post results[i] is a stored tensor
/// @error an argument is gone or does not fit; the message uses its name in `names`, if present.
/// Nothing is consumed before the launch.
pjrt::Launch call_program(Runtime& runtime, const LoadedProgram& program,
                          std::span<const Tensor* const> arguments, std::span<Tensor> results,
                          SourceLocation where, std::span<const std::string> names = {},
                          bool track = false);

}  // namespace meshard

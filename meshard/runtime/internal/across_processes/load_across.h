// The additional needs of programs over devices of several processes.
#pragma once
#include <string>

#include "meshard/base/fingerprint.h"
#include "meshard/graph/graph.h"
#include "meshard/lowering/lower.h"
#include "meshard/runtime/chosen_shardings.h"

namespace meshard {

/// Equal for equal programs on the same devices.
Fingerprint program_fingerprint(const LoweredModule& lowered);

/// The text of a program with the user's source line after each op, for Intention::details.
std::string text_with_sources(const LoweredModule& lowered, const Graph& graph);

/// `run "train" at train.cc:42`, for Intention::what.
std::string intention_text(const LoweredModule& lowered, SourceLocation where);

/// The shardings of a program over one device, which is in another process.
ChosenShardings shardings_on_one_device(const LoweredModule& lowered);

}  // namespace meshard

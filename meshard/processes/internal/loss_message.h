// ProcessLoss as a message.
#pragma once
#include "meshard/base/result.h"
#include "meshard/processes/internal/message.h"
#include "meshard/processes/loss.h"

namespace meshard::internal {

Message loss_message(const ProcessLoss& loss);

/// @error invalid argument if the message is not one of loss_message
Result<ProcessLoss> read_loss(const Message& message);

/// Reads a whole number: a process id, a count.
/// @error invalid argument
Result<std::int64_t> read_number(std::string_view text);

}  // namespace meshard::internal

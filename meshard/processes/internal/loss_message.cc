#include "meshard/processes/internal/loss_message.h"

#include <array>
#include <charconv>

#include "meshard/base/cat.h"

namespace meshard::internal {
namespace {

Error not_a_loss() {
  return Error(ErrorCode::kInvalidArgument, "[processes] malformed message about a lost process");
}

}  // namespace

Result<std::int64_t> read_number(std::string_view text) {
  std::int64_t number = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size())
    return Error(ErrorCode::kInvalidArgument, cat("[processes] \"", text, "\" is not a number"));
  return number;
}

Message loss_message(const ProcessLoss& loss) {
  Message message{.kind = MessageKind::kLost, .number = loss.rank, .name = loss.activity};
  message.name.resize(std::min(message.name.size(), kMostNameBytes));
  append_field(message.value, loss.host);
  for (std::int64_t number : {std::int64_t{loss.pid}, static_cast<std::int64_t>(loss.kind),
                              std::int64_t{loss.status}, std::int64_t{loss.in_activity.count()}})
    append_field(message.value, cat(number));
  append_field(message.value, loss.difference);
  return message;
}

Result<ProcessLoss> read_loss(const Message& message) {
  std::string_view rest = message.value;
  auto host = take_field(rest);
  if (message.kind != MessageKind::kLost || !host) return not_a_loss();
  std::array<std::int64_t, 4> numbers{};
  for (std::int64_t& number : numbers) {
    auto field = take_field(rest);
    if (!field) return not_a_loss();
    MESHARD_ASSIGN_OR_RETURN(number, read_number(*field));
  }
  auto difference = take_field(rest);
  if (numbers[1] < 0 || numbers[1] > static_cast<int>(LossKind::kElsewhere) || !difference ||
      !rest.empty())
    return not_a_loss();
  return ProcessLoss{.rank = static_cast<int>(message.number),
                     .kind = static_cast<LossKind>(numbers[1]),
                     .status = static_cast<int>(numbers[2]),
                     .host = *host,
                     .pid = static_cast<int>(numbers[0]),
                     .activity = message.name,
                     .difference = *std::move(difference),
                     .in_activity = std::chrono::milliseconds(numbers[3])};
}

}  // namespace meshard::internal

#include "meshard/pipeline/schedule/action.h"

#include <charconv>

#include "meshard/base/cat.h"

namespace meshard {
namespace {

constexpr EnumName<PipelineWork> kLetters[] = {
    {PipelineWork::kForward, "F"},
    {PipelineWork::kBackward, "B"},
    {PipelineWork::kInputGradient, "I"},
    {PipelineWork::kWeightGradient, "W"},
    {PipelineWork::kUpdate, "U"},
    {PipelineWork::kSendForward, "SEND_F"},
    {PipelineWork::kSendBackward, "SEND_B"},
};

bool read_number(std::string_view text, int& to) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), to);
  return error == std::errc() && end == text.data() + text.size() && to >= 0;
}

}  // namespace

std::string_view letters(PipelineWork work) {
  for (const auto& [known, name] : kLetters)
    if (known == work) return name;
  return "?";
}

std::string PipelineAction::to_string() const {
  return work == PipelineWork::kUpdate ? cat(stage, letters(work))
                                       : cat(stage, letters(work), microbatch);
}

Result<PipelineAction> PipelineAction::parse(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789";
  std::size_t begin = text.find_first_not_of(kDigits), last = text.find_last_not_of(kDigits);
  PipelineAction read;
  bool known = false;
  if (begin != std::string_view::npos) {
    std::string_view middle = text.substr(begin, last + 1 - begin);
    for (const auto& [work, name] : kLetters)
      if (name == middle) {
        read.work = work;
        known = true;
      }
  }
  bool is_update = known && read.work == PipelineWork::kUpdate;
  if (!known || !read_number(text.substr(0, begin), read.stage) ||
      (is_update ? last + 1 != text.size() : !read_number(text.substr(last + 1), read.microbatch)))
    return Error(
        ErrorCode::kInvalidArgument,
        cat("[pipeline] \"", text,
            "\" is not an action: expected a stage, one of F, B, I, W, U, SEND_F, SEND_B, and "
            "a microbatch, such as 2F5, or 2U"));
  return read;
}

}  // namespace meshard

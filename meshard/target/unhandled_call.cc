#include "meshard/target/unhandled_call.h"

namespace meshard {

std::string_view unhandled_call(const Error& error, const CallErrorText& text) {
  std::string_view message = error.message();
  std::size_t begin = message.find(text.before);
  if (begin == std::string_view::npos) return {};
  message.remove_prefix(begin + text.before.size());
  std::size_t end = message.find(text.after);
  return end == std::string_view::npos ? std::string_view() : message.substr(0, end);
}

}  // namespace meshard

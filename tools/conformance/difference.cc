#include "tools/conformance/difference.h"

#include <algorithm>
#include <set>

#include "meshard/base/cat.h"

namespace meshard::conformance {
namespace {

using Json = nlohmann::json;

std::string difference_at(const std::string& path, const Json& ours, const Json& recorded) {
  if (ours == recorded) return {};
  auto differ = [&path](const std::string& our_text, const std::string& recorded_text) {
    return cat(path.empty() ? "" : path + ": ", "ours ", our_text, ", recorded ", recorded_text);
  };
  if (ours.is_object() && recorded.is_object()) {
    std::set<std::string> keys;
    for (const auto& [key, value] : ours.items()) keys.insert(key);
    for (const auto& [key, value] : recorded.items()) keys.insert(key);
    for (const std::string& key : keys) {
      std::string inner = path.empty() ? key : cat(path, ".", key);
      if (!ours.contains(key))
        return cat(inner, ": ours nothing, recorded ", shortened(recorded.at(key)));
      if (!recorded.contains(key))
        return cat(inner, ": ours ", shortened(ours.at(key)), ", recorded nothing");
      std::string found = difference_at(inner, ours.at(key), recorded.at(key));
      if (!found.empty()) return found;
    }
  }
  bool lists = ours.is_array() && recorded.is_array();
  if (lists && ours.size() == recorded.size())
    for (std::size_t i = 0; i < ours.size(); ++i) {
      std::string found = difference_at(cat(path, "[", i, "]"), ours[i], recorded[i]);
      if (!found.empty()) return found;
    }
  return differ(shortened(ours), shortened(recorded));
}

}  // namespace

std::string shortened(const Json& value) {
  constexpr std::size_t kLongest = 160;
  std::string text = value.dump();
  if (text.size() <= kLongest) return text;
  return cat(text.substr(0, kLongest * 2 / 3), " ... ", text.substr(text.size() - kLongest / 3));
}

std::string first_difference(const Json& ours, const Json& recorded) {
  return difference_at("", ours, recorded);
}

}  // namespace meshard::conformance

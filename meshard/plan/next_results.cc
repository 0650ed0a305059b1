#include "meshard/plan/next_results.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

namespace meshard {
namespace {

// Pairs arguments with results, each result once.
class Pairing {
 public:
  Pairing(std::vector<TemplateValue>& arguments, const std::vector<TemplateValue>& results)
      : arguments_(arguments), results_(results), taken_(results.size()) {}

  bool can(std::size_t argument, std::size_t result) const {
    return result < results_.size() && !taken_[result] && !arguments_[argument].next_result &&
           arguments_[argument].type && arguments_[argument].type == results_[result].type &&
           arguments_[argument].type->rank() > 0;
  }
  void pair(std::size_t argument, std::size_t result) {
    if (!can(argument, result)) return;
    arguments_[argument].next_result = result;
    taken_[result] = true;
  }

  void by_memory() {
    for (std::size_t i = 0; i < arguments_.size(); ++i)
      if (arguments_[i].aliased_result) pair(i, *arguments_[i].aliased_result);
  }

  void by_name() {
    using Members = std::pair<std::vector<std::size_t>, std::vector<std::size_t>>;
    std::map<std::pair<std::string, std::string>, Members> named;
    for (std::size_t i = 0; i < arguments_.size(); ++i)
      if (std::string_view tail = name_tail(arguments_[i].name); is_left(i) && !tail.empty())
        named[{std::string(tail), arguments_[i].type->to_string()}].first.push_back(i);
    for (std::size_t r = 0; r < results_.size(); ++r)
      if (!taken_[r] && results_[r].type)
        for (std::string_view tail : result_tails(results_[r].name))
          if (auto found = named.find({std::string(tail), results_[r].type->to_string()});
              found != named.end()) {
            found->second.second.push_back(r);
            break;
          }
    for (const auto& [name, members] : named)
      if (members.first.size() == members.second.size())
        for (std::size_t k = 0; k < members.first.size(); ++k)
          pair(members.first[k], members.second[k]);
  }

  void by_donation(const std::vector<bool>& donors) {
    for (std::size_t i = 0; i < arguments_.size() && i < donors.size(); ++i)
      for (std::size_t r = 0; donors[i] && r < results_.size() && is_left(i); ++r) pair(i, r);
  }

  void by_position() {
    for (std::size_t i = 0; i < arguments_.size() && i < results_.size(); ++i)
      if (!results_[i].spec) pair(i, i);
  }

 private:
  bool is_left(std::size_t argument) const {
    return arguments_[argument].type && !arguments_[argument].next_result;
  }

  // What may be the name of an argument after its first part: `[0]['w']` may be of the first
  // result, or of one result with these parts.
  static std::vector<std::string_view> result_tails(std::string_view name) {
    if (name.starts_with("result")) name.remove_prefix(6);
    if (name.empty() || (name[0] != '[' && name[0] != '.')) return {};
    std::vector<std::string_view> tails;
    std::size_t digits = name[0] == '[' ? name.find_first_not_of("0123456789", 1) : 0;
    if (digits > 1 && digits < name.size() && name[digits] == ']' && digits + 1 < name.size())
      tails.push_back(name.substr(digits + 1));
    tails.push_back(name);
    return tails;
  }

  std::vector<TemplateValue>& arguments_;
  const std::vector<TemplateValue>& results_;
  std::vector<bool> taken_;  // by result
};

}  // namespace

std::string_view name_tail(std::string_view name) {
  std::size_t at = name.find_first_of("[.");
  return at == std::string_view::npos || at == 0 ? std::string_view() : name.substr(at);
}

void find_next_results(std::vector<TemplateValue>& arguments, const std::vector<bool>& donors,
                       const std::vector<TemplateValue>& results) {
  Pairing pairing(arguments, results);
  pairing.by_memory();
  pairing.by_name();
  pairing.by_donation(donors);
  pairing.by_position();
}

}  // namespace meshard

// Tested in tools/meshard/check_command_line.py.
#include "tools/meshard/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "meshard/base/cat.h"
#include "meshard/base/near_names.h"

namespace meshard::tool {
namespace {

std::string suggestion(std::string_view word, std::span<const std::string> names) {
  std::string known = nearest(word, names);
  return known.empty() ? "" : cat("; did you mean ", known, "?");
}

std::vector<std::string> long_options(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  return names;
}

}  // namespace

std::string nearest(std::string_view word, std::span<const std::string> names) {
  std::string best;
  std::size_t least = std::max<std::size_t>(1, word.size() / 3) + 1;
  for (const std::string& name : names)
    if (std::size_t here = edit_distance(word, name); here < least) {
      least = here;
      best = name;
    }
  return best;
}

std::string unknown_word(const CLI::App& app, std::span<const std::string_view> words) {
  const CLI::App* command = &app;
  for (std::string_view word : words) {
    if (word == "--") break;
    if (word.starts_with("--")) {
      std::string name(word.substr(0, word.find('=')));
      std::vector<std::string> known = long_options(*command);
      if (std::count(known.begin(), known.end(), name) > 0) continue;
      std::string of = command == &app ? "" : cat(" of ", command->get_name());
      return cat("unknown option ", name, of, suggestion(name, known));
    }
    if (command != &app || word.starts_with('-')) continue;
    std::vector<std::string> names;
    for (const CLI::App* each : app.get_subcommands([](const CLI::App*) { return true; })) {
      names.push_back(each->get_name());
      if (names.back() == word) command = each;
    }
    if (command == &app) return cat("unknown command ", word, suggestion(word, names));
  }
  return {};
}

}  // namespace meshard::tool

// Checks of the command line that name what was probably meant.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
}

namespace meshard::tool {

/// The name closest to `word`, by edit distance with transpositions; empty if none is similar.
std::string nearest(std::string_view word, std::span<const std::string> names);

/// An unknown command or long option among the words, as a message that names a similar known one;
/// empty if there is none. `words` are the arguments without the program's name.
std::string unknown_word(const CLI::App& app, std::span<const std::string_view> words);

}  // namespace meshard::tool

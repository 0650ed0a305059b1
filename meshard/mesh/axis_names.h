// A parameter type for names of mesh axes.
#pragma once
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "meshard/base/inline_vector.h"

namespace meshard {

/// A view: names of axes, the most significant first. Made from `"tp"`, `{"dp", "tp"}` or a vector
/// of strings. Does not own the characters.
class AxisNames {
 public:
  AxisNames(const char* name) { names_.push_back(name); }         // NOLINT: a parameter
  AxisNames(std::string_view name) { names_.push_back(name); }    // NOLINT
  AxisNames(const std::string& name) { names_.push_back(name); }  // NOLINT
  AxisNames(std::initializer_list<std::string_view> names)        // NOLINT
      : names_(names.begin(), names.end()) {}
  AxisNames(const std::vector<std::string>& names) {  // NOLINT
    for (const std::string& name : names) names_.push_back(name);
  }

  std::size_t size() const { return names_.size(); }
  std::string_view operator[](std::size_t i) const { return names_[i]; }
  const std::string_view* begin() const { return names_.begin(); }
  const std::string_view* end() const { return names_.end(); }
  /// `dp, tp`.
  std::string to_string() const {
    std::string out;
    for (std::string_view name : names_) (out.empty() ? out : out.append(", ")).append(name);
    return out;
  }

 private:
  InlineVector<std::string_view, 4> names_;
};

}  // namespace meshard

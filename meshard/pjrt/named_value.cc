// Tested in meshard/pjrt/client_options_test.cc.
#include "meshard/pjrt/named_value.h"

#include "meshard/base/cat.h"

namespace meshard::pjrt {

std::string_view kind_of(const NamedValue::Value& value) {
  constexpr std::string_view kNames[] = {"string", "int64", "int64 list", "float", "bool"};
  return kNames[value.index()];
}

std::string NamedValue::value_string() const {
  return std::visit(
      [](const auto& v) -> std::string {
        using T = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<T, std::string>)
          return cat("\"", v, "\"");
        else if constexpr (std::is_same_v<T, std::vector<std::int64_t>>)
          return cat("[", join(v, ", "), "]");
        else
          return cat(v);
      },
      value);
}

std::string NamedValue::to_string() const { return cat(name, " = ", value_string()); }

}  // namespace meshard::pjrt

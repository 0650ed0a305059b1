#include "meshard/sharding/op_sharding.h"

#include "meshard/layout/text_scanner.h"

namespace meshard {

OpSharding OpSharding::canonical() const {
  OpSharding result = *this;
  for (TileAssignment& element : result.elements_) element = element.canonical();
  return result;
}

std::string OpSharding::to_string() const {
  return is_tuple_ ? cat('{', join(elements_, ", "), '}') : elements_[0].to_string();
}

Result<OpSharding> OpSharding::parse(std::string_view text) {
  return parse_whole("sharding", text, [](TextScanner& scanner) {
    TextScanner ahead = scanner;
    bool is_tuple = ahead.accept("{") && (ahead.accept("{") || ahead.accept("}"));
    if (!is_tuple) return OpSharding(TileAssignment::read(scanner));
    std::vector<TileAssignment> elements;
    scanner.expect("{");
    scanner.list("}", [&] { elements.push_back(TileAssignment::read(scanner)); });
    return OpSharding(std::move(elements));
  });
}

}  // namespace meshard

#include "meshard/layout/tiler.h"

#include "meshard/layout/text_scanner.h"

namespace meshard {
namespace {

Tiler read_tiler(TextScanner& scanner, int depth) {
  if (scanner.accept("_")) return Tiler();
  if (scanner.accept("<")) {
    if (depth == kMaxParsedDepth) scanner.fail(cat("nested more than ", depth, " levels deep"));
    std::vector<Tiler> tilers;
    scanner.list(">", [&] { tilers.push_back(read_tiler(scanner, depth + 1)); });
    return Tiler(std::move(tilers));
  }
  IntTuple shape = IntTuple::read(scanner);
  if (shape.is_integer() && !scanner.peek(":")) return Tiler(shape.value());
  scanner.expect(":");
  return Tiler(Layout(std::move(shape), IntTuple::read(scanner)));
}

}  // namespace

std::string Tiler::to_string() const {
  switch (kind_) {
    case Kind::kNone: return "_";
    case Kind::kInteger: return layout_.shape().to_string();
    case Kind::kLayout: return layout_.to_string();
    case Kind::kTuple: break;
  }
  return cat("<", join(tilers_, ", "), ">");
}

Result<Tiler> Tiler::parse(std::string_view text) {
  return parse_whole("tiler", text, [](TextScanner& scanner) { return read_tiler(scanner, 0); });
}

}  // namespace meshard

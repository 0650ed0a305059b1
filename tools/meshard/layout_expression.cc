#include "tools/meshard/layout_expression.h"

#include <cctype>
#include <type_traits>
#include <vector>

#include "meshard/layout/algebra.h"
#include "meshard/layout/modes.h"
#include "meshard/layout/text_scanner.h"
#include "meshard/layout/values.h"

namespace meshard::tool {
namespace {

[[noreturn]] void refuse(std::string_view why) {
  throw Error(ErrorCode::kInvalidArgument, cat("[layout] ", why));
}

// The value of a part of an expression. A tuple is kept as written; it may be used as a layout.
struct Part {
  enum class Kind { kTuple, kLayout, kNumber, kTiler } kind = Kind::kNumber;
  IntTuple tuple = {};
  OffsetLayout layout = {};
  std::int64_t number = 0;
  Tiler tiler = {};

  Layout as_layout() const {
    if (kind == Kind::kTuple) return Layout(tuple);
    if (kind == Kind::kNumber) refuse(cat("the value ", number, " is not a layout"));
    if (kind == Kind::kTiler) refuse(cat("the tiler ", tiler, " is not a layout"));
    if (layout.offset != 0)
      refuse(
          cat(layout.layout, " has offset ", layout.offset, " and can only be the final result"));
    return layout.layout;
  }
  std::int64_t as_integer() const {
    if (kind == Kind::kNumber) return number;
    if (kind != Kind::kTuple || !tuple.is_integer()) refuse("expected an integer");
    return tuple.value();
  }
  IntTuple as_tuple() const {
    if (kind != Kind::kTuple) refuse("expected a tuple of integers");
    return tuple;
  }
  Tiler as_tiler() const {
    if (kind == Kind::kTiler) return tiler;
    if (kind == Kind::kTuple && tuple.is_integer()) return Tiler(tuple.value());
    return Tiler(as_layout());
  }
};
using Parts = std::vector<Part>;

Part layout_part(Layout layout) {
  return {.kind = Part::Kind::kLayout, .layout = {std::move(layout), 0}};
}

IntVector integers(const Parts& parts, std::size_t from) {
  IntVector values;
  for (std::size_t i = from; i < parts.size(); ++i) values.push_back(parts[i].as_integer());
  return values;
}

Layout coalesced(const Parts& p) {
  if (p.size() == 1) return coalesce(p[0].as_layout());
  return coalesce(p[0].as_layout(), p[1].as_tuple()).value();
}

Layout filtered(const Parts& p) {
  if (p.size() == 1) return filter(p[0].as_layout());
  return filter(p[0].as_layout(), p[1].as_tuple()).value();
}

Layout concatenated(const Parts& parts) {
  std::vector<Layout> layouts;
  for (const Part& part : parts) layouts.push_back(part.as_layout());
  return concatenate(layouts);
}

Layout behind_values(const Parts& parts) {
  std::optional<Layout> layout = from_values(integers(parts, 0));
  if (!layout) refuse("no layout has these values");
  return *layout;
}

template <Result<Layout> (*function)(const Layout&, const Tiler&)>
Layout tiled(const Parts& p) {
  return function(p[0].as_layout(), p[1].as_tiler()).value();
}

constexpr std::size_t kAnyNumber = 1'000'000;

struct Function {
  std::string_view name;
  std::size_t least, most;  // parts
  Layout (*call)(const Parts&);
};

constexpr Function kFunctions[] = {
    {"coalesce", 1, 2, coalesced},
    {"complement", 2, 2,
     [](const Parts& p) { return complement(p[0].as_layout(), p[1].as_integer()).value(); }},
    {"composition", 2, 2, tiled<composition>},
    {"concatenate", 0, kAnyNumber, concatenated},
    {"filter", 1, 2, filtered},
    {"flatten", 1, 1, [](const Parts& p) { return flatten(p[0].as_layout()); }},
    {"from_values", 1, kAnyNumber, behind_values},
    {"left_inverse", 1, 1, [](const Parts& p) { return left_inverse(p[0].as_layout()).value(); }},
    {"logical_divide", 2, 2, tiled<logical_divide>},
    {"logical_product", 2, 2, tiled<logical_product>},
    {"permute", 1, kAnyNumber,
     [](const Parts& p) { return permute(p[0].as_layout(), integers(p, 1)); }},
    {"right_inverse", 1, 1, [](const Parts& p) { return right_inverse(p[0].as_layout()); }},
    {"tiled_divide", 2, 2, tiled<tiled_divide>},
    {"tiled_product", 2, 2, tiled<tiled_product>},
    {"zipped_divide", 2, 2, tiled<zipped_divide>},
    {"zipped_product", 2, 2, tiled<zipped_product>},
};

// Parses and evaluates in one pass.
class Reader {
 public:
  explicit Reader(TextScanner& scanner) : scanner_(scanner) {}

  Part expression() {
    if (++depth_ > kMostNesting) scanner_.fail("nested too deeply");
    const char* from = scanner_.rest().data();
    Part left = operand();
    if (!accept_after()) {
      --depth_;
      return left;
    }
    Part right = expression();
    --depth_;
    return layout_part(
        note_part(from, [&] { return composition(left.as_layout(), right.as_tiler()).value(); }));
  }

 private:
  // Runs an operation. Its errors quote the text from `from` up to the current position.
  template <class Operation>
  std::invoke_result_t<Operation> note_part(const char* from, Operation operation) {
    std::string_view part(from, static_cast<std::size_t>(scanner_.rest().data() - from));
    part = part.substr(0, part.find_last_not_of(' ') + 1);
    try {
      return operation();
    } catch (const Error& error) {
      if (!error.notes().empty()) throw;
      throw error.with_note(cat("in `", part, '`'));
    }
  }

  bool accept_after() {
    if (scanner_.accept("∘")) return true;
    std::string_view rest = scanner_.rest();
    bool is_word = rest.size() > 1 &&
                   (std::isalnum(static_cast<unsigned char>(rest[1])) != 0 || rest[1] == '_');
    return !is_word && scanner_.accept("o");
  }

  Part operand() {
    const char* from = scanner_.rest().data();
    Part part = primary();
    while (scanner_.peek("(")) {
      IntTuple coordinate = IntTuple::read(scanner_);
      if (coordinate.rank() == 1) coordinate = IntTuple(coordinate[0]);
      part = note_part(from, [&] { return at(part.as_layout(), coordinate); });
    }
    return part;
  }

  static Part at(const Layout& layout, const IntTuple& coordinate) {
    if (has_hole(coordinate))
      return {.kind = Part::Kind::kLayout, .layout = slice_and_offset(layout, coordinate)};
    std::int64_t value = coordinate.is_integer() ? layout(coordinate.value()) : layout(coordinate);
    return {.kind = Part::Kind::kNumber, .number = value};
  }

  Part primary() {
    if (scanner_.accept("_")) return {.kind = Part::Kind::kTiler};
    if (scanner_.accept("<")) return tiler();
    if (scanner_.peek_integer() || is_tuple_next()) return tuple_or_layout();
    if (scanner_.accept("(")) {
      Part part = expression();
      scanner_.expect(")");
      return part;
    }
    if (scanner_.at_end()) scanner_.fail("expected a layout");
    return call();
  }

  // Whether the next parentheses contain only integers.
  bool is_tuple_next() {
    std::string_view rest = scanner_.rest();
    int depth = 0;
    for (char c : rest) {
      if (std::string_view("0123456789-_,() \t").find(c) == std::string_view::npos) return false;
      depth += c == '(' ? 1 : c == ')' ? -1 : 0;
      if (depth == 0) return c == ')';
    }
    return false;
  }

  Part tuple_or_layout() {
    const char* from = scanner_.rest().data();
    IntTuple shape = IntTuple::read(scanner_);
    if (!scanner_.accept(":")) return {.kind = Part::Kind::kTuple, .tuple = std::move(shape)};
    IntTuple stride = IntTuple::read(scanner_);
    return layout_part(note_part(from, [&] { return Layout(shape, stride); }));
  }

  Part tiler() {
    std::vector<Tiler> tilers;
    scanner_.list(">", [&] { tilers.push_back(expression().as_tiler()); });
    return {.kind = Part::Kind::kTiler, .tiler = Tiler(std::move(tilers))};
  }

  Part call() {
    const char* from = scanner_.rest().data();
    std::string name = scanner_.identifier();
    const Function* function = nullptr;
    for (const Function& known : kFunctions)
      if (known.name == name) function = &known;
    if (!function)
      scanner_.fail(cat("unknown function `", name, "` (`meshard layout --help` lists them)"));
    scanner_.expect("(");
    Parts parts;
    scanner_.list(")", [&] { parts.push_back(expression()); });
    return layout_part(note_part(from, [&] {
      if (parts.size() < function->least || parts.size() > function->most)
        refuse(
            cat(name, " takes ", function->least, wanted_more(*function), ", not ", parts.size()));
      return function->call(parts);
    }));
  }

  static std::string wanted_more(const Function& function) {
    std::string most;
    if (function.most == kAnyNumber)
      most = " or more";
    else if (function.most > function.least)
      most = cat(" or ", function.most);
    return most + (function.most == 1 ? " argument" : " arguments");
  }

  static constexpr int kMostNesting = 200;
  TextScanner& scanner_;
  int depth_ = 0;
};

ExpressionResult result_of(const Part& part) {
  if (part.kind == Part::Kind::kNumber) return part.number;
  if (part.kind == Part::Kind::kLayout) return part.layout;
  return OffsetLayout{part.as_layout(), 0};
}

}  // namespace

ExpressionResult evaluate(std::string_view text) {
  return parse_whole("layout expression", text,
                     [](TextScanner& scanner) { return result_of(Reader(scanner).expression()); })
      .value();
}

}  // namespace meshard::tool

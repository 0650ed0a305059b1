#include "meshard/sharding/sharding_rule.h"

#include <algorithm>
#include <utility>

#include "meshard/layout/text_scanner.h"

namespace meshard {
namespace {

constexpr int kLetters = 'z' - 'i' + 1;

// `[i, jk]`
std::string to_text(const TensorFactors& tensor) {
  std::string out = "[";
  for (std::size_t d = 0; d < tensor.size(); ++d) {
    if (d > 0) append(out, ", ");
    for (int factor : tensor[d]) append(out, factor_name(factor));
  }
  return out + "]";
}

std::string to_text(const std::vector<TensorFactors>& tensors) {
  std::string out = "(";
  for (std::size_t t = 0; t < tensors.size(); ++t)
    append(out, cat(t == 0 ? "" : ", ", to_text(tensors[t])));
  return out + ")";
}

constexpr std::pair<FactorKind, std::string_view> kKinds[] = {
    {FactorKind::kReduction, "reduction"},
    {FactorKind::kNeedReplication, "need_replication"},
    {FactorKind::kPermutation, "permutation"}};

// Parses factor names that are written without separators: `ij`, `zz_1`.
DimensionFactors factors_of_name(TextScanner& scanner, const std::string& name) {
  DimensionFactors factors;
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (name[i] < 'i' || name[i] > 'z')
      scanner.fail(
          cat("`", name,
              "` contains an invalid factor name; factors are named i to z, then z_1, z_2, ..."));
    int factor = name[i] - 'i';
    if (name[i] == 'z' && i + 1 < name.size() && name[i + 1] == '_') {
      int number = 0;
      std::size_t digit = i + 2;
      for (; digit < name.size() && name[digit] >= '0' && name[digit] <= '9' && number < 100000;
           ++digit)
        number = number * 10 + (name[digit] - '0');
      if (number == 0)
        scanner.fail(
            cat("`", name,
                "` contains an invalid factor name; factors are named i to z, then z_1, z_2, ..."));
      factor += number;
      i = digit - 1;
    }
    factors.push_back(factor);
  }
  return factors;
}

int read_factor(TextScanner& scanner) {
  std::string name = scanner.identifier();
  DimensionFactors factors = factors_of_name(scanner, name);
  if (factors.size() != 1) scanner.fail(cat("expected one factor, not `", name, "`"));
  return factors[0];
}

std::vector<TensorFactors> read_tensors(TextScanner& scanner) {
  std::vector<TensorFactors> tensors;
  scanner.expect("(");
  scanner.list(")", [&] {
    TensorFactors tensor;
    scanner.expect("[");
    scanner.list("]", [&] { tensor.push_back(factors_of_name(scanner, scanner.identifier())); });
    tensors.push_back(std::move(tensor));
  });
  return tensors;
}

std::vector<Factor> read_factors(TextScanner& scanner) {
  std::vector<std::pair<int, std::int64_t>> sizes;
  scanner.expect("{");
  scanner.list("}", [&] {
    int factor = read_factor(scanner);
    scanner.expect("=");
    sizes.emplace_back(factor, scanner.integer());
  });
  std::sort(sizes.begin(), sizes.end());
  std::vector<Factor> factors;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i].first != static_cast<int>(i))
      scanner.fail(cat("factor ", factor_name(static_cast<int>(i)), " must have exactly one size"));
    factors.push_back({sizes[i].second, FactorKind::kPassThrough});
  }
  for (const auto& named : kKinds) {
    if (!scanner.accept(named.second)) continue;
    scanner.expect("=");
    scanner.expect("{");
    scanner.list("}", [&] {
      int factor = read_factor(scanner);
      if (factor >= static_cast<int>(factors.size()))
        scanner.fail(cat("factor ", factor_name(factor), " has no size"));
      factors[static_cast<std::size_t>(factor)].kind = named.first;
    });
  }
  return factors;
}

}  // namespace

std::string factor_name(int index) {
  if (index < kLetters) return std::string(1, static_cast<char>('i' + index));
  return cat("z_", index - kLetters + 1);
}

ShardingRule::ShardingRule(std::vector<Factor> factors, std::vector<TensorFactors> operands,
                           std::vector<TensorFactors> results)
    : factors_(std::move(factors)), operands_(std::move(operands)), results_(std::move(results)) {
  std::vector<bool> used(factors_.size());
  auto check = [&](const std::vector<TensorFactors>& tensors, std::string_view what, bool result) {
    for (std::size_t t = 0; t < tensors.size(); ++t) {
      std::vector<bool> here(factors_.size());
      for (std::size_t d = 0; d < tensors[t].size(); ++d) {
        if (tensors[t][d].empty())
          throw_invalid({}, "[sharding_rule] dimension ", d, " of ", what, ' ', t,
                        " has no factor");
        for (int factor : tensors[t][d]) {
          if (factor < 0 || factor >= static_cast<int>(factors_.size()))
            throw_invalid({}, "[sharding_rule] dimension ", d, " of ", what, ' ', t,
                          " refers to factor ", factor, ", but the number of factors is ",
                          factors_.size());
          std::size_t f = static_cast<std::size_t>(factor);
          if (here[f])
            throw_invalid({}, "[sharding_rule] factor ", factor_name(factor), " appears twice in ",
                          what, ' ', t, ": ", to_text(tensors[t]));
          if (result && factors_[f].kind == FactorKind::kReduction)
            throw_invalid({}, "[sharding_rule] the reduction factor ", factor_name(factor),
                          " is in result ", t, ": ", to_text(tensors[t]));
          here[f] = used[f] = true;
        }
      }
    }
  };
  check(operands_, "operand", false);
  check(results_, "result", true);
  for (std::size_t f = 0; f < factors_.size(); ++f) {
    if (factors_[f].size < 0)
      throw_invalid({}, "[sharding_rule] factor ", factor_name(static_cast<int>(f)), " has size ",
                    factors_[f].size);
    if (!used[f])
      throw_invalid({}, "[sharding_rule] factor ", factor_name(static_cast<int>(f)),
                    " does not appear in any operand or result");
  }
}

Result<void> ShardingRule::validate(std::span<const IntVector> operand_dims,
                                    std::span<const IntVector> result_dims) const {
  auto check = [&](const std::vector<TensorFactors>& tensors, std::span<const IntVector> dims,
                   std::string_view what) -> Result<void> {
    auto failure = [&](const std::string& why) {
      return Error(ErrorCode::kInvalidArgument, cat("[sharding_rule] ", *this, ": ", why));
    };
    if (tensors.size() != dims.size())
      return failure(
          cat("the rule has ", tensors.size(), ' ', what, "s, but the op has ", dims.size()));
    for (std::size_t t = 0; t < tensors.size(); ++t) {
      if (tensors[t].size() != dims[t].size())
        return failure(cat(what, ' ', t, " has ", tensors[t].size(),
                           " dimensions in the rule, but ", dims[t].size(), " in the op"));
      for (std::size_t d = 0; d < tensors[t].size(); ++d) {
        std::int64_t size = 1;
        for (int factor : tensors[t][d]) size *= factors_[static_cast<std::size_t>(factor)].size;
        if (size != dims[t][d])
          return failure(cat("dimension ", d, " of ", what, ' ', t, " has size ", size,
                             " by its factors, but ", dims[t][d], " in the op"));
      }
    }
    return {};
  };
  MESHARD_RETURN_IF_ERROR(check(operands_, operand_dims, "operand"));
  return check(results_, result_dims, "result");
}

std::string ShardingRule::to_string() const {
  std::string out = cat(to_text(operands_), "->", to_text(results_), " {");
  for (std::size_t f = 0; f < factors_.size(); ++f)
    append(out, cat(f == 0 ? "" : ", ", factor_name(static_cast<int>(f)), '=', factors_[f].size));
  append(out, "}");
  for (auto [kind, word] : kKinds) {
    std::string names;
    for (std::size_t f = 0; f < factors_.size(); ++f)
      if (factors_[f].kind == kind)
        append(names, cat(names.empty() ? "" : ", ", factor_name(static_cast<int>(f))));
    if (!names.empty()) append(out, cat(' ', word, "={", names, '}'));
  }
  return out;
}

Result<ShardingRule> ShardingRule::parse(std::string_view text) {
  return parse_whole("sharding rule", text, [](TextScanner& scanner) {
    std::vector<TensorFactors> operands = read_tensors(scanner);
    scanner.expect("->");
    std::vector<TensorFactors> results = read_tensors(scanner);
    return ShardingRule(read_factors(scanner), std::move(operands), std::move(results));
  });
}

}  // namespace meshard

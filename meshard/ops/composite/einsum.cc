#include "meshard/ops/composite/einsum.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "meshard/ops/all.h"
#include "meshard/ops/composite/internal/contraction.h"
#include "meshard/ops/definition/operand.h"

namespace meshard {
using namespace internal;
namespace {

// Labels below 256 are letters; the dimensions of an ellipsis, counted from the right, start here.
constexpr int kEllipsis = 256;
// The label of an ellipsis in a term before its operand's rank is known.
constexpr int kDots = -1;

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

// A parsed spec: the labels of each operand, and of the result if given.
class Spec {
 public:
  Spec(std::string_view text, SourceLocation where) : text_(text), where_(where) {
    std::string plain;
    for (char c : text)
      if (c != ' ') plain.push_back(c);
    std::size_t arrow = plain.find("->");
    has_result_ = arrow != plain.npos;
    if (has_result_) result_ = term(std::string_view(plain).substr(arrow + 2));
    std::string_view left = std::string_view(plain).substr(0, arrow);
    for (std::size_t begin = 0; begin <= left.size();) {
      std::size_t comma = std::min(left.find(',', begin), left.size());
      operands_.push_back(term(left.substr(begin, comma - begin)));
      begin = comma + 1;
    }
  }

  template <class... Parts>
  [[noreturn]] void fail(const Parts&... parts) const {
    throw_invalid(where_, "[einsum] ", parts..., ", in \"", text_, "\"");
  }

  std::size_t num_operands() const { return operands_.size(); }

  // The labels of an operand, with those of its ellipsis expanded.
  Labels labels(std::size_t i, const TensorType& type) {
    Labels written = operands_[i], out;
    bool dots = std::count(written.begin(), written.end(), kDots) != 0;
    int letters = static_cast<int>(written.size()) - (dots ? 1 : 0);
    int rest = type.rank() - letters;
    if (rest < 0 || (rest > 0 && !dots))
      fail("operand ", i, " ", type, " has rank ", type.rank(), ", but its term names ", letters,
           " dimensions");
    dots_rank_ = std::max(dots_rank_, rest);
    for (int label : written) {
      if (label != kDots)
        out.push_back(label);
      else
        for (int k = rest; k-- > 0;) out.push_back(kEllipsis + k);
    }
    return out;
  }

  // The labels of the result. @pre labels() was called for every operand
  Labels result() const {
    Labels dots, out;
    for (int k = dots_rank_; k-- > 0;) dots.push_back(kEllipsis + k);
    if (has_result_) {
      for (int label : result_) {
        if (label != kDots)
          out.push_back(label);
        else
          for (int dot : dots) out.push_back(dot);
      }
      if (dots_rank_ > 0 && std::count(result_.begin(), result_.end(), kDots) == 0)
        fail("the operands' ellipsis has ", dots_rank_,
             " dimensions and the result has no ellipsis");
      check_result();
      return out;
    }
    out = dots;
    for (int c = 'A'; c <= 'z'; ++c)
      if (occurrences(c) == 1) out.push_back(c);
    return out;
  }

 private:
  Labels term(std::string_view text) const {
    Labels labels;
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (is_letter(text[i])) {
        labels.push_back(text[i]);
      } else if (text.substr(i, 3) == "..." &&
                 std::count(labels.begin(), labels.end(), kDots) == 0) {
        labels.push_back(kDots);
        i += 2;
      } else {
        fail("`", text, "` must consist of letters and at most one `...`");
      }
    }
    return labels;
  }

  std::ptrdiff_t occurrences(int label) const {
    std::ptrdiff_t count = 0;
    for (const Labels& labels : operands_) count += std::count(labels.begin(), labels.end(), label);
    return count;
  }

  void check_result() const {
    for (int label : result_) {
      if (label == kDots) continue;
      char letter = static_cast<char>(label);
      if (std::count(result_.begin(), result_.end(), label) > 1)
        fail("the result names `", letter, "` twice");
      if (occurrences(label) == 0) fail("the result names `", letter, "`, which no operand has");
    }
  }

  std::string text_;
  SourceLocation where_;
  std::vector<Labels> operands_;
  Labels result_;
  bool has_result_ = false;
  int dots_rank_ = 0;
};

// Replaces repeated labels in an operand: takes the diagonal, as the sum over a mask.
Labeled with_diagonals(const Spec& spec, Labeled x) {
  for (std::size_t first = 0; first < x.labels.size(); ++first)
    for (std::size_t second = first + 1; second < x.labels.size();) {
      if (x.labels[first] != x.labels[second]) {
        ++second;
        continue;
      }
      const Shape& shape = x.tensor.shape();
      auto a = static_cast<std::int64_t>(first), b = static_cast<std::int64_t>(second);
      if (shape[a] != shape[b])
        spec.fail("cannot take the diagonal of ", x.tensor.type(), " over dimension ", a, " = ",
                  shape[a], " and dimension ", b, " = ", shape[b]);
      Tensor on_diagonal = equal(iota(DType::i32, shape, a), iota(DType::i32, shape, b));
      x.tensor = sum(where(on_diagonal, x.tensor, 0), b);
      x.labels.erase(x.labels.begin() + second);
    }
  return x;
}

// The size of each label; of sizes that broadcast, the larger one.
std::map<int, std::int64_t> sizes_of_labels(const std::vector<Labeled>& factors) {
  std::map<int, std::int64_t> sizes;
  for (const Labeled& factor : factors)
    for (std::size_t d = 0; d < factor.labels.size(); ++d) {
      std::int64_t size = factor.tensor.shape()[static_cast<int>(d)];
      auto known = sizes.emplace(factor.labels[d], size).first;
      if (known->second == 1) known->second = size;
    }
  return sizes;
}

}  // namespace

Tensor einsum(std::string_view text, const std::vector<Tensor>& operands, SourceLocation where) {
  SourceScope line(where);
  where = effective_source(where);
  Spec spec(text, where);
  if (operands.size() != spec.num_operands())
    spec.fail(operands.size(), " operands are given, but ", spec.num_operands(), " are named");
  std::vector<Labeled> factors;
  DType dtype = operand_tensor("einsum", In(operands[0], where)).dtype();
  for (const Tensor& operand : operands)
    dtype = promote(dtype, operand_tensor("einsum", In(operand, where)).dtype(), where);
  for (std::size_t i = 0; i < operands.size(); ++i)
    factors.push_back(
        with_diagonals(spec, {astype(operands[i], dtype), spec.labels(i, operands[i].type())}));
  Labels result = spec.result();
  std::vector<Labels> remaining;
  for (const Labeled& factor : factors) remaining.push_back(factor.labels);
  for (const auto& step : contraction_order(remaining, result, sizes_of_labels(factors))) {
    Labeled lhs = std::move(factors[step.first]), rhs = std::move(factors[step.second]);
    factors.erase(factors.begin() + static_cast<std::ptrdiff_t>(step.second));
    factors.erase(factors.begin() + static_cast<std::ptrdiff_t>(step.first));
    Labels keep = result;
    for (const Labeled& later : factors)
      for (int label : later.labels) keep.push_back(label);
    factors.push_back(contract("einsum", std::move(lhs), std::move(rhs), keep, where));
  }
  return ordered(sum_out(std::move(factors.front()), result), result);
}

}  // namespace meshard

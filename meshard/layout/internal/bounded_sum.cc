#include "meshard/layout/internal/bounded_sum.h"

#include <algorithm>

namespace meshard {
namespace {

WideInt gcd_of(WideInt a, WideInt b) {
  while (b != 0) {
    WideInt rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

// The x in 0..modulus-1 with x a = 1 modulo `modulus`; a and modulus must be coprime.
WideInt inverse_of(WideInt a, WideInt modulus) {
  WideInt r0 = modulus, r1 = a % modulus, x0 = 0, x1 = 1;
  while (r1 != 0) {
    WideInt quotient = r0 / r1, r2 = r0 - quotient * r1, x2 = x0 - quotient * x1;
    r0 = r1, r1 = r2, x0 = x1, x1 = x2;
  }
  return (x0 % modulus + modulus) % modulus;
}

// Sorts by step, largest first, and merges terms whose multiples join without a gap. Steps must be
// positive.
void sort_and_merge(BoundedTerms& terms) {
  std::sort(terms.begin(), terms.end(),
            [](const BoundedTerm& a, const BoundedTerm& b) { return a.step < b.step; });
  BoundedTerms merged;
  for (const BoundedTerm& term : terms) {
    BoundedTerm* last = merged.empty() ? nullptr : &merged.back();
    if (last && term.step % last->step == 0 && term.step / last->step <= last->count + 1)
      last->count += term.step / last->step * term.count;
    else
      merged.push_back(term);
  }
  std::reverse(merged.begin(), merged.end());
  terms = std::move(merged);
}

class BoundedSumSearch {
 public:
  explicit BoundedSumSearch(const BoundedTerms& terms) : terms_(terms) {
    WideInt reach = 0, divisor = 0;
    rest_.resize(terms.size() + 1);
    for (std::size_t i = terms.size(); i-- > 0;) {
      reach += terms[i].step * terms[i].count;
      divisor = gcd_of(terms[i].step, divisor);
      rest_[i] = {divisor, reach};
    }
  }

  // True if terms i and later can sum to `target`.
  bool from(std::size_t i, WideInt target) const {
    if (target == 0) return true;
    if (target < 0 || target > rest_[i].reach || target % rest_[i].divisor != 0) return false;
    if (i + 1 == terms_.size()) return true;
    WideInt step = terms_[i].step, divisor = rest_[i].divisor, next = rest_[i + 1].divisor;
    WideInt least = std::max<WideInt>(0, (target - rest_[i + 1].reach + step - 1) / step);
    WideInt most = std::min(terms_[i].count, target / step);
    // Only counts c with c step = target modulo `next` leave a rest that the gcd of the smaller
    // steps divides.
    WideInt modulus = next / divisor;
    WideInt first = target / divisor % modulus * inverse_of(step / divisor, modulus) % modulus;
    WideInt start = least + ((first - least) % modulus + modulus) % modulus;
    for (WideInt c = start; c <= most; c += modulus)
      if (from(i + 1, target - c * step)) return true;
    return false;
  }

 private:
  struct Rest {
    WideInt divisor = 0;  // gcd of the steps from this term on
    WideInt reach = 0;    // the largest sum of these terms
  };
  const BoundedTerms& terms_;
  InlineVector<Rest, 8> rest_;
};

}  // namespace

bool has_bounded_sum(const BoundedTerms& terms, WideInt target) {
  BoundedTerms positive;
  for (const BoundedTerm& term : terms) {
    if (term.step == 0 || term.count == 0) continue;
    if (term.step > 0) {
      positive.push_back(term);
    } else {  // c * -s = (count - c) * s - count * s
      positive.push_back({-term.step, term.count});
      target -= term.step * term.count;
    }
  }
  sort_and_merge(positive);
  return BoundedSumSearch(positive).from(0, target);
}

}  // namespace meshard

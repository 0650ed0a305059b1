// The candidates of a search, and which of them to compile next.
#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "meshard/plan/search.h"

namespace meshard {

/// Owner of the candidates that wait for a compile or had one.
///
/// A compiled candidate shows how wrong its estimate is: the logarithm of the ratio of what the
/// report says to the estimate. The estimate of a waiting candidate is corrected by the mean of
/// these errors, in which a candidate that differs in d specs has the weight 4^-d (another mesh
/// counts as two specs).
class CandidatePool {
 public:
  explicit CandidatePool(const PlanProblem& problem) : problem_(problem) {}

  /// Adds a candidate. Does nothing if it is there already.
  /// @return its number
  std::size_t add(PlannedCandidate one);
  /// Adds the missing neighbors of a candidate: candidates that differ in the spec of one value,
  /// and candidates with other meshes of `meshes` and the same specs, as far as they divide. A
  /// candidate with open dimensions has no neighbors.
  /// @return the numbers of the new ones
  std::vector<std::size_t> add_neighbors(std::size_t number,
                                         const std::vector<std::vector<MeshAxis>>& meshes);

  std::size_t size() const { return entries_.size(); }
  PlannedCandidate& operator[](std::size_t number) { return entries_[number].planned; }
  std::optional<std::size_t> find(const PlanCandidate& candidate) const;

  /// The candidate is not to be compiled.
  void leave_out(std::size_t number);
  /// The candidate has a verdict.
  void judged(std::size_t number, const PlanVerdict& verdict);
  std::size_t waiting() const { return waiting_; }

  /// The most promising waiting candidate, or that among the neighbors of `center`; none if there
  /// is none. It no longer waits.
  std::optional<std::size_t> take();
  std::optional<std::size_t> take_neighbor_of(std::size_t center);

 private:
  struct Entry {
    PlannedCandidate planned;
    // The number of the mesh, then that of the spec of each value. Equal texts have equal numbers.
    std::vector<int> features;
    bool waits = true;
  };
  struct Error {
    std::size_t entry;
    double log_ratio;
  };
  int feature(const std::string& text);
  static int distance(const std::vector<int>& a, const std::vector<int>& b);
  static bool are_neighbors(const std::vector<int>& a, const std::vector<int>& b);
  void stop_waiting(std::size_t number);
  double corrected(const Entry& entry) const;
  template <class Accept>
  std::optional<std::size_t> take_best(const Accept& accept);

  const PlanProblem& problem_;
  std::vector<Entry> entries_;
  std::unordered_map<std::string, std::size_t> numbers_;  // by the candidate's text
  std::unordered_map<std::string, int> feature_numbers_;
  std::vector<Error> errors_;
  std::size_t waiting_ = 0;
};

/// The estimate of a candidate: the problem's, else only the bytes of the free values.
PlanEstimate estimate_of(const PlanProblem& problem, const PlanCandidate& candidate);

/// The meshes that suit a problem, by their axes.
/// @error as plan_candidates(), thrown
std::vector<std::vector<MeshAxis>> meshes_of(const PlanProblem& problem);

/// True if `a` is to be compiled before `b`: it takes less time by its estimate; moves fewer bytes;
/// has fewer bytes of arguments.
bool more_promising(const PlanEstimate& a, const PlanEstimate& b);

}  // namespace meshard

// Random programs over the devices of several processes, which must give the same as without a
// mesh. Started by mpirun in processes that have as many devices together as
// MESHARD_PROGRAM_DEVICES says. usage: across_random FIRST_SEED COUNT [KIND]
//
// Program k is drawn from FIRST_SEED + k; KIND is a number of property::Kind, otherwise they take
// turns. A failure shows the program; all processes then end.
#include <cstdio>
#include <cstdlib>
#include <random>

#include "meshard/meshard.h"
#include "tests/property/sharded_program/program.h"

namespace {

using namespace meshard;

constexpr property::Kind kKinds[] = {property::Kind::kOneSet, property::Kind::kMeshes,
                                     property::Kind::kTransforms, property::Kind::kExplicit};

bool passes(std::uint64_t seed, property::Kind kind) {
  std::mt19937_64 random(seed);
  property::Program program = property::draw_program(random, kind);
  std::optional<property::Failure> failure = property::run(program);
  if (!failure) return true;
  std::printf("process %d, seed %llu, kind %d:\n%s// %s\n%s\n", processes().rank(),
              static_cast<unsigned long long>(seed), static_cast<int>(kind),
              property::to_code(program).c_str(), failure->check.c_str(), failure->detail.c_str());
  return false;
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 3) return 2;
  std::uint64_t first = std::strtoull(arguments[1], nullptr, 10);
  int programs = std::atoi(arguments[2]);
  try {
    (void)initialize_processes().value();
    for (int k = 0; k < programs; ++k) {
      int kind = count > 3 ? std::atoi(arguments[3]) : k % 4;
      if (!passes(first + static_cast<std::uint64_t>(k), kKinds[kind])) return 1;
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "process %d: %s\n", processes().rank(), error.what());
    return 1;
  }
  if (processes().rank() == 0)
    std::printf("%d programs in %d processes\n", programs, processes().size());
  return 0;
}

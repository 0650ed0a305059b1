// Tested in meshard/runtime/internal/program_cache_test.cc.
#include "meshard/runtime/compile_runner.h"

#include <atomic>

namespace meshard::internal {
namespace {

std::atomic<CompileRunner> current_runner{nullptr};

}  // namespace

void set_compile_runner(CompileRunner runner) { current_runner = runner; }
CompileRunner compile_runner() { return current_runner.load(std::memory_order_acquire); }

}  // namespace meshard::internal

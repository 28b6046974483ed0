// GODWIT_TRACE, GODWIT_STATS and GODWIT_STATS_JSON of a run that ends with its program: they are written when
// main returns or the program calls exit, after its own handlers and destructors. Only the process that
// godwit-pthread started writes, also after exec: not a forked child, nor programs that it starts. Document:
// docs/pthread.md. Test: tests/pthread/report.sh.
#pragma once

#include <godwit/options.hpp>

namespace godwit::pthread {

/// Before the program's main, on an OS thread that may start others: leave in @p opts what this process is to
/// write, and prepare for it. Throws std::runtime_error.
void begin_outputs(options& opts);

}  // namespace godwit::pthread

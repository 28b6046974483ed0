// For the tests of containers: one root under several runs, and checks that work in any worker.
#pragma once

#include <gtest/gtest.h>
#include <godwit/godwit.hpp>

#include <stdexcept>
#include <string>

namespace gw = godwit;

namespace container_runs {

/// Fails by an exception, which travels to the join and out of the run, from wherever it was thrown.
inline void want(bool ok, const char* what, int line) {
  if (!ok) throw std::runtime_error("line " + std::to_string(line) + ": " + what);
}
#define WANT(...) container_runs::want((__VA_ARGS__), #__VA_ARGS__, __LINE__)

/// The expression throws E, and its text has these words.
#define WANT_THROW(expression, E, words)                             \
  do {                                                               \
    bool thrown_ = false;                                            \
    try {                                                            \
      static_cast<void>(expression);                                 \
    } catch (const E& e_) {                                          \
      thrown_ = true;                                                \
      WANT(std::string(e_.what()).find(words) != std::string::npos); \
    }                                                                \
    WANT(thrown_);                                                   \
  } while (false)

/// Run @p root with 1, 2 and 4 workers, left alone and with threads forced to leave. Expect that nothing is
/// thrown.
template <class F>
void in_all_runs(const F& root) {
  for (const unsigned workers : {1u, 2u, 4u})
    for (const char* steal : {"none", "random", "parents"}) {
      gw::options o;
      o.workers = workers;
      o.force_steal = gw::choice::named{steal};
      o.seed = 7;
      SCOPED_TRACE(std::to_string(workers) + " workers, force_steal " + steal);
      EXPECT_NO_THROW({
        try {
          gw::run<void>(root, o);
        } catch (const std::exception& e) {
          ADD_FAILURE() << e.what();
          throw;
        }
      });
    }
}

/// The same with check_global: what is not freed, or wrong, is printed. To be called in a child process.
template <class F>
int run_checked(const F& root, unsigned workers = 2, gw::options o = {}) {
  o.workers = workers;
  o.check_global = gw::choice::check_global::on;
  return gw::run(0, nullptr, root, o);
}

}  // namespace container_runs

// Threads that leave in the middle of exceptions: they spawn, join and yield inside handlers and in
// destructors that unwinding calls, and go on there wherever they are then. Workers that are processes share
// their heap. docs/protocols/exceptions.md
// test: timeout=300 skip-qemu
#include "support/sanitizer.hpp"
#include "support/schedule.hpp"
#include "support/shared.hpp"

#include <godwit/godwit.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <exception>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace {

namespace gw = godwit;

/// Exceptions of our own: how many there are, in all workers.
std::atomic<long>* living;

std::string long_text(int n) {
  return std::string(static_cast<std::size_t>(60 + n % 100), 'e') + std::to_string(n);
}

class own_error {
 public:
  explicit own_error(int n) : n_(n), text_(long_text(n)) { ++*living; }
  own_error(const own_error& other) : n_(other.n_), text_(other.text_) { ++*living; }
  own_error& operator=(const own_error&) = delete;
  virtual ~own_error() {
    n_ = -1;
    --*living;
  }
  bool is(int n) const { return n_ == n && text_ == long_text(n); }

 private:
  int n_;
  std::string text_;
};
class derived_error : public own_error {
  using own_error::own_error;
};

[[gnu::noinline]] void throw_own(int n) { throw derived_error(n); }
/// Arguments on the stack: at the throw the caller's frame reaches further down than in its handler.
[[gnu::noinline]] int throw_with(int a, int b, int c, int d, int e, int f, int n, int h, int i, int j) {
  if (a + b + c + d + e + f + h + i + j != 0) throw_own(n);
  return n;
}

/// The exception being handled, by the way that programs have in common handlers.
bool handled_is(int n) {
  try {
    throw;
  } catch (const own_error& e) {
    return e.is(n);
  } catch (...) {
    return false;
  }
}

/// Each program gives back 0 if all was right. P: a policy.
template <class P>
struct programs {
  static int child(int n) {
    // Whatever its parent is in the middle of, a thread begins with nothing.
    int wrong = std::current_exception() != nullptr || std::uncaught_exceptions() != 0;
    try {
      throw_own(n);
    } catch (const own_error& e) {
      wrong += !e.is(n);
    }
    return wrong + (std::current_exception() != nullptr);
  }
  /// Spawns, joins and yields: the calling thread may leave at each.
  [[gnu::noinline]] static int elsewhere(int n) {
    auto first = P::spawn([n] { return child(n); });
    gw::yield();
    auto second = P::spawn([n] { return child(n + 1); });
    return first.join() + second.join();
  }

  static int rethrown(int n) {
    int wrong = 0;
    try {
      try {
        throw_own(n);
      } catch (const own_error& e) {
        wrong += elsewhere(n);
        wrong += !e.is(n) + !handled_is(n);
        gw::yield();
        throw;
      }
    } catch (const derived_error& e) {
      wrong += elsewhere(n + 1) + !e.is(n);
    }
    return wrong + (std::current_exception() != nullptr);
  }

  static int left_by_return(int n) {
    for (int i = 0; i < 3; ++i) {
      try {
        throw_with(1, 2, 3, 4, 5, 6, n + i, 8, 9, 10);
      } catch (const own_error& e) {
        const int wrong = elsewhere(n) + !e.is(n + i);
        if (wrong != 0) return wrong;
        if (i == 0) continue;
        if (i == 2) return wrong;
      }
    }
    return 1;
  }

  static int nested(int n) {
    int wrong = 0;
    try {
      try {
        throw_own(n);
      } catch (const own_error& outer) {
        try {
          wrong += elsewhere(n);
          throw std::runtime_error(long_text(n + 1));
        } catch (const std::runtime_error& inner) {
          wrong += elsewhere(n);
          wrong += inner.what() != long_text(n + 1);
          try {
            throw;
          } catch (const std::exception& again) {
            wrong += elsewhere(n);
            wrong += &again != &inner;
          }
          wrong += elsewhere(n);
          wrong += inner.what() != long_text(n + 1);
        }
        wrong += elsewhere(n);
        wrong += !handled_is(n) + !outer.is(n);
        throw;
      }
    } catch (...) {
      wrong += elsewhere(n);
      wrong += !handled_is(n);
    }
    return wrong;
  }

  static int kept(int n) {
    std::exception_ptr first, second;
    int wrong = 0;
    try {
      throw_own(n);
    } catch (...) {
      first = std::current_exception();
      wrong += elsewhere(n);
      second = std::current_exception();
      wrong += first != second;
    }
    wrong += elsewhere(n);
    for (int i = 0; i < 2; ++i) {
      try {
        std::rethrow_exception(first);
      } catch (const own_error& e) {
        wrong += elsewhere(n) + !e.is(n);
        first = std::current_exception();
        wrong += elsewhere(n);
        if (i == 1) second = nullptr;
      }
    }
    return wrong + (second != nullptr);
  }

  /// Every level throws, catches, goes on in the handler, and throws again.
  static int levels(int n, int depth) {
    int wrong = 0;
    try {
      throw_own(n);
    } catch (const own_error& e) {
      if (depth > 0) {
        auto down = P::spawn([=] {
          try {
            return levels(n + 1, depth - 1);
          } catch (const own_error& its) {
            return its.is(n + 1) ? 0 : 1;
          }
        });
        try {
          wrong += levels(n + 2, depth - 1);
        } catch (const own_error& its) {
          wrong += !its.is(n + 2);
        }
        wrong += down.join();
      }
      wrong += !e.is(n);
      if (wrong == 0) throw;
    }
    return wrong + 1;
  }
  static int recursive(int n) {
    try {
      return levels(n, 4);
    } catch (const own_error& e) {
      return !e.is(n);
    }
  }

  static int of_the_library(int n) {
    int wrong = 0;
    try {
      static_cast<void>(std::vector<int>(3).at(static_cast<std::size_t>(n) + 3));
    } catch (const std::out_of_range& e) {
      const std::string before = e.what();
      wrong += elsewhere(n);
      wrong += before != e.what();
    }
    try {
      throw std::system_error(ERANGE, std::generic_category(), long_text(n));
    } catch (const std::system_error& e) {
      wrong += elsewhere(n);
      wrong += e.code().value() != ERANGE || std::string(e.what()).find(long_text(n)) != 0;
    }
    try {
      throw n;
    } catch (int thrown) {
      wrong += elsewhere(n) + (thrown != n);
    }
    return wrong;
  }

  /// A destructor that waits.
  struct waits {
    int n, uncaught;
    int* wrong;
    ~waits() {
      *wrong += std::uncaught_exceptions() != uncaught;
      *wrong += elsewhere(n);
      try {
        throw_own(n);
      } catch (const own_error& e) {
        *wrong += elsewhere(n) + !e.is(n) + (std::uncaught_exceptions() != uncaught);
      }
      *wrong += std::uncaught_exceptions() != uncaught;
    }
  };
  static int unwinding(int n) {
    int wrong = 0;
    try {
      const waits outer{n, 1, &wrong};
      try {
        const waits inner{n, 1, &wrong};
        throw_own(n);
      } catch (const own_error&) {
        const waits in_handler{n, 1, &wrong};
        wrong += std::uncaught_exceptions() != 0;
        throw;
      }
    } catch (const own_error& e) {
      wrong += elsewhere(n);
      wrong += !e.is(n) + (std::uncaught_exceptions() != 0);
    }
    const waits last{n, 0, &wrong};
    return wrong;
  }

  static int of_a_child(int n) {
    auto f = P::spawn([n]() -> int { throw std::logic_error(long_text(n)); });
    try {
      throw_own(n);
    } catch (const own_error& mine) {
      try {
        static_cast<void>(f.join());
      } catch (const std::logic_error& its) {
        return elsewhere(n) + !mine.is(n) + (its.what() != long_text(n)) + handled_is(n);
      }
    }
    return 1;
  }
};

using program = int (*)(int);
struct kind {
  const char* name;
  program (*of)(gw::choice::policy);
};
template <template <class> class Pick>
program picked(gw::choice::policy policy) {
  return gw::with_policy(policy, [](auto p) -> program { return &Pick<decltype(p)>::run; });
}
#define PROGRAM(NAME)                                                  \
  template <class P>                                                   \
  struct pick_##NAME {                                                 \
    static int run(int n) {                                            \
      if (n % 8 == 0) return programs<P>::NAME(n);                     \
      auto others = P::spawn([n] { return pick_##NAME::run(n - 1); }); \
      const int wrong = programs<P>::NAME(n);                          \
      return wrong + others.join();                                    \
    }                                                                  \
  };
#define PROGRAMS(X) \
  X(rethrown) X(left_by_return) X(nested) X(kept) X(recursive) X(of_the_library) X(unwinding) X(of_a_child)
PROGRAMS(PROGRAM)
#define KIND(NAME) {#NAME, &picked<pick_##NAME>},
const kind kinds[] = {PROGRAMS(KIND)};

struct Handlers : testing::TestWithParam<kind> {
  support::shared<std::atomic<long>> count;
  void SetUp() override { living = count.get(); }

  void check(gw::options o) {
    SCOPED_TRACE(support::describe(o) + " policy=" + name_of(o.policy) +
                 " substrate=" + name_of(o.substrate));
    const program f = GetParam().of(o.policy);
    EXPECT_EQ(gw::run<int>(
                  [f] {
                    gw::on_each_worker([] {});  // all workers are up
                    return f(6);
                  },
                  o),
              0);
    EXPECT_EQ(*count.get(), 0) << "each exception is destroyed once";
  }
};

/// Workers that are processes have no heap in common there.
std::vector<gw::choice::substrate> substrates() {
  if (support::with_asan) return {gw::choice::substrate::threads};
  return {gw::choice::substrate::processes, gw::choice::substrate::threads};
}

TEST_P(Handlers, GoOnWhereverTheirThreadIs) {
  for (const auto substrate : substrates())
    support::for_each_schedule([&](gw::options o) {
      o.substrate = substrate;
      check(o);
    });
}

TEST_P(Handlers, UnderEachPolicy) {
  for (const auto substrate : substrates())
    for (const char* policy : {"greedy", "stalling", "locked_free", "stalling_locked_free", "crude", "iso",
                               "child_full", "child_rtc"})
      for (const char* force : {"none", "random"}) {
        if (std::string_view(policy).starts_with("child") && std::string_view(force) != "none") continue;
        gw::options o = support::schedule(2, force);
        o.substrate = substrate;
        o.policy = gw::choice::named{policy};
        check(o);
        if (HasFailure()) return;
      }
}

TEST_P(Handlers, InTheSimulator) {
  gw::options o = support::schedule(4, "random");
  o.substrate = gw::choice::substrate::sim;
  check(o);
}

INSTANTIATE_TEST_SUITE_P(Kinds, Handlers, testing::ValuesIn(kinds),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace

// Tests of coroutines: co_await of futures in coroutines of two types, under every schedule; exceptions,
// coroutines that are destroyed, transfers from coroutine to coroutine, and what other substrates say.
// test: timeout=120 skip-clang
#include "places.hpp"

#include <godwit/coroutine.hpp>

#include <atomic>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

namespace gw = godwit;
using support::everywhere;

/// Somebody else's coroutine: begins when it is awaited, and goes on with who awaits it, without a call.
template <class T>
struct lazy {
  struct promise_type {
    std::optional<T> value;
    std::exception_ptr error;
    std::coroutine_handle<> after = std::noop_coroutine();
    lazy get_return_object() { return {std::coroutine_handle<promise_type>::from_promise(*this)}; }
    std::suspend_always initial_suspend() noexcept { return {}; }
    auto final_suspend() noexcept {
      struct transfer : std::suspend_always {
        std::coroutine_handle<> await_suspend(std::coroutine_handle<promise_type> h) const noexcept {
          return h.promise().after;
        }
      };
      return transfer{};
    }
    void return_value(T v) { value = std::move(v); }
    void unhandled_exception() { error = std::current_exception(); }
  };

  lazy(std::coroutine_handle<promise_type> h) : handle(h) {}
  lazy(lazy&& other) noexcept : handle(std::exchange(other.handle, nullptr)) {}
  ~lazy() {
    if (handle) handle.destroy();
  }
  bool await_ready() const noexcept { return false; }
  std::coroutine_handle<> await_suspend(std::coroutine_handle<> who) noexcept {
    handle.promise().after = who;
    return handle;
  }
  T await_resume() {
    if (handle.promise().error) std::rethrow_exception(handle.promise().error);
    return std::move(*handle.promise().value);
  }
  std::coroutine_handle<promise_type> handle;
};

gw::future<int> soon(int v) {
  return gw::create([v] {
    gw::yield();
    return v;
  });
}

gw::future<int> add(int n) {
  int sum = 0;
  for (int i = 0; i < n; ++i) sum += co_await soon(i);
  auto child = gw::spawn([n] { return n; });  // it may do what threads do
  co_return sum + child.join();
}

TEST(coroutine, returns_a_future_and_awaits_others) {
  everywhere([] {
    std::vector<gw::future<int>> all;
    for (int i = 0; i < 20; ++i) all.push_back(add(i));
    for (int i = 0; i < 20; ++i) EXPECT_EQ(all[static_cast<std::size_t>(i)].join(), i * (i - 1) / 2 + i);
  });
}

gw::future<std::string> text(gw::future<std::string> a, gw::shared_future<std::string> b) {
  const std::string again = co_await b;
  co_return co_await std::move(a) + again + co_await b;
}

TEST(coroutine, owning_values_void_and_shared_results) {
  everywhere([] {
    static std::atomic<int> seen;
    seen = 0;
    auto done = [](gw::future<void> f) -> gw::future<void> {
      co_await std::move(f);
      ++seen;
    }(gw::create([] { ++seen; }));
    gw::shared_future<std::string> b = gw::create([] { return std::string("b"); });
    EXPECT_EQ(text(gw::create([] { return std::string(100, 'a'); }), b).join(), std::string(100, 'a') + "bb");
    EXPECT_EQ(text(gw::spawn([] { return std::string("ready"); }), b).join(), "readybb");
    done.join();
    EXPECT_EQ(seen, 2);
  });
}

TEST(coroutine, exceptions_come_to_who_awaits_and_who_joins) {
  everywhere([] {
    auto throws = [](int deep) -> gw::future<int> {
      auto failing = gw::create([]() -> int { throw std::out_of_range("deep"); });
      if (deep != 0) co_return co_await std::move(failing);
      try {
        co_return co_await std::move(failing);
      } catch (const std::out_of_range&) {
      }
      co_return co_await soon(5);
    };
    EXPECT_EQ(throws(0).join(), 5);
    EXPECT_THROW(throws(1).join(), std::out_of_range);
  });
}

#if defined(__OPTIMIZE__)
constexpr int deep = 100'000;  // on a stack of 256 KiB
#else
constexpr int deep = 500;  // compilers call where they could transfer
#endif

lazy<int> descend(int n) {
  if (n == 0) co_return co_await soon(0);
  co_return 1 + co_await descend(n - 1);
}
template <class T>
gw::future<T> as_future(lazy<T> l) {
  co_return co_await l;
}

TEST(coroutine, of_other_types_transfer_to_each_other) {
  gw::run(support::on_threads(2), [] { EXPECT_EQ(as_future(descend(deep)).join(), deep); });
  everywhere([] { EXPECT_EQ(as_future(descend(50)).join(), 50); });
}

TEST(coroutine, waiting_again_and_again_needs_no_stack) {
  gw::run(support::on_threads(2), [] {
    auto often = [](int n) -> gw::future<int> {
      int sum = 0;
      for (int i = 0; i < n; ++i) sum += co_await gw::create([] { return 1; });
      co_return sum;
    };
    EXPECT_EQ(often(20'000).join(), 20'000);
  });
}

std::atomic<int> alive{0};
struct counted {
  counted() { ++alive; }
  counted(const counted&) { ++alive; }
  ~counted() { --alive; }
};

TEST(coroutine, one_that_waits_may_be_destroyed) {
  everywhere([] {
    for (int round = 0; round < 10; ++round) {
      const auto open = std::make_shared<gw::latch>(1);  // the thread may begin when the round is over
      {
        auto waits = [](std::shared_ptr<gw::latch> l, counted) -> lazy<int> {
          const counted local;
          auto at_the_latch = gw::create([l] { l->wait(); });  // (gcc 12 destroys some temporaries twice)
          co_await std::move(at_the_latch);
          ADD_FAILURE() << "it was destroyed";
          co_return 0;
        }(open, {});
        waits.handle.resume();
        EXPECT_GE(alive, 2);
      }
      EXPECT_EQ(alive, 0);
      open->count_down();
      if (round % 2 == 0) gw::yield();
    }
  });
}

TEST(coroutine, destroyed_before_its_result_its_future_throws) {
  everywhere([] {
    std::coroutine_handle<> kept;
    struct keep {
      std::coroutine_handle<>& in;
      bool await_ready() const noexcept { return false; }
      void await_suspend(std::coroutine_handle<> h) const noexcept { in = h; }
      void await_resume() const noexcept {}
    };
    auto never = [](std::coroutine_handle<>& in, counted) -> gw::future<int> {
      co_await keep{in};
      co_return 1;
    }(kept, {});
    EXPECT_FALSE(never.ready());
    kept.destroy();
    EXPECT_EQ(alive, 0);
    EXPECT_THROW(never.join(), std::runtime_error);
  });
}

TEST(coroutine, in_a_cancelled_scope_it_goes_on_and_ends) {
  everywhere([] {
    auto awaits = [](gw::future<counted> f) -> gw::future<int> {
      const counted local;
      co_await std::move(f);
      co_return 1;
    };
    {
      gw::cancel_scope scope;
      EXPECT_FALSE(scope.run([&] {
        auto waits = awaits(gw::create([] { return counted(); }));
        scope.cancel();  // before the thread that waits for it has begun
        waits.join();
      }));
    }
    EXPECT_EQ(alive, 0);
    {
      gw::latch open(1);
      gw::cancel_scope scope;
      EXPECT_FALSE(scope.run([&] {
        auto inner = gw::create([&open] {
          open.wait();
          return counted();
        });
        gw::yield();
        scope.cancel();
        auto waits = awaits(std::move(inner));
        open.count_down();
        waits.join();
      }));
    }
    EXPECT_EQ(alive, 0);
  });
}

struct slow_to_end {
  ~slow_to_end() {
    for (int i = 0; i < 10; ++i) gw::yield();  // whoever could go on meanwhile does
  }
  counted last;
};

TEST(coroutine, what_it_owns_is_gone_before_its_result_is_there) {
  everywhere([] {
    auto owns = [](std::unique_ptr<slow_to_end>) -> gw::future<int> { co_return co_await soon(3); };
    EXPECT_EQ(owns(std::make_unique<slow_to_end>()).join(), 3);
    EXPECT_EQ(alive, 0);
  });
}

struct fails_at_its_end {
  ~fails_at_its_end() noexcept(false) { throw std::out_of_range("at its end"); }
};

TEST(coroutine, an_error_after_its_value_drops_that) {
  everywhere([] {
    auto fails = []() -> gw::future<counted> {
      const fails_at_its_end last;
      co_return counted();
    };
    EXPECT_THROW(static_cast<void>(fails().join()), std::out_of_range);
    EXPECT_EQ(alive, 0);
  });
}

TEST(coroutine, on_processes_only_ready_futures) {
  gw::options o;
  o.workers = 1;
  o.substrate = gw::choice::substrate::processes;
  const auto root = [](bool ready) {
    return [ready] {
      auto twice = [](gw::future<int> f) -> gw::future<int> { co_return 2 * co_await std::move(f); };
      if (ready) return twice(gw::spawn([] { return 4; })).join();
      return twice(gw::spawn_at(gw::worker(0), [] { return 4; })).join();
    };
  };
  EXPECT_EQ(gw::run<int>(root(true), o), 8);
  try {
    gw::run<int>(root(false), o);
    ADD_FAILURE() << "it had to wait";
  } catch (const gw::run_error& e) {
    EXPECT_NE(
        std::string(e.what()).find("co_await of a future that is not ready needs workers that are threads"),
        std::string::npos)
        << e.what();
  }
}

}  // namespace

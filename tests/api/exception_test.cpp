// Tests of exceptions: which types travel and how, which of several wins, what is destroyed on the way, and
// that nothing of it depends on the schedule.
// test: timeout=180
#include "support/substrate.hpp"
#include "support/child.hpp"
#include "support/schedule.hpp"
#include "support/shared.hpp"

#include <godwit/godwit.hpp>

#include <gtest/gtest.h>

#include <any>
#include <array>
#include <atomic>
#include <filesystem>
#include <functional>
#include <future>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <typeinfo>
#include <variant>

namespace {

namespace gw = godwit;
using support::for_each_schedule;

/// What join gives for an exception, in the root thread, as text: "type: what".
template <class Throw>
std::string arrives(const gw::options& o, Throw thrower) {
  return gw::run<std::string>(
      [thrower] {
        auto f = gw::spawn([thrower]() -> int {
          thrower();
          return 0;
        });
        try {
          return std::to_string(f.join());
        } catch (const gw::remote_error& e) {
          return std::string("remote ") + e.type_name() + " | " + e.what();
        } catch (const std::exception& e) {
          return std::string(typeid(e).name()) + " | " + e.what();
        } catch (int i) {
          return "int " + std::to_string(i);
        } catch (unsigned u) {
          return "unsigned " + std::to_string(u);
        } catch (long l) {
          return "long " + std::to_string(l);
        } catch (double d) {
          return "double " + std::to_string(d);
        } catch (bool b) {
          return "bool " + std::to_string(b);
        } catch (const char* s) {
          return std::string("chars ") + s;
        } catch (const std::string& s) {
          return "string " + s;
        } catch (...) {
          return std::string("something else");
        }
      },
      o);
}
template <class E>
std::string named(const char* what) {
  return std::string(typeid(E).name()) + " | " + what;
}

const gw::options few[] = {support::schedule(1), support::schedule(2, "parents"),
                           support::schedule(2, "children"), support::schedule(3, "random", 5)};

template <class E>
void expect_what() {
  for (const gw::options& o : few)
    EXPECT_EQ(arrives(o, [] { throw E("because of this"); }), named<E>("because of this"))
        << support::describe(o);
}
template <class E>
void expect_plain() {
  for (const gw::options& o : few)
    EXPECT_EQ(arrives(o, [] { throw E(); }), named<E>(E().what())) << support::describe(o);
}

TEST(exception, standard_types_with_what) {
  expect_what<std::logic_error>();
  expect_what<std::domain_error>();
  expect_what<std::invalid_argument>();
  expect_what<std::length_error>();
  expect_what<std::out_of_range>();
  expect_what<std::runtime_error>();
  expect_what<std::range_error>();
  expect_what<std::overflow_error>();
  expect_what<std::underflow_error>();
}

TEST(exception, standard_types_without) {
  expect_plain<std::exception>();
  expect_plain<std::bad_alloc>();
  expect_plain<std::bad_array_new_length>();
  expect_plain<std::bad_cast>();
  expect_plain<std::bad_typeid>();
  expect_plain<std::bad_exception>();
  expect_plain<std::bad_optional_access>();
  expect_plain<std::bad_variant_access>();
  expect_plain<std::bad_function_call>();
  expect_plain<std::bad_weak_ptr>();
}

TEST(exception, plain_values) {
  for (const gw::options& o : few) {
    SCOPED_TRACE(support::describe(o));
    EXPECT_EQ(arrives(o, [] { throw 42; }), "int 42");
    EXPECT_EQ(arrives(o, [] { throw 42u; }), "unsigned 42");
    EXPECT_EQ(arrives(o, [] { throw -42L; }), "long -42");
    EXPECT_EQ(arrives(o, [] { throw 0.5; }), "double 0.500000");
    EXPECT_EQ(arrives(o, [] { throw true; }), "bool 1");
    EXPECT_EQ(arrives(o, [] { throw "a literal"; }), "chars a literal");
    EXPECT_EQ(arrives(o, [] { throw std::string(100, 's'); }), "string " + std::string(100, 's'));
  }
}

TEST(exception, system_error_keeps_its_code) {
  for (const gw::options& o : few) {
    SCOPED_TRACE(support::describe(o));
    try {
      gw::run<int>(
          []() -> int {
            return gw::spawn([]() -> int {
                     throw std::system_error(std::make_error_code(std::errc::no_space_on_device),
                                             "writing x");
                   })
                .join();
          },
          o);
      ADD_FAILURE() << "nothing was thrown";
    } catch (const std::system_error& e) {
      EXPECT_EQ(e.code(), std::errc::no_space_on_device);
      EXPECT_STREQ(e.what(), std::system_error(e.code(), "writing x").what());
    }
    // Made without a text it has that of its code, once.
    try {
      gw::run<int>([]() -> int { throw std::system_error(std::make_error_code(std::errc::io_error)); }, o);
      ADD_FAILURE() << "nothing was thrown";
    } catch (const std::system_error& e) {
      EXPECT_EQ(e.code(), std::errc::io_error);
      EXPECT_STREQ(e.what(), std::system_error(e.code()).what());
    }
  }
}

// Where it travels as bytes. Derived from a type that travels is not that type: it arrives as remote_error,
// with its own name.
struct my_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};
struct not_an_exception {};
struct owning_error : std::runtime_error {
  using std::runtime_error::runtime_error;
  std::shared_ptr<std::string> more = std::make_shared<std::string>(100, 'm');
};

TEST(exception, unknown_types_arrive_as_remote_error) {
  GODWIT_NEEDS_PROCESSES("exceptions arrive as they are");
  for (gw::options o : few) {
    o.heap = gw::choice::heap::separate;
    SCOPED_TRACE(support::describe(o));
    EXPECT_EQ(arrives(o, [] { throw my_error("mine"); }),
              "remote (anonymous namespace)::my_error | (anonymous namespace)::my_error: mine");
    EXPECT_EQ(arrives(o, [] { throw not_an_exception(); }),
              "remote (anonymous namespace)::not_an_exception | (anonymous namespace)::not_an_exception");
    EXPECT_EQ(
        arrives(o, [] { throw std::filesystem::filesystem_error("f", std::error_code()); }).substr(0, 11),
        "remote std:");
  }
}

TEST(exception, where_workers_have_one_heap_they_arrive_as_they_are) {
  for_each_schedule([](const gw::options& o) {
    EXPECT_EQ(gw::run<int>(
                  [] {
                    if (!gw::detail::one_heap()) return 100;  // several hosts, private heaps
                    auto f = gw::spawn([] {
                      auto g = gw::spawn([] { throw owning_error("mine"); });
                      g.join();
                    });
                    try {
                      f.join();
                    } catch (const owning_error& e) {
                      return static_cast<int>(e.more->size());
                    }
                    return 0;
                  },
                  o),
              100);
  });
}

TEST(exception, remote_error_stays_what_it_is_over_many_joins) {
  GODWIT_NEEDS_PROCESSES("exceptions arrive as they are");
  for_each_schedule([](gw::options o) {
    o.heap = gw::choice::heap::separate;
    EXPECT_EQ(arrives(o,
                      [] {
                        auto f = gw::spawn([] {
                          auto g = gw::spawn([] { throw my_error("deep: down"); });
                          g.join();
                        });
                        f.join();
                      }),
              "remote (anonymous namespace)::my_error | (anonymous namespace)::my_error: deep: down");
  });
}

struct plain_registered {
  int code;
  char text[12];
};
struct registered : std::runtime_error {
  using std::runtime_error::runtime_error;
};
struct with_codec : std::exception {
  explicit with_codec(std::string s, int n) : name(std::move(s)), number(n) {}
  const char* what() const noexcept override { return name.c_str(); }
  std::string name;
  int number;
};

}  // namespace

template <>
struct godwit::codec<with_codec> {
  static void write(writer& w, const with_codec& e) {
    w.put(e.name);
    w.put(e.number);
  }
  static with_codec read(reader& r) {
    auto s = r.get<std::string>();
    return with_codec(std::move(s), r.get<int>());
  }
};

namespace {

struct unwritable {
  std::string text;
};

}  // namespace

template <>
struct godwit::codec<unwritable> {
  static void write(writer&, const unwritable&) { throw std::domain_error("cannot be written"); }
  static unwritable read(reader&) { return {}; }
};

namespace {

TEST(exception, whose_writer_throws_arrives_as_that) {
  GODWIT_NEEDS_PROCESSES("exceptions arrive as they are");
  gw::register_exception<unwritable>();
  const auto arrived = [](const gw::options& o, auto root) {
    try {
      gw::run<int>(root, o);
    } catch (const gw::remote_error& e) {
      return std::string(e.what());
    } catch (const std::exception& e) {
      return std::string("not that: ") + e.what();
    }
    return std::string("nothing");
  };
  for (gw::options o : few) {
    o.heap = gw::choice::heap::separate;
    SCOPED_TRACE(support::describe(o));
    constexpr const char* text = "std::domain_error: thrown while an exception was encoded";
    EXPECT_EQ(arrived(o, []() -> int { throw unwritable{"out of root"}; }), text);
    EXPECT_EQ(arrived(o, [] { return gw::spawn([]() -> int { throw unwritable{"a thread"}; }).join(); }),
              text);
  }
}

TEST(exception, registered_types_arrive_as_themselves) {
  gw::register_exception<plain_registered>();
  gw::register_exception<registered>();
  gw::register_exception<with_codec>();
  for_each_schedule([](const gw::options& o) {
    EXPECT_EQ(gw::run<int>(
                  [] {
                    int good = 0;
                    auto a = gw::spawn([] { throw plain_registered{7, "text"}; });
                    auto b = gw::spawn([] { throw registered("reg"); });
                    auto c = gw::spawn([] { throw with_codec(std::string(80, 'n'), 9); });
                    try {
                      a.join();
                    } catch (const plain_registered& e) {
                      good += e.code == 7 && std::string(e.text) == "text";
                    }
                    try {
                      b.join();
                    } catch (const registered& e) {
                      good += std::string(e.what()) == "reg";
                    }
                    try {
                      c.join();
                    } catch (const with_codec& e) {
                      good += e.number == 9 && e.name == std::string(80, 'n');
                    }
                    return good;
                  },
                  o),
              3);
  });
}

TEST(exception, leftmost_wins_in_invoke) {
  for_each_schedule([](const gw::options& o) {
    support::shared<std::atomic<int>> finished;
    const auto text = gw::run<std::string>(
        [n = finished.get()] {
          const auto slow_throw = [n](int i) {
            for (int k = 0; k < 3 * (4 - i); ++k) gw::yield();  // the leftmost comes last
            n->fetch_add(1);
            throw std::runtime_error(std::to_string(i));
          };
          try {
            gw::invoke([n] { n->fetch_add(1); }, [=] { slow_throw(1); }, [=] { slow_throw(2); },
                       [n] { n->fetch_add(1); }, [=] { slow_throw(3); });
          } catch (const std::runtime_error& e) {
            return std::string(e.what()) + " of " + std::to_string(n->load());
          }
          return std::string("nothing");
        },
        o);
    EXPECT_EQ(text, "1 of 5");  // all have finished by then
  });
}

/// One that nobody joins is reported; those that lose against the leftmost are not news.
TEST(exception, only_unseen_ones_are_reported) {
  const auto dropped = support::run_child([] {
    return gw::run(0, nullptr,
                   [] { static_cast<void>(gw::spawn([] { throw std::runtime_error("dropped"); })); });
  });
  EXPECT_TRUE(dropped.err_has("dropped")) << support::show(dropped);
  for (const char* force : {"none", "parents", "children"}) {
    const auto beaten = support::run_child([force] {
      gw::options o;
      o.workers = 2;
      o.force_steal = gw::choice::named{force};
      return gw::run<int>(
          [] {
            const auto fail = [] { throw std::runtime_error("x"); };
            try {
              gw::invoke(fail, fail, fail);
            } catch (const std::runtime_error&) {
            }
            try {
              gw::invoke(fail, fail);
            } catch (const std::runtime_error&) {
              return 0;
            }
            return 1;
          },
          o);
    });
    EXPECT_EQ(beaten.status, 0) << support::show(beaten);
    EXPECT_FALSE(beaten.err_has("nobody joins")) << support::show(beaten);
  }
}

TEST(exception, of_the_last_callable_of_invoke) {
  for_each_schedule([](const gw::options& o) {
    EXPECT_THROW(gw::run<int>(
                     [] {
                       auto [a, b] = gw::invoke([] { return gw::spawn([] { return 1; }).join(); },
                                                []() -> int { throw std::domain_error("last"); });
                       return a + b;
                     },
                     o),
                 std::domain_error);
  });
}

// Each level counts its destructor: unwinding runs through frames that have migrated, once.
struct counted {
  std::atomic<int>* count;
  explicit counted(std::atomic<int>* c) : count(c) {}
  counted(const counted&) = delete;
  ~counted() { count->fetch_add(1); }
};
[[gnu::noinline]] int thrown_from(int depth, std::atomic<int>* count) {
  const counted here(count);
  if (depth == 0) throw std::out_of_range("bottom");
  auto f = gw::spawn([=] { return thrown_from(depth - 1, count); });
  const counted later(count);
  return f.join() + 1;
}

TEST(exception, destructors_run_once_on_the_way) {
  for_each_schedule([](const gw::options& o) {
    support::shared<std::atomic<int>> count;
    EXPECT_THROW(gw::run<int>([c = count.get()] { return thrown_from(20, c); }, o), std::out_of_range);
    EXPECT_EQ(count->load(), 41);
  });
}

TEST(exception, thrown_while_other_threads_are_outstanding) {
  for_each_schedule([](const gw::options& o) {
    support::shared<std::atomic<int>> count;
    const auto outer = [c = count.get()] {
      std::array<gw::future<std::string>, 6> f;
      for (auto& x : f)
        x = gw::spawn([c] {
          gw::yield();
          c->fetch_add(1);
          return std::string(100, 'r');
        });
      throw std::length_error("not waiting for them");
    };
    EXPECT_THROW(gw::run<int>(
                     [outer] {
                       gw::spawn(outer).join();
                       return 0;
                     },
                     o),
                 std::length_error);
    EXPECT_EQ(count->load(), 6);  // run waits for detached threads
  });
}

TEST(exception, in_a_detached_thread_is_dropped) {
  for_each_schedule([](const gw::options& o) {
    EXPECT_EQ(gw::run<int>(
                  [] {
                    for (int i = 0; i < 10; ++i)
                      static_cast<void>(gw::spawn([] { throw std::runtime_error("unseen"); }));
                    return 4;
                  },
                  o),
              4);
  });
}

TEST(exception, after_a_migration_is_caught_in_the_migrated_frame) {
  for_each_schedule([](const gw::options& o) {
    support::shared<std::atomic<int>> count;
    EXPECT_EQ(gw::run<int>(
                  [c = count.get()] {
                    int caught = 0;
                    for (int i = 0; i < 10; ++i) {
                      try {
                        const counted guard(c);
                        auto f = gw::spawn([i] { return i; });
                        const int v = f.join();
                        if (v == i) throw std::runtime_error(std::to_string(v));
                      } catch (const std::runtime_error& e) {
                        caught += e.what() == std::to_string(i);
                      }
                    }
                    return caught;
                  },
                  o),
              10);
    EXPECT_EQ(count->load(), 10);
  });
}

// Joins in the middle of handling another exception, and destructors that join while one is in flight.
struct joins_in_destructor {
  gw::future<int> f;
  std::atomic<int>* sum;
  ~joins_in_destructor() { sum->fetch_add(f.join()); }
};

TEST(exception, destructors_that_join_during_unwinding_on_one_worker) {
  support::shared<std::atomic<int>> sum;
  EXPECT_EQ(gw::run<int>(
                [s = sum.get()] {
                  try {
                    const joins_in_destructor a{gw::spawn([] { return 3; }), s};
                    throw 5;
                  } catch (int i) {
                    return i;
                  }
                },
                support::schedule(1)),
            5);
  EXPECT_EQ(sum->load(), 3);
}

TEST(exception, join_inside_a_handler_without_migration) {
  EXPECT_EQ(gw::run<int>(
                [] {
                  try {
                    throw std::runtime_error("first");
                  } catch (const std::runtime_error& e) {
                    auto f = gw::spawn([] { return 1; });
                    return f.join() + static_cast<int>(std::string(e.what()).size());
                  }
                },
                support::schedule(1)),
            6);
}

TEST(exception, very_many_in_a_row) {
  for (const gw::options& o : few) {
    SCOPED_TRACE(support::describe(o));
    EXPECT_EQ(gw::run<int>(
                  [] {
                    int caught = 0;
                    for (int i = 0; i < 3000; ++i) {
                      auto f = gw::spawn([i] { throw i; });
                      try {
                        f.join();
                      } catch (int k) {
                        caught += k == i;
                      }
                    }
                    return caught;
                  },
                  o),
              3000);
  }
}

}  // namespace

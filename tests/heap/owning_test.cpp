// What owns memory, while its thread moves from process to process: a local of each kind is made, lives
// across forced steals, is changed wherever its thread is then, and is freed there.
// test: timeout=300 skip-asan skip-qemu
#include "support/elsewhere.hpp"
#include "support/schedule.hpp"

#include <godwit/godwit.hpp>

#include <gtest/gtest.h>

#include <any>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <deque>
#include <exception>
#include <fstream>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <unordered_map>
#include <variant>
#include <vector>

namespace {

namespace gw = godwit;

void elsewhere() { support::elsewhere(30); }  // where it is then does not matter

std::string long_text(int n) {
  return std::string(static_cast<std::size_t>(40 + n % 300), 'a') + std::to_string(n);
}

// Each gives back 0 if all was right.
int vectors(int n) {
  std::vector<int> v(static_cast<std::size_t>(50 + n % 50), n);
  elsewhere();
  for (int i = 0; i < 1000; ++i) v.push_back(i);  // grows where the thread is now
  elsewhere();
  return v.front() != n || v.back() != 999 || v.size() != static_cast<std::size_t>(1050 + n % 50);
}
int strings(int n) {
  std::string s = long_text(n), shorter = "few";
  elsewhere();
  s += shorter;
  shorter += long_text(n + 1);
  elsewhere();
  return s != long_text(n) + "few" || shorter != "few" + long_text(n + 1);
}
int maps(int n) {
  std::map<int, std::string> m;
  for (int i = 0; i < 20; ++i) m[i] = long_text(i);
  elsewhere();
  for (int i = 0; i < 20; i += 2) m.erase(i);
  for (int i = 100; i < 120; ++i) m[i] = long_text(n);
  elsewhere();
  return m.size() != 30 || m.at(119) != long_text(n) || m.contains(2) || m.at(3) != long_text(3);
}
int hash_maps(int n) {
  std::unordered_map<std::string, int> m;
  for (int i = 0; i < 20; ++i) m[long_text(i)] = i;
  elsewhere();
  for (int i = 20; i < 300; ++i) m[long_text(i)] = i;  // rehashes
  elsewhere();
  return m.size() != 300 || m.at(long_text(7)) != 7 || m.at(long_text(299)) != 299 || n < 0;
}
int lists_and_deques(int n) {
  std::list<std::string> l;
  std::deque<int> d;
  for (int i = 0; i < 100; ++i) {
    l.push_back(long_text(i));
    d.push_front(i);
    if (i % 30 == 0) elsewhere();
  }
  while (d.size() > 10) d.pop_back();
  l.remove_if([](const std::string& s) { return s.size() % 2 == 0; });
  return d.front() != 99 || l.empty() || n < 0;
}
int shared_pointers(int n) {
  const auto p = std::make_shared<std::vector<int>>(100, n);
  auto tally = std::make_shared<std::atomic<int>>(0);
  std::weak_ptr<std::vector<int>> w = p;
  {
    // Copies in threads that run at once, at several workers.
    auto f = gw::spawn([&p, &tally] {
      auto own = p;
      const auto t = tally;
      elsewhere();
      *t += own->back();
    });
    auto own = p;
    const auto t = tally;
    elsewhere();
    *t += own->front();
    f.join();
  }
  return p.use_count() != 1 || tally.use_count() != 1 || *tally != 2 * n || w.expired();
}
struct node {
  std::unique_ptr<node> left, right;
  std::string name;
};
std::unique_ptr<node> tree(int depth) {
  auto n = std::make_unique<node>();
  n->name = long_text(depth);
  if (depth == 0) return n;
  auto left = gw::spawn([&n, depth] { n->left = tree(depth - 1); });
  n->right = tree(depth - 1);
  left.join();
  return n;
}
int names(const node& n) {
  return 1 + (n.left != nullptr ? names(*n.left) : 0) + (n.right != nullptr ? names(*n.right) : 0);
}
int trees(int n) {
  const auto t = tree(3);
  elsewhere();
  return names(*t) != 15 || t->left->right->name != long_text(1) || n < 0;
}
int functions(int n) {
  std::function<int(int)> f = [text = long_text(n), n](int m) {
    return static_cast<int>(text.size()) + n + m;
  };
  const int before = f(1);
  elsewhere();
  std::function<int()> g = [f, n] { return f(n); };
  elsewhere();
  return f(1) != before || g() != f(n);
}
int any_and_variant(int n) {
  std::any a = long_text(n);
  std::variant<int, std::string, std::vector<int>> v = std::vector<int>(30, n);
  std::optional<std::string> o = long_text(n);
  elsewhere();
  if (std::any_cast<std::string&>(a) != long_text(n) || std::get<2>(v).back() != n || *o != long_text(n))
    return 1;
  a = std::vector<std::string>(20, long_text(n));
  v = long_text(n);
  o.reset();
  elsewhere();
  return std::any_cast<std::vector<std::string>&>(a).at(19) != long_text(n) || std::get<1>(v) != long_text(n);
}
int streams(int n) {
  std::ostringstream out;
  out << "n is " << n << ' ' << long_text(n);
  elsewhere();
  for (int i = 0; i < 100; ++i) out << ' ' << i;
  elsewhere();
  std::istringstream in(out.str());
  std::string is, word;
  int got = 0;
  in >> word >> is >> got;
  return got != n || out.str().size() < 300;
}
struct own_error : std::runtime_error {
  explicit own_error(int n) : std::runtime_error(long_text(n)), more(std::make_shared<int>(n)) {}
  std::shared_ptr<int> more;
};
int exceptions(int n) {
  std::exception_ptr kept;
  try {
    throw own_error(n);
  } catch (...) {
    kept = std::current_exception();
  }
  elsewhere();
  try {
    std::rethrow_exception(kept);
  } catch (const own_error& e) {
    return e.what() != long_text(n) || *e.more != n;
  }
  return 1;
}
int captures(int n) {
  // Move-only, as closures that own are.
  auto held = std::make_unique<std::vector<std::string>>(30, long_text(n));
  auto f = gw::spawn([held = std::move(held), n] {
    elsewhere();
    held->push_back(long_text(n + 1));
    elsewhere();
    return static_cast<int>(held->size()) - (held->front() == long_text(n) ? 31 : 0);
  });
  elsewhere();
  return f.join();
}
int sets_and_results(int n) {
  auto f = gw::spawn([n] {
    std::vector<std::string> v(10, long_text(n));
    elsewhere();
    return v;
  });
  std::set<std::string> s{long_text(n)};
  elsewhere();
  for (const std::string& t : f.join()) s.insert(t + "!");
  return s.size() != 2;
}

struct kind {
  const char* name;
  int (*f)(int);
};
constexpr kind kinds[] = {{"vectors", vectors},
                          {"strings", strings},
                          {"maps", maps},
                          {"hash maps", hash_maps},
                          {"lists and deques", lists_and_deques},
                          {"shared pointers", shared_pointers},
                          {"trees", trees},
                          {"functions", functions},
                          {"any and variant", any_and_variant},
                          {"streams", streams},
                          {"exceptions", exceptions},
                          {"captures", captures},
                          {"sets and results", sets_and_results}};

int many(int (*f)(int), int n) {
  if (n == 0) return f(7);
  auto left = gw::spawn([f, n] { return many(f, n - 1); });
  const int right = many(f, n - 1);
  return left.join() + right;
}

struct Owning : testing::TestWithParam<kind> {};

TEST_P(Owning, LivesWhereverItsThreadIs) {
  for (const char* force : {"random", "parents", "children"})
    for (const std::uint32_t workers : {1u, 2u, 4u}) {
      gw::options o = support::schedule(workers, force, workers == 4 ? 5 : 0);
      o.heap = gw::choice::heap::shared;
      SCOPED_TRACE(support::describe(o));
      const auto f = GetParam().f;
      EXPECT_EQ(gw::run<int>(
                    [f] {
                      gw::on_each_worker([] {});  // all workers are up
                      return many(f, 4);
                    },
                    o),
                0);
      if (HasFailure()) return;
    }
}

gw::options shared_heap(std::uint32_t workers, const char* force) {
  gw::options o = support::schedule(workers, force);
  o.heap = gw::choice::heap::shared;
  return o;
}

TEST(Shared, IsTheDefault) {
  EXPECT_EQ(gw::run<int>([] { return many(vectors, 4); }, support::schedule(4, "random")), 0);
}

// With private heaps it stays: what it owns would be left behind.
TEST(Shared, AChildThatOwnsMayBeMadeToLeave) {
  const auto left = [](gw::choice::heap heap) {
    gw::options o = shared_heap(1, "children");
    o.heap = heap;
    EXPECT_EQ(gw::run<int>(
                  [] {
                    auto held = std::make_unique<int>(7);
                    return gw::spawn([held = std::move(held)] { return *held; }).join();
                  },
                  o),
              7);
    return gw::last_run_stats().at(0).suspends;
  };
  EXPECT_GT(left(gw::choice::heap::shared), left(gw::choice::heap::separate));
}

TEST(Shared, IsRefusedWhereItCannotBeHad) {
  gw::options o = shared_heap(2, "none");
  o.substrate = gw::choice::substrate::sim;
  EXPECT_THROW(gw::run<int>([] { return 0; }, o), std::invalid_argument);
}

// Workers of several processes wait for each other by the C++ library's means.
TEST(Shared, MutexesAndConditionVariablesBetweenWorkers) {
  struct counted {
    std::mutex m;
    std::condition_variable c;
    int n = 0;
  };
  EXPECT_EQ(gw::run<int>(
                [] {
                  const auto all = std::make_shared<counted>();
                  gw::on_each_worker([all = all.get()] {
                    for (int i = 0; i < 200; ++i) {
                      const std::lock_guard l(all->m);
                      const int n = all->n;
                      if (i % 16 == 0) usleep(20);
                      all->n = n + 1;
                    }
                    all->c.notify_all();
                    std::unique_lock l(all->m);
                    all->c.wait(l, [&] { return all->n == 800; });
                  });
                  return all->n;
                },
                shared_heap(4, "none")),
            800);
}

// OS threads that a thread starts, and who frees what they and it have made.
TEST(Shared, OsThreadsInThreads) {
  EXPECT_EQ(gw::run<int>(
                [] {
                  return many(
                      [](int n) -> int {
                        std::vector<std::string> made(20, long_text(n)), others;
                        std::thread([&made, &others, n] {
                          made.clear();
                          for (int i = 0; i < 20; ++i) others.push_back(long_text(n));
                          made.assign(20, "short");
                        }).join();
                        // what the OS thread made stays in its process: used here, and copied into the heap
                        made = std::vector<std::string>(others);
                        others = std::vector<std::string>();
                        elsewhere();
                        return made.size() != 20 || made.back() != long_text(n);
                      },
                      3);
                },
                shared_heap(2, "random")),
            0);
}

// What a forked child writes and frees of the heap does not reach the run.
TEST(Shared, AForkedChildHasACopy) {
  EXPECT_EQ(gw::run<int>(
                [] {
                  return many(
                      [](int n) -> int {
                        auto text = std::make_unique<std::string>(long_text(n));
                        std::vector<std::string> many(100, long_text(n));
                        const pid_t pid = fork();
                        if (pid == 0) {
                          const bool whole = *text == long_text(n) && many.back() == long_text(n);
                          *text += "written by the child, and longer than before";
                          many.clear();
                          many.resize(1000, "of the child's own");
                          text.reset();
                          const pid_t next = fork();  // a child of the child
                          if (next == 0) _exit(std::string(5000, 'x').size() == 5000 ? 0 : 1);
                          int its = -1;
                          while (waitpid(next, &its, 0) < 0 && errno == EINTR) {
                          }
                          _exit(whole && its == 0 ? 0 : 1);
                        }
                        int status = -1;
                        while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
                        }
                        elsewhere();
                        many.resize(200, long_text(n + 1));
                        return status != 0 || *text != long_text(n) || many.at(99) != long_text(n);
                      },
                      3);
                },
                shared_heap(2, "random")),
            0);
}

// What main allocates later is what it would be without runs.
TEST(Shared, ManyRunsLeaveNothing) {
  const auto mapped = [] {  // in pages: the first number
    std::ifstream in("/proc/self/statm");
    long pages = 0;
    in >> pages;
    return pages;
  };
  const long before = mapped();
  for (int i = 0; i < 20; ++i)
    EXPECT_EQ(gw::run<int>([] { return many(maps, 2); }, shared_heap(2, "random")), 0);
  EXPECT_LT(mapped(), before + 10'000);
}

INSTANTIATE_TEST_SUITE_P(Kinds, Owning, testing::ValuesIn(kinds), [](const auto& info) {
  std::string name = info.param.name;
  std::erase(name, ' ');
  return name;
});

}  // namespace

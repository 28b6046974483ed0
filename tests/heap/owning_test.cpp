// What owns memory, while its thread moves from process to process: a local of each kind is made, lives
// across forced steals, is changed wherever its thread is then, and is freed there. STRESS_REPEAT=n: n seeds.
// test: timeout=300 skip-asan skip-qemu
#include "support/child.hpp"
#include "heap/owning.hpp"

#include <godwit/godwit.hpp>

#include <gtest/gtest.h>

#include <any>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <cstdlib>
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
using owning::elsewhere, owning::long_text, owning::many, owning::shared_heap;

const bool several_hosts = [] {
  const char* hosts = std::getenv("GODWIT_HOSTS");
  return hosts != nullptr && std::string(hosts) == "ranks";
}();

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

// Nothing here has a codec.
struct shape {
  virtual ~shape() = default;
  virtual std::string name() const = 0;
};
struct square final : shape {
  explicit square(int n) : text(long_text(n)) {}
  std::string name() const override { return "square " + text; }
  std::string text;
};
struct person {
  std::string name;
  std::vector<std::shared_ptr<person>> friends;
};
int closures(int n) {
  const std::string fixed = long_text(n);  // copied when its closure moves, which may throw
  std::string text = long_text(n);
  std::vector<int> numbers(100, n);
  const auto count = std::make_shared<std::atomic<int>>(0);
  std::vector<gw::future<std::size_t>> all;
  for (int i = 0; i < 10; ++i)
    all.push_back(gw::spawn([=] {
      elsewhere();
      ++*count;
      return fixed.size() + text.size() + numbers.size();
    }));
  text.clear();
  const std::function<std::size_t()> f = [numbers, fixed, count] {
    elsewhere();
    ++*count;
    return numbers.size() + fixed.size();
  };
  all.push_back(gw::spawn(f));
  std::size_t sum = 0;
  for (auto& each : all) sum += each.join();
  return sum != 10 * (2 * fixed.size() + 100) + 100 + fixed.size() || *count != 11;
}
int results(int n) {
  std::vector<gw::future<std::unique_ptr<shape>>> shapes;
  for (int i = 0; i < 10; ++i)
    shapes.push_back(gw::spawn([i]() -> std::unique_ptr<shape> {
      elsewhere();
      return std::make_unique<square>(i);
    }));
  auto someone = gw::spawn(
      [](person p, const std::shared_ptr<person>& q) {
        elsewhere();
        p.friends.push_back(q);
        return p;
      },
      person{long_text(n), {}}, std::make_shared<person>(person{long_text(n + 1), {}}));
  gw::shared_future<std::shared_ptr<person>> known = gw::spawn([n] {
    return std::make_shared<person>(person{long_text(n), {}});
  });
  auto same = gw::spawn([known] { return known.get(); });
  auto dropped = gw::spawn([n] { return std::make_shared<std::string>(long_text(n)); });
  elsewhere();
  for (int i = 0; i < 10; ++i)
    if (shapes[static_cast<std::size_t>(i)].join()->name() != "square " + long_text(i)) return 1;
  const person p = someone.join();
  auto [f, m] = gw::invoke([n] { return std::function<int()>([n] { return n; }); },
                           [n] {
                             return std::map<int, std::shared_ptr<int>>{{n, std::make_shared<int>(n)}};
                           });
  return p.name != long_text(n) || p.friends.at(0)->name != long_text(n + 1) || same.join() != known.get() ||
         f() != n || *m.at(n) != n;
}
int thrown(int n) {
  auto f = gw::spawn([n]() -> int {
    elsewhere();
    auto g = gw::spawn([n] { throw own_error(n); });
    g.join();
    return 0;
  });
  elsewhere();
  try {
    return f.join() + 1;
  } catch (const own_error& e) {
    elsewhere();
    return e.what() != long_text(n) || *e.more != n;
  } catch (const gw::remote_error& e) {  // from another host, and not known
    return !several_hosts || e.type_name().find("own_error") == std::string::npos;
  }
}
int sent(int n) {
  const auto text = std::make_shared<std::string>(long_text(n));
  std::vector<gw::future<person>> all;
  for (std::uint32_t w = 0; w < gw::worker_count(); ++w)
    all.push_back(gw::spawn_at(
        gw::worker(w),
        [text](std::string more) {
          elsewhere();
          return person{*text + more, {}};
        },
        long_text(n + 1)));
  static_cast<void>(gw::migrate_to(gw::worker(gw::worker_count() - 1)));
  int wrong = 0;
  for (auto& f : all) wrong += f.join().name != *text + long_text(n + 1);
  return wrong + (text.use_count() != 1);
}

struct kind {
  const char* name;
  int (*f)(int);
  bool needs_codecs = false;  // to go to other hosts: then it is right, or the run ends and says so
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
                          {"sets and results", sets_and_results},
                          {"closures", closures},
                          {"results", results, true},
                          {"thrown", thrown},
                          {"sent", sent, true}};

struct Owning : testing::TestWithParam<kind> {};

TEST_P(Owning, LivesWhereverItsThreadIs) {
  const bool few = support::number_from_environment("STRESS_SHORT", 0) != 0;
  const std::uint64_t seeds = support::number_from_environment("STRESS_REPEAT", few ? 1 : 20);
  for (std::uint64_t i = 0; i < seeds; ++i)
    for (const char* force : {"random", "parents", "children"})
      for (const std::uint32_t workers : {1u, 2u, 4u, 8u, 16u}) {
        if (workers > 4 && (few || i % 20 != 0)) continue;  // more than the CPUs: slow
        gw::options o = support::schedule(workers, force, workers == 4 ? 5 : 0, support::base_seed() + i);
        o.heap = gw::choice::heap::shared;
        SCOPED_TRACE(support::describe(o));
        const auto f = GetParam().f;
        try {
          EXPECT_EQ(gw::run<int>(
                        [f] {
                          gw::on_each_worker([] {});  // all workers are up
                          return many(f, 4);
                        },
                        o),
                    0);
        } catch (const gw::run_error& e) {
          if (!GetParam().needs_codecs ||
              std::string(e.what()).find("has to leave its host as bytes") == std::string::npos)
            throw;
        }
        if (HasFailure()) return;
      }
}

/// Owning closures under one policy, in which threads are spawned by P.
template <class P>
int closures_under_policy() {
  int wrong = 0;
  for (int n = 0; n < 200; ++n) {
    const std::string fixed = long_text(n);
    const auto count = std::make_shared<std::atomic<int>>(0);
    std::vector<gw::future<person>> all;
    for (int i = 0; i < 5; ++i)
      all.push_back(P::spawn(
          [count, fixed](person q, int) {
            ++*count;
            q.name += fixed;
            return q;
          },
          person{long_text(i), {}}, i));
    for (int i = 0; i < 5; ++i) wrong += all[static_cast<std::size_t>(i)].join().name != long_text(i) + fixed;
    wrong += *count != 5 || count.use_count() != 1;
  }
  return wrong;
}

// Under child stealing a closure waits in the deque for who begins it.
TEST(Shared, ClosuresUnderEveryPolicy) {
  using policy = gw::choice::policy;
  for (const policy each :
       {policy::greedy, policy::stalling, policy::crude, policy::iso, policy::child_full, policy::child_rtc})
    for (const std::uint32_t workers : {1u, 2u, 4u}) {
      gw::options o = shared_heap(workers, "none");
      o.policy = each;
      SCOPED_TRACE(std::string(name_of(each)) + ", " + support::describe(o));
      try {
        gw::with_policy(each, [&](auto p) {
          EXPECT_EQ(gw::run<int>([] { return closures_under_policy<decltype(p)>(); }, o), 0);
        });
      } catch (const std::invalid_argument& e) {  // under MPI
        if (std::string(e.what()).find("works on one host only") == std::string::npos) throw;
      }
    }
}

// What has no codec is named when it would have to leave a heap that others do not have.
TEST(Separate, AResultWithoutACodecIsNamed) {
  gw::options o = support::schedule(2, "parents");
  o.heap = gw::choice::heap::separate;
  const support::outcome r = support::run_child([&] {
    return gw::run(o, [] { static_cast<void>(gw::spawn([] { return person{long_text(1), {}}; }).join()); });
  });
  EXPECT_EQ(r.status, 70) << support::show(r);
  EXPECT_TRUE(r.err_has("a value of type (anonymous namespace)::person has to leave its worker as bytes"))
      << support::show(r);
  EXPECT_EQ(r.err_lines(), 1) << support::show(r);
  EXPECT_EQ(r.left_behind, 0);
}

// Under child stealing a closure waits elsewhere than where it was made: as bytes, where heaps are apart.
TEST(Separate, AClosureThatNamesItselfIsNamed) {
  for (const auto each : {gw::choice::policy::child_full, gw::choice::policy::child_rtc}) {
    gw::options o = support::schedule(1);
    o.heap = gw::choice::heap::separate;
    o.policy = each;
    const support::outcome r = support::run_child([&] {
      return gw::with_policy(each, [&](auto p) {
        using P = decltype(p);
        return gw::run(o, [] {
          gw::shared_future<int> one = P::spawn([] { return 1; });
          auto moved = P::spawn([f = std::move(one)] { return f.valid(); });  // that may
          if (!moved.join()) return;
          auto named = P::spawn([s = std::string("short")] { return s.size(); });
          static_cast<void>(named.join());
        });
      });
    });
    EXPECT_EQ(r.status, 70) << support::show(r);
    EXPECT_TRUE(r.err_has("has to leave its worker as bytes")) << support::show(r);
    EXPECT_EQ(r.err_lines(), 1) << support::show(r);
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, Owning, testing::ValuesIn(kinds), [](const auto& info) {
  std::string name = info.param.name;
  std::erase(name, ' ');
  return name;
});

}  // namespace

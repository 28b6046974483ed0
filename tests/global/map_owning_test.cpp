// Maps whose values own something: each is destroyed once, when it should be and where it lies, and nothing
// is left. Runs under MPI as well (tests/mpi).
#include "witness.hpp"

#include "support/child.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <utility>

using namespace container_runs;

namespace {

using counter = gw::global_ptr<std::uint64_t>;
using owning_map = gw::global_map<int, witness>;
using owning_view = gw::global_map_view<int, witness>;
static_assert(std::is_trivially_copyable_v<owning_view> && gw::coded<owning_map>);
static_assert(gw::detail::owning_element<owning_map>);

/// All keys in two buckets, which are continued by many.
struct two_buckets {
  std::uint64_t operator()(int key) const noexcept { return static_cast<std::uint64_t>(key & 1) << 63; }
};
using crowded_map = gw::global_map<int, witness, two_buckets>;

template <class M>
bool has(const M& m, const typename M::key_type& key, int id, std::uint64_t more = 0) {
  bool right = false;
  return m.find(key, [&](const witness& w) { right = w.is(id, more); }) && right;
}

/// Calls f(i) for all of [begin, end), each in a thread or so.
template <class F>
void parallel(int begin, int end, const F& f) {
  if (end - begin <= 8) {
    for (int i = begin; i < end; ++i) f(i);
    return;
  }
  const int middle = begin + (end - begin) / 2;
  gw::invoke([=] { parallel(begin, middle, f); }, [=] { parallel(middle, end, f); });
}

/// Runs @p test(counts), which gives back how many values it made, as in_all_runs; all of them are destroyed
/// at its end, and all memory is free again.
template <class F>
void every_value_once(const F& test) {
  in_all_runs([test] {
    const std::uint64_t before = used_bytes();
    {
      witness_counts counts;
      const std::uint64_t made = test(counts);
      WANT(counts.all() == made);
    }
    WANT(used_bytes() <= before + slack_bytes());
  });
}

std::uint64_t each_operation_destroys_what_it_should(witness_counts& counts) {
  const counter c = counts.data();
  std::unordered_map<int, std::pair<int, std::uint64_t>> right;  // id, elements added
  std::uint64_t made = 0, gone = 0;
  crowded_map m(4);
  std::mt19937 random(3);
  for (int i = 1; i <= 1000; ++i) {
    const int k = static_cast<int>(random() % 40);
    const auto it = right.find(k);
    const bool there = it != right.end();
    switch (random() % 7) {
      case 0: {
        witness w(i, c);
        WANT(m.insert(k, std::move(w)) == !there);
        WANT(there ? w.is(i) : w.empty());
        ++made;
        gone += there ? 1 : 0;  // with w
        if (!there) right[k] = {i, 0};
        break;
      }
      case 1: {
        witness w(i, c);
        WANT(m.insert_or_assign(k, std::move(w)) == !there);
        ++made;
        gone += there ? 1 : 0;
        WANT(w.empty() && counts.all() == gone);
        right[k] = {i, 0};
        break;
      }
      case 2:
        WANT(m.erase(k) == there);
        gone += there ? 1 : 0;
        right.erase(k);
        break;
      case 3: {
        const std::optional<witness> w = m.take(k);
        WANT(w.has_value() == there && (!there || w->is(it->second.first, it->second.second)));
        WANT(counts.all() == gone);
        gone += there ? 1 : 0;
        right.erase(k);
        break;
      }
      case 4: {
        const auto one_more = [](witness& w) { w.held.push_back(w.id + static_cast<int>(w.held.size())); };
        WANT(m.update(k, one_more) == there);
        if (there) ++it->second.second;
        break;
      }
      case 5: {
        witness w(i, c), old;
        WANT(m.insert_or_update(k, std::move(w), [&](witness& x) { std::swap(x, old); }) == !there);
        WANT(there ? w.is(i) && old.is(it->second.first, it->second.second) : w.empty() && old.empty());
        if (there) m.update(k, [&](witness& x) { std::swap(x, old); });
        if (!there) right[k] = {i, 0};
        ++made;
        gone += there ? 1 : 0;
        break;
      }
      case 6:
        WANT(m.contains(k) == there);
        WANT(there ? has(m, k, it->second.first, it->second.second) : !has(m, k, 0));
        break;
    }
    WANT(counts.all() == gone && m.size() == right.size());
  }
  m.check_invariants();
  for (const auto& [k, v] : right) WANT(has(m, k, v.first, v.second));
  m.reset();
  WANT(counts.all() == made);
  return made;
}
TEST(MapOwning, EachOperationDestroysWhatItShould) {
  every_value_once(each_operation_destroys_what_it_should);
}

std::uint64_t reserve_and_rehash_move_values_by_their_bytes(witness_counts& counts) {
  owning_map m(5);
  parallel(0, 600, [v = m.view(), c = counts.data()](int i) { WANT(v.insert(i, witness(i, c))); });
  m.reserve(2000);
  m.check_invariants();
  m.rehash(0);
  m.check_invariants();
  WANT(counts.all() == 0 && m.size() == 600);
  parallel(0, 600, [v = m.view()](int i) { WANT(has(v, i, i)); });
  m.clear();
  WANT(m.empty() && counts.all() == 600 && !m.contains(5));
  WANT(m.insert(5, witness(7, counts.data())) && has(m, 5, 7));
  m.check_invariants();
  m.clear();
  m.clear();
  return std::uint64_t{601};
}
TEST(MapOwning, ReserveAndRehashMoveValuesByTheirBytes) {
  every_value_once(reserve_and_rehash_move_values_by_their_bytes);
}

std::uint64_t clear_in_a_cancelled_scope(witness_counts& counts) {
  owning_map m(100);
  for (int i = 0; i < 600; ++i) m.insert(i, witness(i, counts.data()));
  gw::cancel_scope scope;
  scope.cancel();
  m.clear();
  WANT(counts.all() == 600);
  const gw::cancel_shield look;
  WANT(m.empty());
  return std::uint64_t{600};
}
TEST(MapOwning, IsClearedInACancelledScopeToo) { every_value_once(clear_in_a_cancelled_scope); }

std::uint64_t for_each_looks_at_values_and_may_spawn(witness_counts& counts) {
  owning_map m(100);
  for (int i = 0; i < 300; ++i) m.insert(i, witness(i, counts.data()));
  gw::global_array<std::uint64_t> seen(300, gw::distribution::blocked(), 0);
  m.for_each([s = seen.data()](int k, const witness& w) {
    const auto elements = w.held.span();
    const int last = gw::spawn([=] { return elements.empty() ? -1 : elements[elements.size() - 1]; }).join();
    WANT(w.is(k) && last == (k % 5 == 0 ? -1 : k + k % 5 - 1));
    gw::atomic_fetch_add(s + k, std::uint64_t{1});
  });
  for (std::uint64_t i = 0; i < 300; ++i) WANT(seen[i] == 1);
  WANT(counts.all() == 0);
  return std::uint64_t{300};
}
TEST(MapOwning, ForEachLooksAtValuesAndMaySpawn) { every_value_once(for_each_looks_at_values_and_may_spawn); }

/// Many threads at the same few keys: what is taken out is one thread's.
TEST(MapOwning, ManyThreadsPutAndTake) {
  in_all_runs([] {
    const std::uint64_t before = used_bytes();
    {
      witness_counts counts;
      gw::global_array<std::uint64_t> made(1, gw::distribution::local(), 0);
      crowded_map m(4);
      parallel(0, 1500, [v = m.view(), c = counts.data(), n = made.data()](int i) {
        const int key = static_cast<int>(gw::detail::mix_bits(static_cast<std::uint64_t>(i)) % 12);
        const int id = key + 12 * i;
        const auto here = [&] {
          gw::atomic_fetch_add(n, std::uint64_t{1});
          return witness(id, c);
        };
        switch (i % 6) {
          case 0:
          case 1:
            v.insert(key, here());
            break;
          case 2:
            v.insert_or_assign(key, here());
            break;
          case 3:
            if (const auto w = v.take(key)) WANT(w->id % 12 == key && w->counts == c);
            break;
          case 4:
            v.find(key, [&](const witness& w) { WANT(w.is(w.id)); });
            break;
          case 5:
            v.update(key, [&](witness& w) { w = here(); });
            break;
        }
      });
      m.check_invariants();
      const std::uint64_t left = m.size();
      WANT(left <= 12 && counts.all() + left == made[0]);
      m.reset();
      WANT(counts.all() == made[0]);
    }
    WANT(used_bytes() <= before + slack_bytes());
  });
}

std::uint64_t an_exception_leaves_each_value_with_one_owner(witness_counts& counts) {
  const counter c = counts.data();
  owning_map m(10);
  m.insert(3, witness(3, c));
  const auto grow_and_throw = [](witness& w) {
    for (int i = 0; i < 100; ++i) w.held.push_back(w.id + static_cast<int>(w.held.size()));
    throw std::runtime_error("no");
  };
  WANT_THROW(m.update(3, grow_and_throw), std::runtime_error, "no");
  WANT(has(m, 3, 3, 100));  // as it was left: its old memory is freed
  witness w(4, c);
  WANT_THROW(m.insert_or_update(3, std::move(w), grow_and_throw), std::runtime_error, "no");
  WANT(w.is(4) && has(m, 3, 3, 200));
  const auto look_and_throw = [](const witness& x) {
    if (x.id == 3) throw std::runtime_error("seen");
  };
  WANT_THROW(m.find(3, look_and_throw), std::runtime_error, "seen");
  WANT_THROW(m.find(3, [&](const witness&) { m.contains(3); }), std::logic_error, "must not use a map");
  WANT_THROW(m.reserve(std::uint64_t{1} << 50), gw::global_bad_alloc, "godwit");
  WANT(counts.all() == 0 && has(m, 3, 3, 200) && m.insert(4, std::move(w)) && w.empty());
  m.check_invariants();
  try {
    owning_map n(300);
    for (int i = 0; i < 100; ++i) n.insert(i, witness(i, c));
    throw std::runtime_error("on the way");
  } catch (const std::runtime_error&) {
    WANT(counts.all() == 100);
  }
  return std::uint64_t{102};
}
TEST(MapOwning, AnExceptionLeavesEachValueWithOneOwner) {
  every_value_once(an_exception_leaves_each_value_with_one_owner);
}

/// A key that nobody can hash while its word is not 0.
struct refusing {
  int id;
  counter refuse;
  bool operator==(const refusing& o) const { return id == o.id; }
};
struct refusing_hash {
  std::uint64_t operator()(const refusing& k) const {
    if (gw::atomic_load(k.refuse) != 0 && k.id == 77) throw std::runtime_error("not this one");
    return gw::detail::mix_bits(static_cast<std::uint64_t>(k.id));
  }
};

std::uint64_t a_failed_rehash_changes_nothing(witness_counts& counts) {
  gw::global_array<std::uint64_t> refuse(1, gw::distribution::local(), 0);
  gw::global_map<refusing, witness, refusing_hash> m(10);
  const counter r = refuse.data();
  for (int i = 0; i < 200; ++i) m.insert({i, r}, witness(i, counts.data()));
  gw::atomic_store(r, 1);
  WANT_THROW(m.rehash(1000), std::runtime_error, "not this one");
  gw::atomic_store(r, 0);
  WANT(counts.all() == 0 && m.size() == 200);
  m.check_invariants();
  for (int i = 0; i < 200; ++i) WANT(has(m, {i, r}, i));
  m.rehash(1000);
  m.check_invariants();
  return std::uint64_t{200};
}
TEST(MapOwning, AFailedRehashChangesNothing) { every_value_once(a_failed_rehash_changes_nothing); }

template <class M>
void has_all(const M& m) {
  for (int i = 0; i < 60; ++i) WANT(has(m, i, i));
}

std::uint64_t the_owner_moves_and_travels(witness_counts& counts) {
  owning_map m(20);
  for (int i = 0; i < 60; ++i) m.insert(i, witness(i, counts.data()));
  m = gw::spawn([m = std::move(m)]() mutable {
        has_all(m);
        m.reserve(500);
        return std::move(m);
      }).join();
  has_all(m);
  owning_map n = gw::spawn([](owning_map x) { return x; }, std::move(m)).join();
  WANT(counts.all() == 0);
  has_all(n);
  m = owning_map(10);
  m.insert(1, witness(1, counts.data()));
  m = std::move(n);
  WANT(counts.all() == 1);
  has_all(m);
  // A value alone, as a result and as an argument.
  auto one = gw::spawn([v = m.view()] { return v.take(9)->held.size(); }).join();
  WANT(one == 4 && m.size() == 59 && counts.all() == 2);
  return std::uint64_t{61};
}
TEST(MapOwning, TheOwnerMovesAndTravels) { every_value_once(the_owner_moves_and_travels); }

/// Values that have buckets at home at each worker, or moved to one, are destroyed there.
TEST(MapOwning, ManyAreDestroyedWhereTheyLie) {
  in_all_runs([] {
    const std::uint32_t workers = gw::worker_count();
    witness_counts counts;
    std::uint64_t expected[4] = {};
    const auto fill = [&](owning_map& m) {
      for (int i = 0; i < 60; ++i) {
        m.insert(i, witness(i, counts.data()));
        ++expected[m.owner_of(i)];
      }
    };
    const auto as_expected = [&] {
      for (std::uint32_t w = 0; w < workers; ++w) WANT(counts.of(w) == expected[w]);
    };
    owning_map m(3000, gw::distribution::cyclic(4096));
    fill(m);
    m.clear();
    as_expected();
    WANT(expected[0] != 60 || workers == 1);
    owning_map n(3000, gw::distribution::cyclic(4096).movable(4096));
    n.move(0, n.bucket_count(), workers - 1).join();
    fill(n);
    n.reset();
    WANT(expected[workers - 1] >= 60);
    as_expected();
  });
}

/// Buckets that continue others: by who made them.
std::uint64_t further_buckets_are_destroyed_by_their_workers(witness_counts& counts) {
  const std::uint32_t workers = gw::worker_count();
  crowded_map m(100);
  for (std::uint32_t turn = 0; turn < workers; ++turn)
    gw::on_each_worker([v = m.view(), c = counts.data(), turn] {
      const int first = 100 * static_cast<int>(turn);
      for (int i = first; gw::worker_id() == turn && i < first + 100; ++i) v.insert(i, witness(i, c));
    });
  WANT(m.size() == 100 * workers && counts.all() == 0);
  m.clear();
  for (std::uint32_t w = 0; w < workers; ++w) WANT(counts.of(w) >= 90);
  return std::uint64_t{100} * workers;
}
TEST(MapOwning, FurtherBucketsAreDestroyedByTheirWorkers) {
  every_value_once(further_buckets_are_destroyed_by_their_workers);
}

/// Destroying a value uses a map, and its own one: no lock is held then, by erase, insert_or_assign, clear.
struct signs_off {
  signs_off() noexcept = default;
  signs_off(int k, const void* view, gw::global_map_view<int, int> b) noexcept : key(k), book(b) {
    std::memcpy(own, view, sizeof own);
  }
  signs_off(signs_off&& o) noexcept : key(std::exchange(o.key, -1)), book(o.book) {
    std::memcpy(own, o.own, sizeof own);
  }
  ~signs_off();
  int key = -1;
  gw::global_map_view<int, int> book;
  std::byte own[sizeof(gw::global_map_view<int, int>)] = {};  ///< a view of what it lies in
};

}  // namespace

template <>
inline constexpr bool godwit::relocatable<signs_off> = true;

namespace {

using signing_view = gw::global_map_view<int, signs_off>;
static_assert(sizeof(signing_view) == sizeof(signs_off::own));

signs_off::~signs_off() {
  if (key < 0) return;
  signing_view v;
  std::memcpy(static_cast<void*>(&v), own, sizeof own);
  static_cast<void>(v.find(key, [](const signs_off&) {}));  // waits for ever if the bucket is locked
  book.fetch_add(1, 1);
}

TEST(MapOwning, NothingIsLockedWhileValuesAreDestroyed) {
  in_all_runs([] {
    gw::global_map<int, int> book(10);
    gw::global_map<int, signs_off> m(100);
    const signing_view v = m.view();
    for (int i = 0; i < 50; ++i) m.insert(i, signs_off(i, &v, book.view()));
    WANT(!book.contains(1));
    m.erase(1);
    WANT(book.find(1) == 1);
    m.insert_or_assign(2, signs_off(2, &v, book.view()));
    WANT(book.find(1) == 2);
    m.insert(2, signs_off(2, &v, book.view()));
    WANT(book.find(1) == 3);
    m.clear();
    WANT(book.find(1) == 3 + 49);
  });
}

/// Under the lock a value may allocate and free, here and everywhere, and be destroyed.
TEST(MapOwning, ValuesGrowAndShrinkUnderTheLock) {
  in_all_runs([] {
    const std::uint64_t before = used_bytes();
    {
      using inner = gw::global_vector<gw::global_vector<int>>;
      gw::global_map<int, inner> m(4);
      for (int k = 0; k < 4; ++k) m.insert(k, inner(gw::distribution::blocked()));
      parallel(0, 100, [v = m.view()](int i) {
        v.update(i % 4, [i](inner& x) {
          gw::global_vector<int> row(gw::distribution::cyclic(4096));
          for (int n = 0; n < i; ++n) row.push_back(i);
          x.push_back(std::move(row));
          if (x.size() == 20) x = inner(gw::distribution::blocked());  // more than a few are destroyed
        });
      });
      for (int k = 0; k < 4; ++k) m.find(k, [](const inner& x) { WANT(x.size() == 5); });
      m.check_invariants();
    }
    WANT(used_bytes() <= before + slack_bytes());
  });
}

TEST(MapOwning, ContainersOfContainers) {
  in_all_runs([] {
    const std::uint64_t before = used_bytes();
    {
      using names = gw::global_map<int, gw::global_bytes>;
      gw::global_map<int, names> m(20);
      for (int k = 0; k < 30; ++k) {
        names n(10);
        for (int i = 0; i < k; ++i) n.insert(i, gw::global_bytes("name " + std::to_string(k + i)));
        m.insert(k, std::move(n));
      }
      gw::global_map_view<int, gw::global_bytes> inside;
      WANT(m.find(20, [&](const names& n) { inside = n.view(); }));
      WANT(inside.size() == 20);
      WANT(inside.find(5, [](const gw::global_bytes& b) { WANT(b == "name 25"); }));
      WANT(inside.take(5)->str() == "name 25" && inside.size() == 19);
      gw::global_vector<names> list(40, gw::distribution::cyclic(4096), [](std::uint64_t i) {
        names n(4);
        n.insert(static_cast<int>(i), gw::global_bytes("x"));
        return n;
      });
      list.push_back(*m.take(20));
      gw::global_array<names> a = std::move(list).into_array();
      const names last = gw::take(&a[40]);
      WANT(last.size() == 19);
    }
    WANT(used_bytes() <= before + slack_bytes());
  });
}

TEST(MapOwning, FreesAllItHad) {
  for (const auto test :
       {each_operation_destroys_what_it_should, reserve_and_rehash_move_values_by_their_bytes,
        for_each_looks_at_values_and_may_spawn, an_exception_leaves_each_value_with_one_owner,
        a_failed_rehash_changes_nothing, the_owner_moves_and_travels,
        further_buckets_are_destroyed_by_their_workers}) {
    const auto o = support::run_child([test] {
      return run_checked([test] {
        witness_counts counts;
        const std::uint64_t made = test(counts);
        WANT(counts.all() == made);
      });
    });
    EXPECT_EQ(o.status, 0) << support::show(o);
    EXPECT_FALSE(o.err_has("not freed")) << support::show(o);
  }
}

}  // namespace

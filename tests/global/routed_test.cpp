// Small accesses to movable memory by datagram (docs/switch.md, docs/protocols/switch.md): whatever is lost,
// doubled or delayed, and while the parts move, each is carried out once; and all is counted exactly.
// Runs under MPI as well (tests/mpi; tests/mpi/switch_test.sh with a switch in the kernel), where all of it
// happens.
#include <gtest/gtest.h>
#include <godwit/godwit.hpp>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string>

namespace gw = godwit;

namespace {

using gw::choice::directory;

constexpr std::uint64_t page = 4096, words_of_page = page / 8;
constexpr std::array<directory, 2> kinds = {directory::datagrams, directory::relay};

gw::options of(directory d, std::uint32_t faults = 0) {
  gw::options o;
  o.directory = d;
  o.switch_faults = d == directory::relay ? faults : 0;
  return o;
}

template <class F>
std::string in_a_run(const gw::options& o, F f) {
  return gw::run<std::string>([f] { return std::string(f()); }, o);
}

/// Threads that add to shared words, and write and read such as only they use, while the parts move.
std::string accesses_under_moves(std::uint64_t each) {
  constexpr std::uint64_t threads = 4, parts = 6, row = 16;  // 1 KiB is a put's most: 128 words
  const auto p =
      gw::allocate<std::uint64_t>(parts * words_of_page, gw::distribution::cyclic(page).movable(page));
  for (std::uint64_t i = 0; i < parts * words_of_page; ++i) gw::put(p + i, 0);
  std::array<gw::future<std::uint64_t>, threads> all;
  for (std::uint64_t t = 0; t < threads; ++t)
    all[t] = gw::spawn([=] {
      std::uint64_t wrong = 0;
      for (std::uint64_t i = 0; i < each; ++i) {
        const auto at = p + (t * each + i) * 5 % parts * words_of_page;
        gw::atomic_fetch_add(at, std::uint64_t{1}, std::memory_order_relaxed);
        const auto own = at + (1 + t);
        const std::uint64_t before = gw::get(own);
        gw::put(own, before + 3);
        wrong += gw::get(own) != before + 3;
        std::array<std::uint64_t, row> text{}, back{};
        text.fill(t * each + i + 1);
        gw::put(at + (64 + t * row), text.data(), text.size());
        gw::get(at + (64 + t * row), back.data(), back.size());
        wrong += text != back;
        if (i % 8 == 0) gw::move(at, static_cast<std::uint32_t>((i / 8 + t) % gw::worker_count())).join();
      }
      return wrong;
    });
  std::uint64_t wrong = 0, sum = 0, own = 0;
  for (auto& f : all) wrong += f.join();
  for (std::uint64_t b = 0; b < parts; ++b) {
    sum += gw::get(p + b * words_of_page);
    for (std::uint64_t t = 1; t <= threads; ++t) own += gw::get(p + (b * words_of_page + t));
  }
  gw::deallocate(p, parts * words_of_page);
  if (wrong == 0 && sum == threads * each && own == 3 * threads * each) return "";
  return std::to_string(wrong) + " wrong, sums " + std::to_string(sum) + ", " + std::to_string(own);
}

TEST(Routed, EachAccessIsCarriedOutOnceUnderMoves) {
  for (const directory d : kinds)
    EXPECT_EQ(in_a_run(of(d), [] { return accesses_under_moves(200); }), "") << static_cast<int>(d);
}

TEST(Routed, EachAccessIsCarriedOutOnceWhateverIsLost) {
  for (const std::uint32_t faults : {2u, 10u, 20u})
    EXPECT_EQ(in_a_run(of(directory::relay, faults), [] { return accesses_under_moves(60); }), "") << faults;
}

TEST(Routed, AndWhereAccessesMoveWhatTheyUse) {
  for (const std::uint32_t faults : {0u, 10u}) {
    gw::options o = of(directory::relay, faults);
    o.force_move = gw::choice::force_move::random;
    EXPECT_EQ(in_a_run(o, [] { return accesses_under_moves(60); }), "") << faults;
  }
}

/// Every kind of atomic, and values before, at a part that the last worker has; with what a local word says.
std::string atomics_and_owners() {
  using words = gw::global_ptr<std::uint64_t>;
  const std::uint32_t last = gw::worker_count() - 1;
  const words p = gw::allocate<std::uint64_t>(words_of_page, gw::distribution::at(last).movable(page));
  const words q = gw::allocate<std::uint64_t>(1, gw::distribution::at(gw::worker_id()));
  gw::put(p, 77);
  gw::put(q, 77);
  std::string wrong;
  for (std::uint64_t i = 0; i < 60; ++i) {
    const auto both = [&](auto f, const char* what) {
      if (f(p) != f(q)) wrong += std::string(what) + " ";
    };
    both([&](words w) { return gw::atomic_fetch_add(w, i); }, "add");
    both([&](words w) { return gw::atomic_exchange(w, i * 3); }, "exchange");
    both([&](words w) { return gw::atomic_fetch_or(w, i << 7); }, "or");
    both(
        [&](words w) {
          std::uint64_t expected = i % 2 == 0 ? gw::atomic_load(w) : 1;
          return gw::atomic_compare_exchange(w, expected, i + 9) + 2 * expected;
        },
        "compare_exchange");
    both([&](words w) { return gw::atomic_load(w); }, "load");
    if (i % 10 == 5) gw::move(p, static_cast<std::uint32_t>(i / 10 % gw::worker_count())).join();
    if (i % 10 == 5 && gw::owner_of(p) != i / 10 % gw::worker_count()) wrong += "owner ";
  }
  gw::deallocate(p, words_of_page);
  gw::deallocate(q, 1);
  return wrong;
}

TEST(Routed, AtomicsAndOwners) {
  for (const directory d : kinds)
    for (const std::uint32_t faults : {0u, 15u})
      EXPECT_EQ(in_a_run(of(d, faults), [] { return atomics_and_owners(); }), "") << static_cast<int>(d);
}

// The addresses of parts that are gone are those of others: what was sent to them reaches nobody, and rules
// of them lead nobody astray for longer than one hop.
TEST(Routed, OfMemoryThatIsUsedAgain) {
  const auto use_again = [] {
    std::uint64_t wrong = 0;
    for (std::uint64_t round = 0; round < 30; ++round) {
      const auto p =
          gw::allocate<std::uint64_t>(4 * words_of_page, gw::distribution::cyclic(page).movable(page));
      for (std::uint64_t i = 0; i < 4; ++i) wrong += gw::get(p + i * words_of_page) != 0 && round == 0;
      for (std::uint64_t i = 0; i < 4; ++i) gw::put(p + i * words_of_page, round * 10 + i);
      gw::move(p, 4 * words_of_page, static_cast<std::uint32_t>(round % gw::worker_count())).join();
      for (std::uint64_t i = 0; i < 4; ++i) wrong += gw::get(p + i * words_of_page) != round * 10 + i;
      for (std::uint64_t i = 0; i < 4; ++i) gw::atomic_fetch_add(p + i * words_of_page, 1);
      for (std::uint64_t i = 0; i < 4; ++i) wrong += gw::get(p + i * words_of_page) != round * 10 + i + 1;
      gw::deallocate(p, 4 * words_of_page);
    }
    return wrong == 0 ? "" : std::to_string(wrong) + " wrong";
  };
  for (const std::uint32_t faults : {0u, 20u})
    EXPECT_EQ(in_a_run(of(directory::relay, faults), use_again), "") << faults;
}

/// A host each: worker 0 asks, 1 is the home of the parts, 2 is given them. Empty, or why not.
std::string access_each(int how, bool known) {
  constexpr std::uint64_t parts = 12;
  if (gw::worker_count() < 3 || gw::worker_count() > 8) return "skip";
  for (std::uint32_t w = 0; w < 3; ++w) {
    const auto probe = gw::allocate<std::uint64_t>(1, gw::distribution::at(w));
    const bool near = gw::try_local(probe, 1) != nullptr;
    gw::deallocate(probe, 1);
    if (near != (w == gw::worker_id())) return "skip";
  }
  const auto p = gw::allocate<std::uint64_t>(parts * words_of_page, gw::distribution::at(1).movable(page));
  gw::move(p, parts * words_of_page, 2).join();
  const auto each = [=](int kind) {
    gw::on_each_worker([=] {
      if (gw::worker_id() != 0) return;
      for (std::uint64_t i = 0; i < parts; ++i) {
        const auto at = p + i * words_of_page;
        if (kind == 0) gw::put(at, i);
        if (kind == 1) static_cast<void>(gw::get(at));
        if (kind == 2) gw::atomic_fetch_add(at, i, std::memory_order_relaxed);
        if (kind == 3) static_cast<void>(gw::owner_of(at));
      }
    });
  };
  if (known) each(0);
  each(how);
  gw::deallocate(p, parts * words_of_page);
  return "";
}

// With a switch two messages whatever moved, and nobody looks anything up; with datagrams as by message.
TEST(Routed, LookUpsAndMessages) {
  constexpr std::uint64_t n = 12;
  const char* const said_outside = std::getenv("GODWIT_DIRECTORY");  // beats what is said here
  const bool has_switch =
      said_outside != nullptr && (std::string(said_outside) == "xdp" || std::string(said_outside) == "ovs");
  for (const directory d : kinds)
    for (const bool known : {false, true})
      for (int how = 0; how < 4; ++how) {
        const std::string said = in_a_run(of(d), [=] { return access_each(how, known); });
        if (said == "skip") GTEST_SKIP() << "needs three hosts of a worker each";
        EXPECT_EQ(said, "");
        if (!gw::is_first_process()) continue;
        const gw::worker_stats& w = gw::last_run_stats().front();
        const std::uint64_t first = known ? n : 0, all = first + n;
        EXPECT_EQ(w.far_puts, first + (how == 0 ? n : 0));
        EXPECT_EQ(w.far_atomics, how == 2 ? n : 0);
        if (d == directory::relay || has_switch) {
          EXPECT_EQ(w.translations, 0u);
          EXPECT_EQ(w.forwards, 0u);
        } else {
          EXPECT_EQ(w.translations, all);
          EXPECT_EQ(w.translation_stale, n);
          EXPECT_EQ(w.translation_hits, all - n);
          EXPECT_EQ(w.forwards, n);
        }
      }
}

bool under_mpi() {
  return std::getenv("OMPI_COMM_WORLD_SIZE") != nullptr || std::getenv("PMI_SIZE") != nullptr;
}

TEST(Routed, OneCompanionOfAHostHasTheChannel) {
  if (!under_mpi()) GTEST_SKIP() << "needs ranks";
  gw::options o = of(directory::datagrams);
  o.companions = 2;
  EXPECT_THROW(gw::run<void>([] {}, o), std::invalid_argument);
}

TEST(Routed, ASwitchHasAnAddress) {
  if (!under_mpi() || std::getenv("GODWIT_SWITCH_AT") != nullptr)
    GTEST_SKIP() << "needs ranks, and no switch";
  gw::options o = of(directory::xdp);
  for (const char* at : {"", "nowhere", "10.0.0.1:0"}) {
    o.switch_at = at;
    EXPECT_THROW(gw::run<void>([] {}, o), std::invalid_argument) << at;
  }
}

}  // namespace

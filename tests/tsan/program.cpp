// Built with -fsanitize=thread, on a library that is not: `right` has no race and must not be reported on any
// schedule, nor have `spare` (with a spare worker), `records` (which are used again and again), `child_full`
// and `child_rtc` (for those policies). `race` has one, between a child and its parent. See extras.cmake.
#include <godwit/godwit.hpp>
#include <godwit/io.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <mutex>
#include <numeric>
#include <shared_mutex>
#include <stdexcept>
#include <string>
#include <string_view>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>
#include <vector>

namespace gw = godwit;

namespace {

void need(bool right, const char* what) {
  if (right) return;
  std::fprintf(stderr, "wrong: %s\n", what);
  std::abort();
}

int written_by_all = 0;

long fib(int n) {
  if (n < 2) return n;
  auto x = gw::spawn([=] { return fib(n - 1); });
  const long y = fib(n - 2);
  return x.join() + y;
}

/// Join records are used again at once, by other threads and other workers than those that read them last.
void records_again() {
  std::vector<gw::thread> threads;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([] {
      for (int round = 0; round < 500; ++round)
        need(fib(12) == 144, "results in records that are used again");
    });
  for (gw::thread& t : threads) t.join();
}

/// Children write into their parents' memory; results own memory.
std::vector<std::string> words(int depth, int* counts) {
  ++counts[0];
  if (depth == 0) return {"leaf"};
  std::vector<int> below(2 * 64);
  auto left = gw::spawn([&] { return words(depth - 1, below.data()); });
  std::vector<std::string> all = words(depth - 1, below.data() + 64);
  for (std::string& s : left.join()) all.push_back(std::move(s) + "+");
  below[0] += below[64];
  return all;
}

struct large {
  long values[100];
};
large filled(int n) {
  large l;
  std::iota(std::begin(l.values), std::end(l.values), n);
  return l;
}

void thrown_across_spawns() {
  auto f = gw::spawn([]() -> long {
    auto g = gw::spawn([]() -> long { throw std::runtime_error("inner"); });
    gw::yield();
    return g.join();
  });
  gw::yield();
  try {
    f.join();
    need(false, "an exception comes out of its join");
  } catch (const std::runtime_error& e) {
    need(std::string_view(e.what()) == "inner", "the exception is the one that was thrown");
  }
}

/// One result, many readers, in the order that they come.
void shared_futures() {
  gw::shared_future<std::string> s = gw::spawn([] { return std::to_string(fib(8)); });
  std::vector<gw::future<std::size_t>> readers;
  for (int i = 0; i < 8; ++i) readers.push_back(gw::create([s]() mutable { return s.get().size(); }));
  for (auto& r : readers) need(r.join() == 2, "every reader has the value");
}

/// What threads wait for, each object with several of them.
void objects() {
  gw::mutex m;
  gw::condition_variable changed;
  gw::counting_semaphore<> units(2);
  gw::latch all(6);
  gw::barrier phases(6);
  gw::shared_mutex table_lock;
  gw::once_flag once;
  std::vector<int> table(4), seen;
  int turn = 0, made = 0, inside[2] = {};
  std::vector<gw::thread> threads;
  for (int i = 0; i < 6; ++i)
    threads.emplace_back([&, i] {
      gw::call_once(once, [&] { made = 1; });
      need(made == 1, "what call_once did is seen");
      {
        std::unique_lock guard(m);
        while (turn != i) changed.wait(guard);
        ++turn;
        changed.notify_all();
        seen.push_back(i);
      }
      units.acquire();
      inside[0] = inside[0];
      units.release();
      {
        const std::unique_lock guard(table_lock);
        ++table[static_cast<std::size_t>(i % 4)];
      }
      {
        const std::shared_lock guard(table_lock);
        need(std::accumulate(table.begin(), table.end(), 0) >= 1, "readers see what writers did");
      }
      all.count_down();
      phases.arrive_and_wait();
      need(std::accumulate(table.begin(), table.end(), 0) == 6, "all came before the phase ended");
      phases.arrive_and_wait();
    });
  all.wait();
  for (gw::thread& t : threads) t.join();
  need(std::is_sorted(seen.begin(), seen.end()) && seen.size() == 6, "threads took turns");
}

/// A semaphore of one unit is a lock.
void semaphore_as_lock() {
  gw::binary_semaphore unit(1);
  long sum = 0;
  std::vector<gw::future<void>> threads;
  for (int i = 0; i < 20; ++i)
    threads.push_back(gw::create([&] {
      unit.acquire();
      ++sum;
      gw::yield();
      unit.release();
    }));
  for (auto& t : threads) t.join();
  need(sum == 20, "one at a time");
}

void control_objects() {
  const gw::owned<gw::global_latch> open(3);
  auto box = std::make_shared<std::vector<int>>(3);
  for (int i = 0; i < 3; ++i)
    static_cast<void>(gw::create([&open, box, i] {
      (*box)[static_cast<std::size_t>(i)] = i;
      open->count_down();
    }));
  open->wait();
  need((*box)[2] == 2, "who goes on sees what was done before");
}

void algorithms() {
  constexpr long count = 10'000;
  gw::global_array<long> a(count, gw::distribution::blocked());
  gw::generate(a, [](std::uint64_t i) { return count - static_cast<long>(i); });
  gw::sort(a);
  gw::inclusive_scan(a, a.data(), std::plus<>());
  need(a.back() == count * (count + 1) / 2, "the sum of what was sorted");
  gw::for_each(a, [](long& x) { x = 1; });
  need(gw::reduce(a) == count, "the sum of the array");
}

/// What one thread writes, and another reads when an atomic, or one between two fences, says so. Who waits
/// stays at its worker, so that nothing else orders the two.
void global_words() {
  enum class by { atomics, fences, maximum };
  for (const by way : {by::atomics, by::fences, by::maximum}) {
    // Unknown to the compiler: it calls memcpy, which ThreadSanitizer sees.
    const std::size_t size = 100 + static_cast<std::size_t>(written_by_all);
    gw::global_array<long> words(1 + size, gw::distribution::blocked());
    const auto told = words.data(), text = told + 1;
    gw::put(told, 0L);
    auto writer = gw::create([=] {
      gw::yield();
      gw::put(text, std::vector<long>(size, 7).data(), size);
      if (way == by::fences) gw::fence();
      gw::atomic_store(told, 1L, way == by::fences ? std::memory_order_relaxed : std::memory_order_release);
    });
    const auto look = [=] {
      if (way == by::maximum) return gw::atomic_fetch_max(told, 0L);  // writes nothing
      return gw::atomic_load(told, way == by::fences ? std::memory_order_relaxed : std::memory_order_acquire);
    };
    while (look() == 0)
      if (gw::worker_count() == 1)
        gw::yield();
      else
        sched_yield();
    if (way == by::fences) gw::fence();
    std::vector<long> read(size);
    gw::get(text, read.data(), size);
    need(read.front() == 7 && read.back() == 7, "what was written before the atomic");
    writer.join();
  }
}

/// What a thread frees goes back to the worker that allocated it, and to another thread there. Nothing else
/// orders the two: relaxed atomics do not, to ThreadSanitizer.
void global_memory_again() {
  if (gw::worker_count() == 1) return;  // the two run at the same time
  constexpr int size = 2000;
  using place = gw::global_ptr<int>;
  std::atomic<place> given{place()};
  std::atomic<bool> freed{false};
  const auto write = [](place p, int value) {
    gw::for_each(
        gw::global_span<int>(p, size), [=](int& x) { x = value; }, gw::grain{size});
  };
  auto owner = gw::spawn([&] {
    given.store(gw::allocate<int>(size, gw::distribution::local()), std::memory_order_relaxed);
    while (!freed.load(std::memory_order_relaxed)) sched_yield();
    const place p = gw::allocate<int>(size, gw::distribution::local());
    write(p, 1);
    gw::deallocate(p, size);
  });
  place p;
  while ((p = given.load(std::memory_order_relaxed)) == place()) sched_yield();
  write(p, 2);
  gw::deallocate(p, size);
  freed.store(true, std::memory_order_relaxed);
  owner.join();
}

/// Who called on each worker sees what all did there, also where it is the last one that did it itself.
void on_all_workers() {
  std::vector<int> done(gw::worker_count());
  for (int round = 1; round <= 50; ++round) {
    gw::on_each_worker([to = done.data()] { ++to[gw::worker_id()]; });
    need(std::ranges::all_of(done, [&](int n) { return n == round; }), "what was done on each worker");
  }
}

/// A thread that is sent reads the copy of its closure, which some worker has made for it.
void sent() {
  const std::uint32_t workers = gw::worker_count();
  const auto at = gw::allocate<long>(workers, gw::distribution::blocked());
  for (int round = 0; round < 20; ++round) {
    std::vector<gw::future<long>> threads;
    for (std::uint32_t w = 0; w < 2 * workers; ++w) {
      const large copied = filled(static_cast<int>(w));
      const auto last = [copied] { return copied.values[99]; };
      threads.push_back(w % 2 == 0 ? gw::spawn_at(at + w / 2, last) : gw::spawn_at(gw::worker(w / 2), last));
    }
    for (std::uint32_t w = 0; w < 2 * workers; ++w) need(threads[w].join() == w + 99, "what was sent along");
  }
  gw::deallocate(at, workers);
}

/// A function on an OS thread of its own, which the library makes: one after the other, each waited for.
void on_ranks() {
  std::vector<int> called;
  for (int i = 0; i < 3; ++i) {
    gw::on_rank([to = &called, i](gw::rank) { to->push_back(i); });
    need(called.size() == static_cast<std::size_t>(i) + 1 && called.back() == i, "what was done in the rank");
  }
}

void appended() {
  gw::global_vector<std::uint64_t> odd;
  const auto out = odd.begin_append(1000);
  gw::for_each(gw::indices(1000), [out](std::uint64_t i) {
    if (i % 2 != 0) out.push_back(i);
  });
  odd.end_append(out);
  need(odd.size() == 500, "what threads append");
}

/// Who reads has what was done before it was written, and a number stands for one file after the other.
void descriptors() {
  for (const bool sockets : {false, true}) {
    int ends[2], told = 0;
    need((sockets ? socketpair(AF_UNIX, SOCK_STREAM, 0, ends) : pipe(ends)) == 0, "two ends");
    auto writer = gw::create([&told, to = ends[1]] {
      gw::io::sleep_for(std::chrono::milliseconds(1));
      told = 7;
      need(gw::io::write(to, "x", 1) == 1, "the byte is written");
    });
    char byte = 0;
    need(gw::io::read(ends[0], &byte, 1) == 1 && told == 7, "what was done before the write");
    writer.join();
    gw::create([=] { gw::io::close(ends[0]); }).join();
    gw::io::close(ends[1]);
  }
}

void right() {
  for (int round = 0; round < 5; ++round) {
    need(fib(12) == 144, "fib");
    int counts[64] = {};
    need(words(6, counts).size() == 64, "words");
    auto f = gw::spawn(filled, 5);
    auto g = gw::spawn([] { return filled(7); });
    gw::yield();
    need(f.join().values[99] == 104 && g.join().values[0] == 7, "large results");
    thrown_across_spawns();
    shared_futures();
    objects();
    semaphore_as_lock();
    control_objects();
    algorithms();
    global_words();
    global_memory_again();
    on_all_workers();
    sent();
    on_ranks();
    appended();
    descriptors();
  }
}

/// Where children are stolen, each has a copy of its closure.
template <class P>
long fib_of(int n) {
  if (n < 2) return n;
  auto x = P::spawn([n, copied = filled(n)] { return fib_of<P>(copied.values[0] == n ? n - 1 : 0); });
  const long y = fib_of<P>(n - 2);
  return x.join() + y;
}
template <class P>
void stolen_children() {
  for (int round = 0; round < 5; ++round) need(fib_of<P>(12) == 144, "fib of stolen children");
}

/// The end of a run destroys what its last thread has looked at. A spare worker has a value, too.
void locals() {
  const gw::worker_local<std::vector<int>> values;
  std::atomic<bool> ready{false};
  gw::thread other([&] {
    values->push_back(5);
    ready = true;
  });
  while (!ready) sched_yield();
  other.join();
  const auto all = values.combine([](std::vector<int> a, const std::vector<int>& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
  });
  need(all && all->size() == 1, "the value of the spare worker");
}

void race(int depth) {
  if (depth == 0) {
    ++written_by_all;
    return;
  }
  auto f = gw::spawn([=] { race(depth - 1); });
  race(depth - 1);
  f.join();
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view what = argc > 1 ? argv[1] : "right";
  const bool races = what == "race";
  int status = gw::run(argc, argv, [=] {
    if (races)
      race(12);
    else if (what == "spare")
      locals();
    else if (what == "records")
      records_again();
    else if (what == "child_full")
      stolen_children<gw::policies::child_full>();
    else if (what == "child_rtc")
      stolen_children<gw::policies::child_rtc>();
    else
      right();
  });
  if (status == 0 && what == "right")
    status = gw::run(argc, argv, descriptors);  // the first run's numbers once more
  if (status == 0) std::puts(races ? "raced" : "all right");
  return status;
}

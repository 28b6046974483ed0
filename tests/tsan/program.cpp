// Built with -fsanitize=thread, on a library that is not: `right` has no race and must not be reported on any
// schedule; `race` has one, between a child and its parent. See extras.cmake.
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

long fib(int n) {
  if (n < 2) return n;
  auto x = gw::spawn([=] { return fib(n - 1); });
  const long y = fib(n - 2);
  return x.join() + y;
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

/// What one thread writes, and another reads when an atomic says so.
void global_words() {
  gw::global_array<long> words(2, gw::distribution::blocked());
  const auto text = words.data(), told = text + 1;
  gw::put(told, 0L);
  auto writer = gw::create([=] {
    gw::yield();
    gw::put(text, 7L);
    gw::atomic_store(told, 1L, std::memory_order_release);
  });
  while (gw::atomic_load(told, std::memory_order_acquire) == 0) gw::yield();
  need(gw::get(text) == 7, "what was written before the atomic");
  writer.join();
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
    appended();
    descriptors();
  }
}

int written_by_all = 0;
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
  const bool races = argc > 1 && std::string_view(argv[1]) == "race";
  int status = gw::run(argc, argv, [=] {
    if (races)
      race(12);
    else
      right();
  });
  if (status == 0 && !races) status = gw::run(argc, argv, descriptors);  // the first run's numbers once more
  if (status == 0) std::puts(races ? "raced" : "all right");
  return status;
}

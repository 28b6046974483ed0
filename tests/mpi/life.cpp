// One program per way to begin and to end: life WHAT [ARGUMENT...], started plainly and by mpirun.
//
// Driven by life_test.sh, which compares output and exit status with the plain start's, kills processes, and
// looks what stays behind; `spread` is also what scripts/stress_mpi starts. LIFE_PIDS=FOLDER: each worker
// writes FOLDER/WORKER with its process number and that of its companion before the program goes on.
// Not a GoogleTest: most of this ends the process. See docs/writing-programs.md, "When something goes wrong".
#include <godwit/godwit.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <numeric>
#include <stdexcept>
#include <string>
#include <unistd.h>
#include <utility>
#include <vector>

namespace {

namespace gw = godwit;

int argc_ = 0;
char** argv_ = nullptr;

long argument(int i, long otherwise) {
  return argc_ > i && argv_[i][0] != '-' ? std::atol(argv_[i]) : otherwise;
}
int rank() {
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMI_RANK"})
    if (const char* value = std::getenv(name)) return std::atoi(value);
  return 0;
}
template <class F>
int run(F&& root, const gw::options& o = {}) {
  return gw::run(argc_, argv_, std::forward<F>(root), o);
}
template <class T, class F>
T run_for(F&& root, const gw::options& o = {}) {
  return gw::run<T>(argc_, argv_, std::forward<F>(root), o);
}

[[gnu::noinline]] long fib(int n) {
  if (n < 2) return n;
  auto x = gw::spawn([n] { return fib(n - 1); });
  const long y = fib(n - 2);
  return x.join() + y;
}

void write_pids() {
  gw::on_each_worker([] {
    const char* folder = std::getenv("LIFE_PIDS");
    if (folder == nullptr) return;
    char name[512], hidden[520];
    std::snprintf(name, sizeof name, "%s/%u", folder, gw::worker_id());
    std::snprintf(hidden, sizeof hidden, "%s.new", name);
    if (std::FILE* f = std::fopen(hidden, "w")) {
      std::fprintf(f, "%d %d\n", static_cast<int>(getpid()), static_cast<int>(getppid()));
      std::fclose(f);
      std::rename(hidden, name);
    }
  });
}

// ---- ends
// --------------------------------------------------------------------------------------------------

int status() {
  return run([] {
    fib(12);
    return static_cast<int>(argument(2, 0));
  });
}
int status_without_a_word() {
  return run([] { fib(12); });
}

/// An object that main and threads share, of which ranks would have one each.
int shared_object() {
  const gw::shared_global<long> object(7);
  return run([&object] { return static_cast<int>(*object); });
}

int value() {
  std::cout << "before\n";
  const long v = run_for<long>([] { return fib(16); });
  std::cout << "value " << v << '\n';
  return 0;
}

struct strange {};
int exception() {
  std::puts("before");
  const std::string kind = argv_[2];
  const int s = run([&] {
    fib(10);
    const bool known = kind == "known";
    gw::spawn([known] {
      fib(8);
      if (known) throw std::runtime_error("the water is too cold");
      throw strange();
    }).join();
  });
  std::printf("status %d\n", s);
  return s;
}
int exception_into_main() {
  try {
    run_for<int>([]() -> int {
      fib(10);
      throw std::out_of_range("beyond the shore");
    });
  } catch (const std::out_of_range& e) {
    std::printf("caught %s\n", e.what());
    return 7;
  }
  return 8;
}

[[gnu::noinline]] long overflow(long n) {
  volatile char frame[2000];
  frame[0] = static_cast<char>(n);
  return n == 0 ? 0 : overflow(n - 1) + frame[0];
}
[[gnu::noinline]] void die(const std::string& how) {
  if (how == "segv") {
    volatile std::uintptr_t nowhere = 16;
    *reinterpret_cast<volatile int*>(nowhere) = 1;
  }
  if (how == "kill") raise(SIGKILL);
  if (how == "abort") std::abort();
  if (how == "exit") std::exit(5);
  if (how == "exit0") _exit(0);
  if (how == "overflow") overflow(1L << 40);
}
/// Worker WHO (or, without, the one that executes the thread) ends by HOW.
int death() {
  static const std::string how = argv_[2];
  static const long who = argument(3, -1);
  std::puts("before");
  const int s = run([] {
    write_pids();
    fib(8);
    if (who >= 0)
      gw::on_each_worker([] {
        if (gw::worker_id() == static_cast<std::uint32_t>(who)) die(how);
      });
    else
      gw::spawn([] { die(how); }).join();
    for (;;) fib(8);
  });
  std::printf("status %d\n", s);
  return s;
}
/// Worker 0 ends by HOW with the lock of a control object, while the others wait for it: whoever carries out
/// their steps is who has to tell.
int death_in_a_step() {
  static const std::string how = argv_[2];
  std::puts("before");
  const int s = run([] {
    write_pids();
    const auto c = gw::control<int>::make(0, 0);
    gw::on_each_worker([c] {
      if (gw::worker_id() == 0)
        c.set([](int&) noexcept {
          usleep(300'000);
          die(how);
        });
      for (int i = 0; i < 100; ++i) {
        usleep(10'000);
        c.set([](int& n) noexcept { ++n; });
      }
    });
  });
  std::printf("status %d\n", s);
  return s;
}
/// A run that is ended from outside: BUSY or all asleep.
int endless() {
  static const bool busy = std::strcmp(argv_[2], "busy") == 0;
  std::puts("before");
  const int s = run([] {
    write_pids();
    for (;;) {
      if (busy)
        fib(12);
      else
        pause();
    }
  });
  std::printf("status %d\n", s);
  return s;
}
/// In main, before the first run or after one, there is nobody but the ranks.
int endless_main() {
  if (argument(2, 0) != 0) run([] { write_pids(); });
  std::ofstream(std::string(std::getenv("LIFE_PIDS")) + "/main" + std::to_string(rank())) << getpid() << '\n';
  for (;;) pause();
}

int failed_run_in_main() {
  static const std::string how = argv_[2];
  try {
    run_for<int>([] {
      fib(8);
      die(how);
      return 0;
    });
  } catch (const gw::run_error& e) {
    std::printf("run_error %d\n", e.status());
  }
  std::printf("value %ld\n", run_for<long>([] { return fib(13); }));
  try {
    run_for<int>([] { return 1; },
                 [] {
                   gw::options o;
                   o.stack_bytes = 1;
                   return o;
                 }());
  } catch (const std::invalid_argument&) {
    std::puts("invalid_argument");
  }
  std::printf("value %ld\n", run_for<long>([] { return fib(14); }));
  return 0;
}

/// A thread waits for itself. It gets its own handle as bytes in a global of every worker.
struct handle {
  alignas(gw::shared_future<int>) std::array<std::byte, sizeof(gw::shared_future<int>)> bytes;
};
handle own_handle_;
std::atomic<bool> handle_set_{false};
int deadlock() {
  return run([] {
    gw::shared_future<int> self = gw::spawn([] {
      fib(8);
      while (!handle_set_.load()) gw::yield();
      return reinterpret_cast<gw::shared_future<int>*>(own_handle_.bytes.data())->get() + 1;
    });
    handle h{};
    new (h.bytes.data()) gw::shared_future<int>(self);
    gw::on_each_worker([h] {
      own_handle_ = h;
      handle_set_ = true;
    });
    return self.get();
  });
}

/// The last worker's object, released by the first: twice, or as another one.
int bad_release() {
  return run([] {
    const auto object = gw::allocate<gw::global_ptr<long>>(1);
    gw::on_each_worker([object] {
      if (gw::worker_id() + 1 == gw::worker_count()) gw::put(object, gw::global_new<long>(5));
    });
    const auto p = gw::get(object);
    gw::on_each_worker([p, as_two = std::string(argv_[2]) == "size"] {
      if (gw::worker_id() != 0) return;
      if (as_two) gw::deallocate(p, 2);
      gw::global_delete(p);
      gw::global_delete(p);
    });
  });
}

// ---- several runs
// ------------------------------------------------------------------------------------------

int two_runs() {
  gw::options small, large;
  small.workers = 2;
  small.heap_bytes = 64 << 20;
  large.workers = 5;
  large.stack_bytes = 64 << 20;
  large.force_steal = gw::choice::force_steal::random;
  large.seed = 5;
  const auto with = [](const gw::options& o) {
    return run_for<std::pair<long, long>>(
        [] {
          const long f = fib(13);
          return std::pair<long, long>(f, gw::worker_count());
        },
        o);
  };
  for (const gw::options* o : {&small, &large, &small}) {
    const auto [f, workers] = with(*o);
    std::printf("%ld with %ld workers, %zu counters\n", f, workers, gw::last_run_stats().size());
  }
  return 0;
}

int many() {
  const long runs = argument(2, 200);
  long sum = 0;
  for (long i = 0; i < runs; ++i) sum += run_for<long>([i] { return i % 3 == 0 ? fib(6) : i; });
  std::printf("%ld runs, sum %ld\n", runs, sum);
  return 0;
}

// ---- what threads do
// ---------------------------------------------------------------------------------------

int each() {
  const int s = run([] {
    for (int round = 0; round < 3; ++round) {
      gw::on_each_worker([] { std::printf("worker %u of %u\n", gw::worker_id(), gw::worker_count()); });
      fib(7);
    }
  });
  std::puts("after");
  return s;
}

int shared() {
  const long sum = run_for<long>([] {
    gw::shared_future<std::string> text = gw::spawn([] {
      fib(9);
      return std::string(5000, 's');
    });
    std::array<gw::future<long>, 40> f;
    for (auto& x : f)
      x = gw::spawn([text]() mutable {
        fib(5);
        return static_cast<long>(text.get().size());
      });
    long total = 0;
    for (auto& x : f) total += x.join();
    // A grid in which each waits for its neighbours.
    constexpr int side = 8;
    std::array<gw::shared_future<long>, side * side> grid;
    for (int i = 0; i < side * side; ++i) {
      gw::shared_future<long> above = i >= side ? grid[i - side] : gw::shared_future<long>();
      gw::shared_future<long> left = i % side != 0 ? grid[i - 1] : gw::shared_future<long>();
      grid[i] = gw::spawn([above, left]() mutable {
        fib(3);
        return 1 + (above.valid() ? above.get() : 0) + (left.valid() ? left.get() : 0);
      });
    }
    return total + grid[side * side - 1].get();
  });
  std::printf("shared %ld\n", sum);
  return 0;
}

int big() {
  const auto v = run_for<std::vector<long>>([] {
    std::array<gw::future<std::string>, 6> text;
    for (int i = 0; i < 6; ++i)
      text[i] = gw::spawn([i] {
        fib(7);
        return std::string(1 << 20, static_cast<char>('a' + i));
      });
    auto numbers = gw::spawn(
        [](std::vector<long> given) {
          std::transform(given.begin(), given.end(), given.begin(), [](long x) { return 2 * x; });
          return given;
        },
        std::vector<long>(1 << 17, 21));
    long right = 0;
    for (int i = 0; i < 6; ++i) {
      const std::string s = text[i].join();
      right += s.size() == 1 << 20 && s.find_first_not_of(static_cast<char>('a' + i)) == std::string::npos;
    }
    std::vector<long> result = numbers.join();
    result.push_back(right);
    return result;
  });
  std::printf("big %zu %ld %ld\n", v.size(), std::accumulate(v.begin(), v.end() - 1, 0L), v.back());
  const auto s = run_for<std::string>([] {
    fib(9);
    return std::string(1 << 20, 'z');
  });
  std::printf("big %zu %c\n", s.size(), s.back());
  try {
    run_for<void>([] {
      fib(9);
      throw std::runtime_error(std::string(1 << 20, 'e'));
    });
  } catch (const std::runtime_error& e) {
    std::printf("thrown %zu\n", std::strlen(e.what()));
  }
  return 0;
}

int print() {
  const long n = argument(2, 400);
  std::puts("main before");
  std::cout << "main before, by cout\n";
  std::printf("main before, by printf\n");  // ended: launchers may put another rank's line behind what is not
  const int s = run([n] {
    struct lines {
      static void print(long from, long to) {
        if (to - from > 1) {
          const long middle = (from + to) / 2;
          auto f = gw::spawn([=] { print(from, middle); });
          print(middle, to);
          f.join();
          return;
        }
        fib(3);
        if (from % 2 != 0)
          std::printf("line %ld of a thread, by printf\n", from);
        else
          std::cout << "line " + std::to_string(from) + " of a thread, by cout\n";
      }
    };
    std::puts("root before");
    std::fflush(stdout);
    lines::print(0, n);
  });
  std::puts("main after");
  std::cout << "main after, by cout" << std::endl;
  return s;
}

/// What main made is read by reference in every worker.
int inherit() {
  std::vector<long> numbers(10000);
  std::iota(numbers.begin(), numbers.end(), 0);
  std::vector<std::string> words;
  for (int i = 0; i < 100; ++i) words.push_back(std::string(static_cast<std::size_t>(i), 'w'));
  const long on_stack = 17;
  std::array<int, 1000> array;
  array.fill(3);
  const auto sum_of = [&] {
    return run_for<long>([&] {
      std::array<gw::future<long>, 50> f;
      for (int k = 0; k < 50; ++k)
        f[static_cast<std::size_t>(k)] = gw::spawn([&, k] {
          fib(6);
          long sum = on_stack + static_cast<long>(words[static_cast<std::size_t>(k)].size());
          for (int i = 0; i < 20; ++i) sum += array[static_cast<std::size_t>(k * 20 + i)];
          for (int i = 0; i < 200; ++i) sum += numbers[static_cast<std::size_t>(k * 200 + i)];
          return sum;
        });
      long sum = 0;
      for (auto& x : f) sum += x.join();
      return sum;
    });
  };
  std::printf("inherit %ld\n", sum_of());
  numbers.assign(20000, 1);  // between two runs
  words.assign(100, std::string(1000, 'v'));
  std::printf("inherit %ld\n", sum_of());
  return 0;
}

/// A write to a local of main from a thread.
int write_to_main() {
  long sum = 0;
  return run([&sum] { gw::spawn([&sum] { sum += 1; }).join(); });
}

// ---- ranks that go their own way
// ---------------------------------------------------------------------------

/// Rank WHO ends with STATUS instead of calling run; -1: all do.
int absent() {
  const long who = std::atol(argv_[2]);
  if (who < 0 || rank() == who) return static_cast<int>(argument(3, 0));
  return run([] { fib(10); });
}
/// Rank WHO ends with STATUS after a run, while the others start a second one.
int leaves_early() {
  run([] { fib(10); });
  if (rank() == argument(2, 1)) return static_cast<int>(argument(3, 0));
  const bool tries_again = argument(4, 0) != 0;
  if (!tries_again) return run([] { fib(10); });
  try {
    run([] { fib(10); });
  } catch (const std::exception&) {
  }
  return run([] { fib(10); });
}
/// After the runs the ranks return different statuses.
int different_status() {
  const int s = run([] { fib(10); });
  return s != 0 ? s : rank() == 1 ? static_cast<int>(argument(2, 9)) : 0;
}

int maps() {
  const auto loaded = [] {
    std::ifstream in("/proc/self/maps");
    for (std::string line; std::getline(in, line);)
      for (const char* name : {"libmpi", "godwit-mpi", "libpmix", "libopen-pal"})
        if (line.find(name) != std::string::npos) return true;
    return false;
  };
  const bool before = loaded();
  const int s = run([] { fib(8); });
  std::printf("MPI before run: %s, after: %s\n", before ? "loaded" : "no", loaded() ? "loaded" : "no");
  return s;
}

/// Rank WHO starts this program again, before, in and after a run.
int nested() {
  const std::string command = std::string(argv_[0]) + " value";
  const auto start = [&] {
    std::cout.flush();
    std::fflush(stdout);
    if (rank() == argument(2, 0) && std::system(command.c_str()) != 0) std::abort();
  };
  start();
  const int s = run([] { fib(10); });
  start();
  return s;
}

// ---- for scripts/stress_mpi
// --------------------------------------------------------------------------------

[[gnu::noinline]] long tree(std::uint64_t h, int depth) {
  h = (h ^ (h >> 30)) * 0xBF58476D1CE4E5B9ull;
  h ^= h >> 27;
  long sum = static_cast<long>(h % 1000);
  if (depth == 0) return sum;
  std::array<gw::future<long>, 3> f;
  const auto n = static_cast<std::size_t>(h % 4);
  for (std::size_t i = 0; i < n; ++i) f[i] = gw::spawn([=] { return tree(h + i + 1, depth - 1); });
  if (h % 7 == 0) gw::yield();
  for (std::size_t i = n; i-- > 0;) sum += f[i].join();
  return sum;
}
/// One to three runs of random trees.
int spread() {
  const auto seed = static_cast<std::uint64_t>(argument(2, 1));
  const auto runs = static_cast<int>(seed % 3 + 1);
  std::cout << "spread";
  for (int i = 0; i < runs; ++i) {
    const long v = run_for<long>([seed, i] {
      if (seed % 5 == 0) gw::on_each_worker([] { usleep(10); });
      return tree(seed + static_cast<std::uint64_t>(i) * 77, static_cast<int>(seed % 8));
    });
    std::cout << ' ' << v;
  }
  std::cout << '\n';
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  argc_ = argc;
  argv_ = argv;
  const std::string what = argc > 1 ? argv[1] : "";
  const std::pair<const char*, int (*)()> all[] = {{"status", status},
                                                   {"status_without_a_word", status_without_a_word},
                                                   {"shared_object", shared_object},
                                                   {"value", value},
                                                   {"exception", exception},
                                                   {"exception_into_main", exception_into_main},
                                                   {"death", death},
                                                   {"death_in_a_step", death_in_a_step},
                                                   {"endless", endless},
                                                   {"endless_main", endless_main},
                                                   {"failed_run_in_main", failed_run_in_main},
                                                   {"deadlock", deadlock},
                                                   {"bad_release", bad_release},
                                                   {"two_runs", two_runs},
                                                   {"many", many},
                                                   {"each", each},
                                                   {"shared", shared},
                                                   {"big", big},
                                                   {"print", print},
                                                   {"inherit", inherit},
                                                   {"write_to_main", write_to_main},
                                                   {"absent", absent},
                                                   {"leaves_early", leaves_early},
                                                   {"different_status", different_status},
                                                   {"maps", maps},
                                                   {"nested", nested},
                                                   {"spread", spread}};
  try {
    for (const auto& [name, function] : all)
      if (what == name) return function();
  } catch (const std::exception& e) {
    std::fprintf(stderr, "life: an exception reached main: %s\n", e.what());
    return 90;
  }
  std::fprintf(stderr, "life: what? '%s'\n", what.c_str());
  return 91;
}

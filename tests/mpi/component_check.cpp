// Exercises every function of the MPI table (src/transport/mpi/component.hpp) among the ranks of one job.
//
// component_check FAMILY [abort]: loads that component, runs the checks, prints "component_check ok" on rank
// 0. With `abort` the last rank ends the job. Built a second time per MPI with GODWIT_CHECK_LINKED: then the
// program itself is linked to an MPI and has initialised it, and load_component has to choose that one by
// itself. Started by ctest (extras.cmake here): mpi.component.FAMILY.RANKS.
#include "transport/mpi/load.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#if defined(GODWIT_CHECK_LINKED)
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>
#endif

namespace mpi = godwit::transport::mpi;

namespace {

const mpi::component* table = nullptr;
mpi::world world;
using bytes = std::vector<unsigned char>;

[[noreturn, gnu::format(printf, 2, 3)]] void fail(int line, const char* format, ...) {
  char text[1024];
  va_list list;
  va_start(list, format);
  std::vsnprintf(text, sizeof text, format, list);
  va_end(list);
  std::fprintf(stderr, "component_check: line %d, rank %d: %s\n", line, world.rank, text);
  std::fflush(nullptr);
  if (table != nullptr) table->abort(1);
  _exit(1);
}

#define EXPECT(condition)                               \
  do {                                                  \
    if (!(condition)) fail(__LINE__, "%s", #condition); \
  } while (false)
#define OK(call) good(__LINE__, #call, call)

void good(int line, const char* what, int status) {
  if (status == 0) return;
  char text[512] = {};
  table->error_text(status, text, sizeof text);
  fail(line, "%s: %s (%d)", what, text, status);
}

struct received {
  int source = -2, tag = -2;
  std::size_t bytes = ~std::size_t{0};
};

received finish(mpi::operation* op, int line) {
  received r;
  for (bool done = false; !done;) {
    good(line, "test", table->test(op, &done, &r.source, &r.tag, &r.bytes));
    if (!done) std::this_thread::yield();
  }
  if (op->value != 0) fail(line, "a finished operation is not zero");
  return r;
}
#define FINISH(op) finish(&(op), __LINE__)

void barrier() {
  mpi::operation op;
  OK(table->barrier_begin(&op));
  FINISH(op);
}

int next() { return (world.rank + 1) % world.size; }
int previous() { return (world.rank + world.size - 1) % world.size; }

bytes pattern(std::size_t size, int seed) {
  bytes data(size);
  std::uint32_t x = 12345u + 977u * static_cast<std::uint32_t>(seed);
  for (unsigned char& c : data) c = static_cast<unsigned char>((x = x * 1664525u + 1013904223u) >> 24);
  return data;
}

[[maybe_unused]] void check_load_errors() {
  std::string error;
  EXPECT(mpi::load_component("nosuch", mpi::family_hint::none, error) == nullptr);
  EXPECT(error.find("godwit-mpi-nosuch.so") != std::string::npos);
  EXPECT(mpi::load_component("/nowhere/godwit-mpi-openmpi.so", mpi::family_hint::none, error) == nullptr);
  EXPECT(error.find("/nowhere/") != std::string::npos);
  EXPECT(mpi::load_component("/proc/self/exe", mpi::family_hint::none, error) == nullptr && !error.empty());
}

void check_without_mpi() {
  mpi::operation op;
  mpi::rma_window w;
  char c = 0;
  char text[64] = {};
  std::uint64_t word = 0;
  EXPECT(table->allgather(&c, &c, 1) < 0 && table->bcast(&c, 1, 0) < 0 && table->gather(&c, &c, 1, 0) < 0);
  EXPECT(table->allreduce(&word, 1, mpi::reduction::sum) < 0);
  EXPECT(table->barrier_begin(&op) < 0 && op.value == 0);
  EXPECT(table->isend(&c, 1, 0, 0, &op) < 0 && table->win_create(&c, 1, &w) < 0 && w.value == 0);
  table->error_text(table->allgather(&c, &c, 1), text, sizeof text);
  EXPECT(std::strstr(text, "not initialised") != nullptr);
  table->error_text(17, text, sizeof text);
  EXPECT(text[0] != '\0');
  table->error_text(17, text, 4);
  EXPECT(std::strlen(text) == 3);
}

void check_reductions() {
  const auto mine = static_cast<std::uint64_t>(world.rank), n = static_cast<std::uint64_t>(world.size);
  const std::uint64_t top = std::uint64_t{1} << 63;  // words have no sign
  const auto reduced = [&](mpi::reduction how) {
    std::vector<std::uint64_t> words = {mine, top + mine, ~(std::uint64_t{1} << mine)};
    OK(table->allreduce(words.data(), words.size(), how));
    return words;
  };
  using words = std::vector<std::uint64_t>;
  EXPECT(reduced(mpi::reduction::least) == (words{0, top, ~(std::uint64_t{1} << (n - 1))}));
  EXPECT(reduced(mpi::reduction::most) == (words{n - 1, top + n - 1, ~std::uint64_t{1}}));
  EXPECT(reduced(mpi::reduction::sum)[0] == n * (n - 1) / 2);
  EXPECT(reduced(mpi::reduction::common_bits)[2] == ~((std::uint64_t{1} << n) - 1));
}

void check_collectives() {
  struct {
    int rank, square;
  } mine = {world.rank, world.rank * world.rank};
  std::vector<decltype(mine)> all(static_cast<std::size_t>(world.size));
  OK(table->allgather(&mine, all.data(), sizeof mine));
  for (int i = 0; i < world.size; ++i) {
    const auto& a = all[static_cast<std::size_t>(i)];
    EXPECT(a.rank == i && a.square == i * i);
  }
  for (int root = 0; root < world.size; ++root) {
    std::vector<decltype(mine)> gathered(world.rank == root ? static_cast<std::size_t>(world.size) : 0);
    OK(table->gather(&mine, gathered.data(), sizeof mine, root));
    for (std::size_t i = 0; i < gathered.size(); ++i)
      EXPECT(gathered[i].rank == static_cast<int>(i) &&
             gathered[i].square == gathered[i].rank * gathered[i].rank);
  }
  check_reductions();
  const bytes large = pattern(200'000, world.rank);
  bytes larges(large.size() * static_cast<std::size_t>(world.size));
  OK(table->allgather(large.data(), larges.data(), large.size()));
  for (int i = 0; i < world.size; ++i) {
    const bytes expected = pattern(large.size(), i);
    EXPECT(std::equal(expected.begin(), expected.end(),
                      larges.begin() + i * static_cast<std::ptrdiff_t>(large.size())));
  }
  for (std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{8} << 20})
    for (int root = 0; root < world.size; ++root) {
      const bytes expected = pattern(size, root + 100);
      bytes data = world.rank == root ? expected : bytes(size);
      OK(table->bcast(data.data(), size, root));
      EXPECT(data == expected);
    }
  barrier();
}

void check_messages() {
  for (std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{64} << 10, std::size_t{8} << 20})
    for (bool any : {false, true}) {
      const bytes data = pattern(size, world.rank);
      bytes buffer(size + 7);
      mpi::operation send, receive;
      const int tag = 1000 + static_cast<int>(size % 1000);
      OK(table->irecv(buffer.data(), buffer.size(), any ? mpi::any_source : previous(),
                      any ? mpi::any_tag : tag, &receive));
      OK(table->isend(data.data(), data.size(), next(), tag, &send));
      EXPECT(receive.value != 0);
      const received r = FINISH(receive);
      if (r.source != previous() || r.tag != tag || r.bytes != size)
        fail(__LINE__, "%zu bytes with tag %d from %d came as %zu bytes with tag %d from %d", size, tag,
             previous(), r.bytes, r.tag, r.source);
      buffer.resize(size);
      EXPECT(buffer == pattern(size, previous()));
      FINISH(send);
      barrier();  // the next round takes from anyone
    }

  // All to rank 0 at once: what comes from one rank comes in its order.
  constexpr std::uint32_t count = 500;
  std::vector<std::uint32_t> numbers(count);
  std::iota(numbers.begin(), numbers.end(), 0u);
  std::vector<mpi::operation> sends(count);
  for (std::uint32_t i = 0; i < count; ++i)
    OK(table->isend(&numbers[i], sizeof(std::uint32_t), 0, 5, &sends[i]));
  if (world.rank == 0) {
    std::vector<std::uint32_t> expected(static_cast<std::size_t>(world.size));
    for (std::uint32_t i = 0; i < count * static_cast<std::uint32_t>(world.size); ++i) {
      std::uint32_t number = ~0u;
      mpi::operation receive;
      OK(table->irecv(&number, sizeof number, mpi::any_source, 5, &receive));
      const received r = FINISH(receive);
      EXPECT(r.tag == 5 && r.bytes == 4 && r.source >= 0 && r.source < world.size);
      EXPECT(number == expected[static_cast<std::size_t>(r.source)]++);
    }
  }
  for (mpi::operation& op : sends) FINISH(op);
  barrier();
}

void check_special_operations() {
  // Nothing to wait for.
  mpi::operation none;
  bool done = false;
  OK(table->test(&none, &done, nullptr, nullptr, nullptr));
  EXPECT(done);
  OK(table->cancel(&none));

  // A cancelled receive takes no message.
  int first = 0, second = 0;
  const int value = 4711;
  mpi::operation cancelled, receive, send;
  OK(table->irecv(&first, sizeof first, mpi::any_source, 77, &cancelled));
  OK(table->test(&cancelled, &done, nullptr, nullptr, nullptr));
  EXPECT(!done && cancelled.value != 0);
  OK(table->cancel(&cancelled));
  EXPECT(cancelled.value == 0);
  barrier();
  OK(table->irecv(&second, sizeof second, mpi::any_source, 77, &receive));
  OK(table->isend(&value, sizeof value, next(), 77, &send));
  FINISH(receive);
  FINISH(send);
  EXPECT(first == 0 && second == value);

  // Errors come back as codes with a text.
  char text[512] = {};
  const int status = table->isend(&value, sizeof value, world.size, 1, &send);
  EXPECT(status != 0 && send.value == 0);
  table->error_text(status, text, sizeof text);
  EXPECT(std::strlen(text) > 5);
  if (world.rank == 0) std::printf("isend to rank %d: %s\n", world.size, text);
  text[0] = '\0';
  table->error_text(0x7ffffff0, text, sizeof text);
  EXPECT(text[0] != '\0');
  mpi::world again;
  EXPECT(table->init(&again) < 0);
  EXPECT(table->isend(&value, std::size_t{3} << 30, next(), 1, &send) < 0);

  // A message longer than its buffer: an error, and the operation is gone. Not so for a message from itself
  // in Open MPI, nor with MPICH when the program's MPI_COMM_WORLD has the handler that ends the program.
  if (world.size == 1 || !world.initialised_here) return;
  const std::vector<int> longer(1000);
  OK(table->irecv(&first, sizeof first, previous(), 78, &receive));
  OK(table->isend(longer.data(), sizeof(int) * longer.size(), next(), 78, &send));
  int truncated = 0;
  for (done = false; !done;) truncated = table->test(&receive, &done, nullptr, nullptr, nullptr);
  EXPECT(truncated != 0 && receive.value == 0);
  table->error_text(truncated, text, sizeof text);
  EXPECT(text[0] != '\0');
  do {
    if (table->test(&send, &done, nullptr, nullptr, nullptr) != 0) break;
  } while (!done);
  barrier();
}

double ms_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

struct window_check {
  static constexpr std::size_t size = std::size_t{6} << 30;
  static constexpr std::uint64_t far = (std::uint64_t{4} << 30) + 4096 + 24;  // beyond 32 bits
  static constexpr std::uint64_t word = (std::uint64_t{5} << 30) + 64;
  static constexpr std::uint64_t lock = word + 128, counter = word + 256;
  unsigned char* base = nullptr;
  mpi::rma_window w;

  std::uint64_t here(std::uint64_t at) const {
    return __atomic_load_n(reinterpret_cast<std::uint64_t*>(base + at), __ATOMIC_ACQUIRE);
  }

  void put_and_get() {
    for (std::size_t n : {std::size_t{1}, std::size_t{8}, std::size_t{4099}, std::size_t{8} << 20}) {
      const bytes mine = pattern(n, world.rank);
      OK(table->put(&w, mine.data(), n, next(), far));
      OK(table->flush(&w, next()));
      barrier();
      const bytes expected = pattern(n, previous());
      EXPECT(std::equal(expected.begin(), expected.end(), base + far));
      EXPECT(base[far - 1] == 0 && base[far + (std::size_t{8} << 20)] == 0);
      for (int from = 0; from < world.size; ++from) {
        bytes got(n);
        OK(table->get(&w, got.data(), n, from, far));
        OK(table->flush(&w, from));
        EXPECT(got == pattern(n, (from + world.size - 1) % world.size));
      }
      barrier();
    }
    OK(table->get(&w, nullptr, 0, next(), far));
    OK(table->flush(&w, next()));
  }

  void additions() {
    constexpr int rounds = 200;
    const std::uint64_t one = 1;
    std::uint64_t sum = 0, last = 0;
    for (int i = 0; i < rounds; ++i) {
      std::uint64_t old = ~0ull;
      OK(table->fetch_op(&w, mpi::rma_op::add, &one, &old, 0, word));
      OK(table->flush(&w, 0));
      EXPECT(i == 0 || old > last);
      last = old;
      sum += old;
    }
    std::vector<std::uint64_t> sums(static_cast<std::size_t>(world.size));
    OK(table->allgather(&sum, sums.data(), sizeof sum));
    const std::uint64_t n = rounds * static_cast<std::uint64_t>(world.size);
    EXPECT(std::accumulate(sums.begin(), sums.end(), std::uint64_t{0}) == n * (n - 1) / 2);
    std::uint64_t value = 0;
    OK(table->fetch_op(&w, mpi::rma_op::no_op, nullptr, &value, 0, word));
    OK(table->flush(&w, 0));
    EXPECT(value == n);
    if (world.rank == 0) EXPECT(here(word) == n);
    barrier();
  }

  // A lock by compare and swap, given back by replace; what it guards is only read and written.
  void lock_and_count() {
    constexpr std::uint64_t rounds = 50;
    const int at = world.size - 1;
    const std::uint64_t free = 0, taken = 1 + static_cast<std::uint64_t>(world.rank);
    for (std::uint64_t i = 0; i < rounds; ++i) {
      for (std::uint64_t old = 1; old != free;) {
        OK(table->compare_swap(&w, &taken, &free, &old, at, lock));
        OK(table->flush(&w, at));
        if (old != free) std::this_thread::yield();
      }
      std::uint64_t value = 0, old = 0;
      OK(table->get(&w, &value, sizeof value, at, counter));
      OK(table->flush(&w, at));
      ++value;
      OK(table->put(&w, &value, sizeof value, at, counter));
      OK(table->flush(&w, at));
      OK(table->fetch_op(&w, mpi::rma_op::replace, &free, &old, at, lock));
      OK(table->flush(&w, at));
      EXPECT(old == taken);
    }
    barrier();
    if (world.rank == at) EXPECT(here(counter) == rounds * static_cast<std::uint64_t>(world.size));
    barrier();
  }

  // Not a check: does a target that makes no MPI calls answer? Rank 0 is deaf for a while.
  void passive_target() {
    barrier();
    if (world.rank == 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
    } else if (world.rank == 1) {
      std::uint64_t value = 0;
      const std::uint64_t one = 1;
      auto start = std::chrono::steady_clock::now();
      OK(table->get(&w, &value, sizeof value, 0, word));
      OK(table->flush(&w, 0));
      const double get_ms = ms_since(start);
      start = std::chrono::steady_clock::now();
      OK(table->fetch_op(&w, mpi::rma_op::add, &one, &value, 0, word));
      OK(table->flush(&w, 0));
      std::printf("target without MPI calls for 300 ms: get %.3f ms, fetch_op %.3f ms\n", get_ms,
                  ms_since(start));
    }
    barrier();
  }

  // Not a check: what an operation on a listening neighbour costs.
  void timings() {
    constexpr int rounds = 200;
    if (world.rank == 1) {
      const std::uint64_t one = 1;
      std::uint64_t value = 0;
      auto start = std::chrono::steady_clock::now();
      for (int i = 0; i < rounds; ++i) {
        OK(table->get(&w, &value, sizeof value, 0, word));
        OK(table->flush(&w, 0));
      }
      const double get_us = ms_since(start) * 1000 / rounds;
      start = std::chrono::steady_clock::now();
      for (int i = 0; i < rounds; ++i) {
        OK(table->fetch_op(&w, mpi::rma_op::add, &one, &value, 0, word));
        OK(table->flush(&w, 0));
      }
      std::printf("get of 8 bytes %.1f us, fetch_op %.1f us\n", get_us, ms_since(start) * 1000 / rounds);
    }
    barrier();
  }

  void run() {
    base = static_cast<unsigned char*>(
        mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    EXPECT(base != MAP_FAILED);
    OK(table->win_create(base, size, &w));
    EXPECT(w.value != 0);
    mpi::rma_window other;
    std::uint64_t words[4] = {7, 7, 7, 7};
    OK(table->win_create(words, sizeof words, &other));
    put_and_get();
    additions();
    lock_and_count();
    passive_target();
    timings();
    std::uint64_t value = 0;
    OK(table->get(&other, &value, sizeof value, next(), 24));
    OK(table->flush(&other, next()));
    EXPECT(value == 7);
    char text[256] = {};
    const int status = table->get(&w, &value, sizeof value, world.size + 1, 0);
    EXPECT(status != 0);
    table->error_text(status, text, sizeof text);
    EXPECT(text[0] != '\0');
    OK(table->win_free(&other));
    OK(table->win_free(&w));
    EXPECT(w.value == 0 && other.value == 0);
    OK(table->win_free(&w));
    munmap(base, size);
  }
};

[[noreturn]] void check_abort() {
  barrier();
  if (world.rank == world.size - 1) {
    std::printf("component_check aborts\n");
    std::fflush(stdout);
    table->abort(7);
  }
  char c = 0;
  mpi::operation never;
  OK(table->irecv(&c, 1, mpi::any_source, 99, &never));
  for (bool done = false; !done;) OK(table->test(&never, &done, nullptr, nullptr, nullptr));
  std::exit(1);
}

}  // namespace

int main(int argc, char** argv) {
  std::string error, family = argc > 1 ? argv[1] : "";
#if defined(GODWIT_CHECK_LINKED)
  int level = 0;
  EXPECT(MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &level) == MPI_SUCCESS);
  const bool linked = true;
  table = mpi::load_component("", mpi::family_hint::none, error);
  const std::string stranger = family == "openmpi" ? "mpich" : "openmpi";
  std::string refusal;
  EXPECT(mpi::load_component(stranger, mpi::family_hint::none, refusal) == nullptr);
  EXPECT(refusal.find("two MPIs") != std::string::npos);
#else
  const bool linked = false;
  check_load_errors();
  table = mpi::load_component(family, mpi::family_hint::none, error);
#endif
  if (table == nullptr) fail(__LINE__, "%s", error.c_str());
  EXPECT(table->name == family && table->abi == mpi::component_abi);
  check_without_mpi();
  const bool chosen_by_user = std::getenv("OMPI_MCA_osc") != nullptr;
  OK(table->init(&world));
  EXPECT((std::getenv("OMPI_MCA_osc") != nullptr) ==
         chosen_by_user);  // the component sets it for MPI_Init only
  EXPECT(world.initialised_here == !linked && world.rank >= 0 && world.rank < world.size);
  EXPECT(world.library[0] != '\0' && world.processor[0] != '\0');
  if (world.rank == 0)
    std::printf("%s on %s, %d ranks, thread level %d\n", world.library, world.processor, world.size,
                world.thread_level);
  if (argc > 2) check_abort();
  check_collectives();
  check_messages();
  check_special_operations();
  window_check{}.run();
  barrier();
  OK(table->finalize());
  OK(table->finalize());  // nothing more to do
  char c = 0;
  EXPECT(table->bcast(&c, 1, 0) < 0);
#if defined(GODWIT_CHECK_LINKED)
  int finalized = 1;
  EXPECT(MPI_Finalized(&finalized) == MPI_SUCCESS && !finalized);
  OK(table->init(&world));  // the program's MPI still runs: another run may follow
  EXPECT(world.thread_level == level);
  OK(table->finalize());
  EXPECT(MPI_Finalize() == MPI_SUCCESS);
#endif
  const int after = table->init(&world);
  EXPECT(after < 0);
  char text[128] = {};
  table->error_text(after, text, sizeof text);
  EXPECT(std::strstr(text, "MPI_Finalize") != nullptr);
  if (world.rank == 0) std::printf("component_check ok\n");
  return 0;
}

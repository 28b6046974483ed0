// The program whose global memory and heap gdb_test.cpp looks at: movable memory of which some parts have
// moved, memory that does not move, blocks of the heap. gdb_memory FILE: writes "ready" and the addresses
// into FILE when all is in place, and goes on when FILE is gone. Prints 142.
#include <godwit/godwit.hpp>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <sched.h>
#include <string>
#include <unistd.h>

namespace gw = godwit;

namespace {

const char* file_ = nullptr;
constexpr std::uint64_t page = 4096, words_of_page = page / 8;

}  // namespace

extern "C" {

[[gnu::noinline]] void hold(gw::global_ptr<std::uint64_t> p) {
  while (access(file_, F_OK) == 0) sched_yield();
  asm volatile("" ::"r"(&p) : "memory");
}

[[gnu::noinline]] int root() {
  gw::distribution how = gw::distribution::cyclic(page);
  const auto p = gw::allocate<std::uint64_t>(6 * words_of_page, how.movable(page));
  const auto blocks = gw::allocate<char>(100'000, gw::distribution::blocked());
  const auto local = gw::global_new<int>(7);
  gw::move(p + 2 * words_of_page, 1).join();  // part 2, of worker 0
  gw::move(p + 3 * words_of_page, 0).join();  // part 3, of worker 1, there and back
  gw::move(p + 3 * words_of_page, 1).join();
  void* const small = std::malloc(300);
  void* const large = std::malloc(200'000);
  void* volatile freed = std::malloc(700);
  std::free(freed);
  const std::string part = std::string(file_) + ".part";
  if (std::FILE* f = std::fopen(part.c_str(), "w"); f != nullptr) {
    std::fprintf(f, "ready %llx %llx %llx %p %p %p\n", static_cast<unsigned long long>(p.address()),
                 static_cast<unsigned long long>(blocks.address()),
                 static_cast<unsigned long long>(local.address()), small, large, freed);
    std::fclose(f);
    std::rename(part.c_str(), file_);
  }
  hold(p);
  std::free(small);
  std::free(large);
  gw::global_delete(local);
  gw::deallocate(blocks, 100'000);
  gw::deallocate(p, 6 * words_of_page);
  return 142;
}
}

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  file_ = argv[1];
  gw::options o;
  o.workers = 2;
  std::printf("%d\n", gw::run<int>(
                          argc, argv, [] { return root(); }, o));
}

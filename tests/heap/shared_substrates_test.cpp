// Shared objects where workers live in main's memory, and where there is no heap to share.
// test: timeout=120 skip-qemu
#include "heap/shared_objects.hpp"

#include <godwit/godwit.hpp>

#include <gtest/gtest.h>

#include <string>
#include <sys/resource.h>

namespace {

using namespace shared_objects_test;

/// A run in one process fills a table that is shared: 0 if it is right.
int fill(gw::shared_global<memo>& table, gw::choice::substrate substrate) {
  for (const std::uint32_t workers : {1u, 2u, 4u}) {
    gw::options o = support::schedule(workers, "random");
    o.substrate = substrate;
    gw::run<void>([&table] { many([&table](int n) { return table->put(n), 0; }, 4); }, o);
    if (table->texts.size() != 16 || table->texts.at(15) != long_text(15)) return 1;
    table->texts.clear();
  }
  return 0;
}

/// Why a run on processes cannot have them.
std::string why_not_on_processes() {
  gw::options o = support::schedule(2);
  o.substrate = gw::choice::substrate::processes;
  return why_refused(o);
}

/// And no run on processes is wrong afterwards: what was put in may lie in main's own memory.
int fill_and_be_refused(gw::choice::substrate substrate) {
  gw::shared_global<memo> table;
  if (fill(table, substrate) != 0) return 1;
  return why_not_on_processes().starts_with("godwit: shared objects") ? 0 : 2;
}
TEST(Substrates, ThreadsHaveThem) {
  in_new_program([] { return fill_and_be_refused(gw::choice::substrate::threads); });
}
TEST(Substrates, TheSimulatorHasThem) {
  in_new_program([] { return fill_and_be_refused(gw::choice::substrate::sim); });
}

// Any build comes here by a limit; with a sanitizer the heap cannot be had either.
TEST(Substrates, ThreadsNeedNoHeap) {
  in_new_program([] {
    const rlimit little{1 << 20, RLIM_INFINITY};
    setrlimit(RLIMIT_FSIZE, &little);
    gw::shared_global<memo> table;
    const rlimit enough{RLIM_INFINITY, RLIM_INFINITY};
    setrlimit(RLIMIT_FSIZE, &enough);
    if (in_heap(table.get())) return 1;
    if (!why_not_on_processes().ends_with("use --godwit-substrate=threads (GODWIT_SUBSTRATE)")) return 2;
    return fill(table, gw::choice::substrate::threads) + fill(table, gw::choice::substrate::automatic);
  });
}

}  // namespace

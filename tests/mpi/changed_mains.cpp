// What each rank's main makes before run, and threads change: it is told with GODWIT_CHECK_HEAP.
// changed_mains HOW: written, or read.
#include <godwit/godwit.hpp>

#include <cstdlib>
#include <cstring>
#include <unistd.h>
#include <vector>

namespace gw = godwit;

std::vector<long> table;

int main(int argc, char** argv) {
  if (std::getenv("GODWIT_CHECK_HEAP") == nullptr) {  // not all launchers pass it on
    setenv("GODWIT_CHECK_HEAP", "1", 1);
    execv("/proc/self/exe", argv);
    return 1;
  }
  const bool writes = argc > 1 && std::strcmp(argv[1], "written") == 0;
  table.assign(1000, 3);
  return gw::run(0, nullptr, [writes] {
    gw::on_each_worker([writes] {
      if (writes)
        table[7] = 4;
      else if (table[7] != 3)
        std::abort();
    });
  });
}

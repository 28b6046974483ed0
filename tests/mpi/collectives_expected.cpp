// What src/sim/collectives.hpp says of a run on argv[1] hosts, as collectives.c prints what happened.
#include "sim/collectives.hpp"

#include <cstdio>
#include <cstdlib>

int main(int argc, char** argv) {
  const unsigned long hosts = argc == 2 ? std::strtoul(argv[1], nullptr, 10) : 0;
  for (const auto& c : godwit::sim::collectives_of_run)
    std::printf("collective: %.*s %u %lu%s\n", static_cast<int>(c.name.size()), c.name.data(), c.calls,
                static_cast<unsigned long>(c.bytes + c.host_bytes * hosts),
                c.name == "Gather" ? " and counters" : "");
}

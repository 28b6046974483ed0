// What main makes before run, in each rank for itself: unequal_mains HOW. alike: the same; names: a name and
// the buffer of a stream in the first rank only; more: many objects there.
#include <godwit/godwit.hpp>

#include <cstdio>
#include <map>
#include <string>

namespace gw = godwit;

std::map<int, long> table;
std::string name;

int main(int argc, char** argv) {
  const std::string how = argc > 1 ? argv[1] : "";
  for (int i = 0; i < 1000; ++i) table[i] = i;
  if (how == "names" && gw::is_first_process()) {
    name = std::string(300, 'n');
    std::puts("the first rank");
  }
  if (how == "more" && gw::is_first_process())
    for (int i = 0; i < 2000; ++i) table[i] = i;
  gw::options o;
  o.check_heap = true;
  for (int i = 0; i < 2; ++i)
    if (gw::run<long>([] { return table.at(999); }, o) != 999) return 1;
}

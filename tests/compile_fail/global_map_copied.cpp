// expect: deleted.*capture its view\(\), or move it
#include <godwit/godwit.hpp>

void use() {
  godwit::global_map<int, int> m(10);
  godwit::spawn([m] { static_cast<void>(m.size()); }).join();
}

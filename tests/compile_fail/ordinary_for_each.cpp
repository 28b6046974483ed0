// expect: this is ordinary memory, of one process only. Keep the elements in a gw::global_array
// lines: 12
#include <godwit/godwit.hpp>

void use(std::vector<int>& v) {
  godwit::for_each(v, [](int& x) { ++x; });
}

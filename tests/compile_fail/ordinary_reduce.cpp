// expect: this is ordinary memory, of one process only. Keep the elements in a gw::global_array
// lines: 12
// What the caller does with the result adds nothing.
#include <godwit/godwit.hpp>

double use(std::vector<double>& v) { return godwit::reduce(v); }

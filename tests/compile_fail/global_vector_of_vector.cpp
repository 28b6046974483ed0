// expect: cannot lie in global memory.*Store plain values
#include <godwit/godwit.hpp>
#include <vector>

void use() { godwit::global_vector<std::vector<int>> v; }

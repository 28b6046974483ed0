// expect: cannot lie in global memory.*godwit::relocatable
#include <godwit/godwit.hpp>

void use() { godwit::global_vector<godwit::future<int>> v; }

// expect: owns global memory and is not copied.*use take and replace
#include <godwit/godwit.hpp>

void use(godwit::global_vector<godwit::global_vector<int>>& v) {
  godwit::copy_n<godwit::global_vector<int>>(v.data(), 1, v.data());
}
